"""What the command line says: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_messages = Console(stderr=True, highlight=False, soft_wrap=True)


class Reporter(Protocol):
    """Told how far a long job is: `fraction` in 0..1 and a word for what is being done."""

    def __call__(self, fraction: float, doing: str) -> None:
        """Take note."""


def silent(fraction: float, doing: str) -> None:
    """A reporter that nobody listens to."""


def result(words: str) -> None:
    """A line of the result."""
    sys.stdout.write(words + "\n")


def result_json(value: object) -> None:
    """The result for a script."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def note(words: str) -> None:
    """Something the user may want to know."""
    _messages.print(words, markup=False)


def warn(words: str) -> None:
    """Something the user must not overlook."""
    _messages.print(words, markup=False, style="bold yellow")


def fail(words: str) -> None:
    """Why it did not work."""
    _messages.print(f"error: {words}", markup=False, style="bold red")


@contextmanager
def progress(title: str) -> Iterator[Reporter]:
    """A bar on a terminal; one line per stage where output goes to a log."""
    if not _messages.is_terminal:
        stages: set[str] = set()

        def say(fraction: float, doing: str) -> None:
            if doing not in stages:
                stages.add(doing)
                note(f"{title}: {doing}")

        yield say
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=_messages, transient=True) as bar:
        task = bar.add_task(title, total=1.0)

        def move(fraction: float, doing: str) -> None:
            bar.update(task, completed=fraction, description=f"{title}: {doing}")

        yield move
