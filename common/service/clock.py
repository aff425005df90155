"""The time: read in one place, handed to whatever needs it, and written the same way in records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

Clock = Callable[[], dt.datetime]


def system_clock() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def stamp(at: dt.datetime) -> str:
    """Write a time as records have it."""
    return at.astimezone(dt.UTC).isoformat(timespec="seconds")
