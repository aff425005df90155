"""What a party's role may wait for in a study, what it takes then, and what it asks of its shell.

Every transition is in `ALLOWED`; `party.role` makes them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from common.study.messages import (
    BoxDisputed,
    BoxJudged,
    EnvelopeRelayed,
    KeysRelayed,
    ListPublished,
    ResultPublished,
    SignaturesRelayed,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeBudget:
    """Charge this party's ledger for one step of the study, before its answer leaves."""

    step: str
    mechanism: str  # what draws the answer
    epsilon: Fraction = Fraction(0)  # the cost under pure epsilon; 0 under a promise with a delta
    rho: Fraction = Fraction(0)  # the cost under a promise with a delta
    delta: Fraction = Fraction(0)  # of that promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a message to the curator."""

    message: ToCurator


Effect = ChargeBudget | Send


class State(enum.Enum):
    """What the party is waiting for."""

    AWAITING_STUDY = "the study to open"
    AWAITING_SEED = "the other parties' seeds"
    AWAITING_STEP = "the next step"
    AWAITING_KEYS = "the partners' keys of the sum"
    AWAITING_LIST = "the list of who is missing"
    AWAITING_VERDICT = "the verdict on a box that does not open"
    AWAITING_SIGNATURES = "the signatures under the list"
    IN_STEP = "the result of the step"
    FINISHED = "nothing: the release is made"
    ABORTED = "nothing: the study was aborted"


# Every transition there is. What is not listed is refused.
ALLOWED: dict[State, tuple[type[ToParty], ...]] = {
    State.AWAITING_STUDY: (StudyOpened, StudyAborted),
    State.AWAITING_SEED: (EnvelopeRelayed, KeysRelayed, StudyAborted),
    State.AWAITING_STEP: (StepOpened, StudyFinished, StudyAborted),
    State.AWAITING_KEYS: (KeysRelayed, StudyAborted),
    State.AWAITING_LIST: (ListPublished, BoxDisputed, BoxJudged, StepOpened, StudyAborted),
    State.AWAITING_VERDICT: (BoxDisputed, BoxJudged, StepOpened, StudyAborted),
    State.AWAITING_SIGNATURES: (SignaturesRelayed, StudyAborted),
    State.IN_STEP: (EnvelopeRelayed, ResultPublished, StudyAborted),
    State.FINISHED: (),
    State.ABORTED: (),
}

IN_A_STEP = frozenset(
    {
        State.AWAITING_KEYS,
        State.AWAITING_LIST,
        State.AWAITING_VERDICT,
        State.AWAITING_SIGNATURES,
        State.IN_STEP,
    }
)
