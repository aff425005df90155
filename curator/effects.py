"""What the curator's role asks its shell to do, in the order given."""

from __future__ import annotations

from dataclasses import dataclass

from common.study.messages import ToParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a message to one party."""

    to: str
    message: ToParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Every step has its result: make the release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The study ends without a release."""

    reason: str


Effect = Send | Finish | Fail
