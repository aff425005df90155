"""Who has paid how much: charges composed per party.

Every person is in one party's table. An answer reads the rows of the parties it names. So a party's
rows pay for every answer that names it, one after the other (sequential composition), and nothing
for the others (parallel composition). This module is the only place that composes. The currency is
that of the study's promise: epsilon, or rho (`common.privacy.promise`). Both add up.

No epsilon of Laplace noise is written by hand: `laplace_charge` derives it, party by party, from
the sensitivity and the scale that were used. What a paper claims can be recorded beside it, and
never replaces it.

    accountant = Accountant({"north": Fraction(1), "south": None})
    accountant.charge(laplace_charge("marginals", scale=Fraction(40), sensitivities={"north": 20}))
    accountant.spent("north")  # 1/2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from common.errors import LocalError, PolicyError


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """One noisy answer: what was done, and what it costs the rows of each party it covers."""

    step: str
    mechanism: str
    # What the rows of each covered party pay. A party that is not named pays nothing.
    costs: Mapping[str, Fraction]
    # How far one replaced row of each party can move the exact answer.
    sensitivities: Mapping[str, Fraction] = field(default_factory=dict)
    # The parameter of the noise law; None for a mechanism that has none.
    scale: Fraction | None = None
    parameter: str = "scale"  # what it is: the law's scale or its variance
    norm: int = 1
    # What a paper counts for each party, where that differs from what is true.
    claimed: Mapping[str, Fraction] | None = None
    # What this run's results made of the costs, where those are the most that any results can.
    realised: Mapping[str, Fraction] | None = None

    def __post_init__(self) -> None:
        if not self.costs:
            raise LocalError(f"the charge {self.step!r} covers no party: name whose rows it reads")
        kinds = {"cost": self.costs, "claim": self.claimed, "realised cost": self.realised}
        for kind, costs in kinds.items():
            for party, cost in (costs or {}).items():
                if type(cost) not in (Fraction, int) or cost < 0:
                    raise LocalError(
                        f"the {kind} {cost!r} of {party!r} in {self.step!r} must be an exact "
                        "fraction that is not negative"
                    )
        for name in ("costs", "sensitivities", "claimed", "realised"):
            value = getattr(self, name)
            if value is not None:  # a copy, so that the record cannot change afterwards
                object.__setattr__(self, name, MappingProxyType(dict(value)))


def laplace_charge(
    step: str,
    *,
    scale: Fraction,
    sensitivities: Mapping[str, Fraction | int],
    mechanism: str = "discrete Laplace",
) -> Charge:
    """Charge an answer with discrete Laplace noise: party j pays sensitivity_j / scale.

    The sensitivity is per party because an answer need not read every party's rows in full: of a
    sum of noisy statistics that was built up over time, the newer ones cover fewer parties.
    """
    if scale <= 0:
        raise LocalError(f"the charge {step!r} needs a noise scale above zero, not {scale}")
    exact = {party: Fraction(value) for party, value in sensitivities.items()}
    return Charge(
        step=step,
        mechanism=mechanism,
        costs={party: value / Fraction(scale) for party, value in exact.items()},
        sensitivities=exact,
        scale=Fraction(scale),
    )


class Accountant:
    """The charges of one study, and what each party's rows have paid for them.

    `caps` has each party's limit, None for no limit; only these parties can be charged.
    """

    def __init__(self, caps: Mapping[str, Fraction | None], *, currency: str = "epsilon") -> None:
        self.currency = currency
        self._caps = dict(caps)
        self._charges: list[Charge] = []
        self._spent = dict.fromkeys(caps, Fraction(0))

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self._caps)

    @property
    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges)

    def charge(self, charge: Charge) -> None:
        """Record a charge before its answer is given.

        PolicyError if it would take a party past its cap: then no party has been charged.
        """
        for party, cost in charge.costs.items():
            if party not in self._caps:
                raise LocalError(f"the charge {charge.step!r} covers {party!r}, who is unknown")
            cap = self._caps[party]
            if cap is not None and self._spent[party] + cost > cap:
                raise PolicyError(
                    f"{charge.step!r} costs {party!r} {self.currency} {cost}, but "
                    f"{self._spent[party]} of its cap of {cap} is spent: nothing was charged"
                )
        for party, cost in charge.costs.items():
            self._spent[party] += cost
        self._charges.append(charge)

    def spent(self, party: str) -> Fraction:
        return self._spent[self._known(party)]

    def remaining(self, party: str) -> Fraction | None:
        """Return what `party` can still pay; None without a cap."""
        cap = self._caps[self._known(party)]
        return None if cap is None else cap - self._spent[party]

    def claimed(self, party: str) -> Fraction:
        """Return what `party` would have paid by the claims of the paper, where there are any."""
        return self._sum(party, [(charge.claimed, charge.costs) for charge in self._charges])

    def realised(self, party: str) -> Fraction:
        """Return what the results of this run made of what `party` paid; it is no bound."""
        return self._sum(party, [(charge.realised, charge.costs) for charge in self._charges])

    def _sum(
        self,
        party: str,
        counts: Iterable[tuple[Mapping[str, Fraction] | None, Mapping[str, Fraction]]],
    ) -> Fraction:
        """Add up another count of what `party` paid; where there is none, the costs."""
        self._known(party)
        return sum(
            (
                (costs if other is None else other).get(party, Fraction(0))
                for other, costs in counts
            ),
            Fraction(0),
        )

    @property
    def most_spent(self) -> Fraction:
        """The largest payment of any party: what the whole costs."""
        return max(self._spent.values(), default=Fraction(0))

    def _known(self, party: str) -> str:
        if party not in self._caps:
            raise LocalError(f"{party!r} is not a party of this study")
        return party
