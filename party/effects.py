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
    """Charge this party's ledger for one step of the study, before its answer leaves.

    Attributes:
        step: its name.
        mechanism: what draws the answer.
        epsilon: what it costs under pure epsilon; 0 under a promise with a delta.
        rho: what it costs under a promise with a delta.
        delta: of that promise.
    """

    step: str
    mechanism: str
    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send a message to the curator."""

    message: ToCurator


Effect = ChargeBudget | Send
