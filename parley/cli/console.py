"""What the command line says: results on standard output, everything else on standard error.

Names, reasons and columns come from outside. Whatever is printed is printed here, with everything
that a terminal would obey escaped.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from common.wording import Reporter, harmless

if TYPE_CHECKING:
    from rich.console import Console

_QUIET_S = 2.0
_KEYWORD = re.compile(r"\b([a-z_]+)=(?:True\b|\.\.\.)")  # overwrite=True, sheet=...


def result(words: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(harmless(words) + "\n")


@cache
def _messages() -> Console:
    from rich.console import Console  # slow to load, and most commands and services say nothing

    # No emoji codes: `:CD:` in a fingerprint is one.
    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def in_options(words: str) -> str:
    """Name options as the command line does, where a message names them as Python does."""
    return _KEYWORD.sub(lambda keyword: f"--{keyword[1].replace('_', '-')}", words)


def note(words: str) -> None:
    """Tell the user what may be of use."""
    _messages().print(harmless(words), markup=False, emoji=False)


def warn(words: str) -> None:
    """Tell the user what must not be overlooked."""
    _messages().print(harmless(in_options(words)), markup=False, emoji=False, style="bold yellow")


def fail(words: str) -> None:
    """Tell the user why the command failed."""
    _messages().print(
        f"error: {harmless(in_options(words))}", markup=False, emoji=False, style="bold red"
    )


@contextmanager
def progress(title: str) -> Iterator[Reporter]:
    """Show a bar on a terminal, a line per stage in a log; nothing in the first two seconds."""
    with _bar(title) if _messages().is_terminal else _lines(title) as reporter:
        yield reporter


@contextmanager
def _lines(title: str) -> Iterator[Reporter]:
    started, earlier = time.monotonic(), ""

    def say(fraction: float, doing: str) -> None:
        nonlocal earlier
        stage = doing.partition(":")[0]
        if stage != earlier and time.monotonic() - started > _QUIET_S:
            earlier = stage
            note(f"{title}: {doing}")

    yield say


@contextmanager
def _bar(title: str) -> Iterator[Reporter]:
    from rich import progress as bars  # slow to load, and few commands take long

    columns = (
        bars.SpinnerColumn(), bars.TextColumn("{task.description}", markup=False), bars.BarColumn(),
        bars.TimeElapsedColumn(),
    )  # fmt: skip
    bar = bars.Progress(*columns, console=_messages(), transient=True)
    task = bar.add_task(title, total=1.0)
    appears = threading.Timer(_QUIET_S, bar.start)  # also in the middle of a long stage
    appears.daemon = True
    appears.start()

    def move(fraction: float, doing: str) -> None:
        bar.update(task, completed=fraction, description=harmless(f"{title}: {doing}"))

    try:
        yield move
    finally:
        appears.cancel()
        appears.join()
        bar.stop()
