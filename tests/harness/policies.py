"""A policy that is given, and not read from a file."""

from dataclasses import dataclass

from party.owner.policy import Policy


@dataclass(frozen=True)
class GivenPolicy:
    current: Policy
    words: str = "as the test says"
    complaint: str = ""
