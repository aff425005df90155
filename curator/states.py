"""What the curator's role may wait for in a study, what it takes then, and what it asks for.

Every transition is in `ALLOWED`; `curator.role` makes them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from common.study.messages import (
    BoxOpened,
    BoxRefused,
    ChoiceSubmitted,
    EnvelopePosted,
    KeysDealt,
    ListSigned,
    MasksRevealed,
    PartyRefused,
    ShareSubmitted,
    ToCurator,
    ToParty,
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A party is out for the rest of the study, which goes on."""

    party: str
    step: int
    reason: str


Effect = Send | Finish | Fail | Leave


class State(enum.Enum):
    """What the curator is waiting for."""

    AWAITING_START = "the start"
    AWAITING_SEEDS = "the parties' seeds"
    AWAITING_KEYS = "keys of the sum"
    COLLECTING = "contributions to the step"
    AWAITING_OPENINGS = "answers about boxes that do not open"
    AWAITING_SIGNATURES = "signatures under the list of who is missing"
    AWAITING_MASKS = "shares of the masks"
    FINISHED = "nothing: the release can be made"
    FAILED = "nothing: the study failed"


# Every transition there is. What is not listed is refused.
ALLOWED: dict[State, tuple[type[ToCurator], ...]] = {
    State.AWAITING_START: (),
    State.AWAITING_SEEDS: (EnvelopePosted, KeysDealt, PartyRefused),
    State.AWAITING_KEYS: (KeysDealt, PartyRefused),
    State.AWAITING_SIGNATURES: (ListSigned, PartyRefused),
    State.AWAITING_MASKS: (MasksRevealed, PartyRefused),
    State.COLLECTING: (EnvelopePosted, ShareSubmitted, ChoiceSubmitted, BoxRefused, PartyRefused),
    State.AWAITING_OPENINGS: (BoxOpened, PartyRefused),
    State.FINISHED: (),
    State.FAILED: (),
}

ROUNDS = (
    State.AWAITING_KEYS,
    State.AWAITING_OPENINGS,
    State.AWAITING_SIGNATURES,
    State.AWAITING_MASKS,
)
IN_A_STEP = (*ROUNDS, State.COLLECTING)
