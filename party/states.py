"""What a party's role asks of its shell. Its states are in `common.study.states`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.study.messages import ToCurator


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeBudget:
    """Charge this party's ledger for one step of the study, before its answer leaves."""

    step: str
    mechanism: str  # what draws the answer
    epsilon: Fraction = Fraction(0)  # the cost under pure epsilon; 0 under a promise with a delta
    rho: Fraction = Fraction(0)  # the cost under a promise with a delta
    delta: Fraction = Fraction(0)  # of that promise


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToCurator:
    """Send a message to the curator."""

    message: ToCurator


Effect = ChargeBudget | SendToCurator
