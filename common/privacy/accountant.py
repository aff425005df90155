"""Who has paid how much: releases composed per party.

Every person is in one party's table. A release reads the rows of the parties it names. So a party's
rows pay for every release that names it, one after the other (sequential composition), and nothing
for the others (parallel composition). This module is the only place that composes.

Nobody writes down an epsilon for Laplace noise: `laplace_release` derives it, party by party, from
the sensitivity and the scale that were used. What a paper claims can be recorded beside it, and
never replaces it.

    accountant = Accountant({"north": Fraction(1), "south": None})
    accountant.charge(laplace_release("marginals", scale=Fraction(40), sensitivities={"north": 20}))
    accountant.spent("north")  # 1/2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from common.errors import LocalError, PolicyError


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One noisy answer: what was done, and what it costs the rows of each party it covers.

    Attributes:
        step: the step of the method it belongs to.
        mechanism: what drew it, in words.
        epsilons: what the rows of each covered party pay. A party that is not named pays nothing.
        sensitivities: how far one replaced row of each party can move the exact answer.
        scale: of the noise; None for a mechanism that has none.
        claimed: what a paper counts for each party, where that differs from what is true.
    """

    step: str
    mechanism: str
    epsilons: Mapping[str, Fraction]
    sensitivities: Mapping[str, Fraction] = field(default_factory=dict)
    scale: Fraction | None = None
    claimed: Mapping[str, Fraction] | None = None

    def __post_init__(self) -> None:
        if not self.epsilons:
            raise LocalError(f"the release {self.step!r} covers no party: name whose rows it reads")
        claims = {} if self.claimed is None else self.claimed
        for kind, costs in (("epsilon", self.epsilons), ("claim", claims)):
            for party, cost in costs.items():
                if type(cost) not in (Fraction, int) or cost < 0:
                    raise LocalError(
                        f"the {kind} {cost!r} of {party!r} in {self.step!r} must be an exact "
                        "fraction that is not negative"
                    )
        for name in ("epsilons", "sensitivities", "claimed"):
            value = getattr(self, name)
            if value is not None:  # a copy, so that the record cannot change afterwards
                object.__setattr__(self, name, MappingProxyType(dict(value)))


def laplace_release(
    step: str,
    *,
    scale: Fraction,
    sensitivities: Mapping[str, Fraction | int],
    mechanism: str = "discrete Laplace",
    claimed: Mapping[str, Fraction] | None = None,
) -> Release:
    """A release with discrete Laplace noise: party j pays sensitivity_j / scale.

    The sensitivity is per party because a release need not read every party's rows in full: of a
    sum of noisy statistics that was built up over time, the newer ones cover fewer parties.

    Args:
        step: the step of the method.
        scale: of the noise in each cell.
        sensitivities: the L1 change of the exact answer when one row of that party is replaced.
        mechanism: what drew it, in words.
        claimed: what a paper counts for each party, where that differs.
    """
    if scale <= 0:
        raise LocalError(f"the release {step!r} needs a noise scale above zero, not {scale}")
    exact = {party: Fraction(value) for party, value in sensitivities.items()}
    return Release(
        step=step,
        mechanism=mechanism,
        epsilons={party: value / Fraction(scale) for party, value in exact.items()},
        sensitivities=exact,
        scale=Fraction(scale),
        claimed=claimed,
    )


def exponential_release(
    step: str,
    *,
    epsilon: Fraction,
    sensitivities: Mapping[str, Fraction | int],
    draws: int = 1,
) -> Release:
    """`draws` choices by the exponential mechanism, each with parameter `epsilon`.

    Args:
        step: the step of the method.
        epsilon: the parameter of each draw, as given to `exponential_mechanism`.
        sensitivities: of the score, for each party whose rows were scored.
        draws: how many choices were made one after the other.
    """
    exact = {party: Fraction(value) for party, value in sensitivities.items()}
    return Release(
        step=step,
        mechanism="exponential mechanism",
        epsilons=dict.fromkeys(exact, draws * Fraction(epsilon)),
        sensitivities=exact,
    )


class Accountant:
    """The releases of one study, and what each party's rows have paid for them.

    Args:
        caps: each party's limit; None for no limit. Only these parties can be charged.
    """

    def __init__(self, caps: Mapping[str, Fraction | None]) -> None:
        self._caps = dict(caps)
        self._releases: list[Release] = []
        self._spent = dict.fromkeys(caps, Fraction(0))

    @property
    def parties(self) -> tuple[str, ...]:
        """Everyone who can be charged."""
        return tuple(self._caps)

    @property
    def releases(self) -> tuple[Release, ...]:
        """Everything charged so far, in order."""
        return tuple(self._releases)

    def charge(self, release: Release) -> None:
        """Record a release before it is made.

        Raises:
            LocalError: it covers a party that is not of this study.
            PolicyError: it would take a party past its cap. Nobody has been charged.
        """
        for party, cost in release.epsilons.items():
            if party not in self._caps:
                raise LocalError(f"the release {release.step!r} covers {party!r}, who is unknown")
            cap = self._caps[party]
            if cap is not None and self._spent[party] + cost > cap:
                raise PolicyError(
                    f"{release.step!r} costs {party!r} an epsilon of {cost}, but "
                    f"{self._spent[party]} of its cap of {cap} is spent: nothing was charged"
                )
        for party, cost in release.epsilons.items():
            self._spent[party] += cost
        self._releases.append(release)

    def spent(self, party: str) -> Fraction:
        """What the rows of `party` have paid."""
        return self._spent[self._known(party)]

    def remaining(self, party: str) -> Fraction | None:
        """What `party` can still pay; None without a cap."""
        cap = self._caps[self._known(party)]
        return None if cap is None else cap - self._spent[party]

    def claimed(self, party: str) -> Fraction:
        """What `party` would have paid by the claims of the paper, where there are any."""
        self._known(party)
        costs = (
            release.epsilons if release.claimed is None else release.claimed
            for release in self._releases
        )
        return sum((cost.get(party, Fraction(0)) for cost in costs), Fraction(0))

    @property
    def delivered(self) -> Fraction:
        """The largest payment of any party: the epsilon of the whole."""
        return max(self._spent.values(), default=Fraction(0))

    def _known(self, party: str) -> str:
        if party not in self._caps:
            raise LocalError(f"{party!r} is not a party of this study")
        return party
