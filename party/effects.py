"""What a party's role asks its shell to do, in the order given.

The shell executes the list strictly in order. `ChargeBudget` returns only after the charge is on
disk; if it fails the rest of the list is dropped and the study is refused. `Send` is journalled
before it goes out, so that the same bytes go out again after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from common.study.messages import ToCurator


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeBudget:
    """Charge this party's ledger for one step of the study, before its answer leaves."""

    step: str
    mechanism: str  # what draws the answer
    # What it costs under pure epsilon; 0 under a promise with a delta.
    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)  # what it costs under a promise with a delta
    delta: Fraction = Fraction(0)  # of that promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a message to the curator."""

    message: ToCurator


Effect = ChargeBudget | Send
