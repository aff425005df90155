"""What the curator's role asks of its shell. Its states are in `common.study.states`."""

from __future__ import annotations

from dataclasses import dataclass

from common.study.messages import ToParty


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToParty:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A party is out for the rest of the study, which goes on."""

    party: str
    step: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """Tell the operator of a dispute between parties."""

    words: str


Effect = SendToParty | Finish | Fail | Leave | Warn
