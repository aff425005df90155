"""The progress of a long job."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Is told how far a job is: `fraction` in 0..1 and what is being done, as "stage: detail"."""

    def __call__(self, fraction: float, doing: str) -> None:
        """Take note."""


def silent(fraction: float, doing: str) -> None:
    """Report nothing."""
