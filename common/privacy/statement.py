"""The privacy statement: what was promised, to whom, and what it cost, for people and for scripts.

`as_dict` is privacy.json. Its keys are fixed. Numbers are never below the exact value beside them;
exact values are strings like "3/10".
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import metadata

from common.errors import InputError, LocalError
from common.privacy.accountant import Accountant, Charge
from common.privacy.budget import Written, parse_epsilon, shown
from common.privacy.promise import Promise
from common.privacy.spending import epsilon_of
from common.wording import many

VERSION = 1
UNIT_OF_PRIVACY = "one row of one party's table"
NEIGHBOUR_RELATION = (
    "two inputs are neighbours if one row of one party's table is replaced by another; "
    "the number of rows of each party is public"
)
SAMPLER = (
    "exact: integer noise and choices follow their stated law without rounding, "
    "so the guarantee is pure epsilon (delta = 0)"
)
SAMPLER_WITH_DELTA = (
    "exact: integer noise follows its stated law without rounding, so epsilon and delta are those "
    "of the law itself"
)
LARGE_EPSILON = 8  # above, the probability of being found out is near 1
SEEDED = "the random numbers came from a seed and can be repeated"
REHEARSAL = "it is a rehearsal: the owners answered about simulated rows, and none is real"
CLEAR_AGGREGATION = "the parties' exact counts were added up in the clear"
ROWS_NOT_AGREED = (
    "the public numbers of rows were counted from people's rows, not agreed beforehand"
)

_MINOR = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})(?![0-9])")
_NEARLY_SURE = 99
_LEAST_WRITTEN_OUT = 1e-12
_CURVE = tuple(Fraction(1, 10**places) for places in (6, 9, 12, 15))
_LIBRARIES = ("parley", "numpy", "gmpy2", "cryptography", "phe")


def unit_of_privacy(promise: Promise) -> str:
    """Say who or what is protected."""
    if promise.events:
        return f"one person of one party's table, with all of her {promise.events}"
    if not promise.rows:
        return UNIT_OF_PRIVACY
    return f"one person, with up to {_rows_of(promise)}"


def neighbour_relation(promise: Promise) -> str:
    """Say which inputs may not be told apart."""
    if promise.events:
        return (
            f"two inputs are neighbours if one person of one party's table, with all of her "
            f"{promise.events}, is replaced by another person with any others, or none; the "
            f"number of people of each party is public, the number of {promise.events} is not"
        )
    if not promise.rows:
        return NEIGHBOUR_RELATION
    return (
        f"two inputs are neighbours if all rows of one person, up to {_rows_of(promise)}, are "
        "replaced by other rows, as many at most; each party's public number of rows was agreed "
        "beforehand, and its node fills up or leaves out rows until it has that many"
    )


def _rows_of(promise: Promise) -> str:
    rows = many(promise.rows, "row")
    if promise.owners == 1:
        return f"{rows} of one party's table"
    return f"{rows} of each of {promise.owners} parties' tables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """What one kind of adversary can learn."""

    against: str  # who: the public, the curator, another party, some parties together
    # The bound on what they learn about any one row; None if they are not held off.
    epsilon: Fraction | None
    assumes: str  # what the bound rests on


def suspicion(epsilon: float, delta: float = 0, *, about: str = "row") -> str:
    """Say what an epsilon means for a row, or for a person, without exponents."""
    sure = 100 / (1 + math.exp(-epsilon))
    most = f"about {sure:.0f} % at most" if sure < _NEARLY_SURE else "all but certain"
    but = f", except with a chance of about {chance(delta)}" if delta else ""
    return f"a suspicion of 50 % about a {about} can become {most}{but}"


def large_epsilon(written: Written) -> str:
    """Return the warning of an epsilon that promises little; empty if there is none to give."""
    try:
        epsilon = float(parse_epsilon(written))
    except InputError:  # refused where it is used
        return ""
    if epsilon <= LARGE_EPSILON:
        return ""
    return (
        f"epsilon {written} promises next to nothing about one row: {suspicion(epsilon)}. "
        f"Values up to a few are usual; above {LARGE_EPSILON} an auditor will ask why."
    )


def chance(delta: float) -> str:
    """Write a small probability in words."""
    return f"1 in {1 / delta:,.0f}" if delta >= _LEAST_WRITTEN_OUT else f"{delta:g}"


def what_delta_means(promise: Promise, spent: Fraction) -> str:
    """Say what delta means, for a data officer; empty for pure epsilon."""
    if not promise.delta:
        return ""
    rarer, unit = promise.delta / 1000, "person" if promise.events else "row"
    return (
        f"Delta is the chance that noise falls so extremely that epsilon does not hold: at most "
        f"{chance(float(promise.delta))} for a {unit}. Even then no row is shown. The promise "
        f"weakens gradually: except for {chance(float(rarer))} an epsilon of "
        f"{_words(epsilon_of(spent, rarer))} holds. Pure epsilon (delta 0) has no such exception, "
        "and usually needs more noise."
    )


def not_promised(promise: Promise, spent: Fraction) -> tuple[str, ...]:
    """Say what an epsilon for one row does not promise, for a data officer."""
    one, two = promise.delivered(spent), promise.delivered(spent, rows=2)
    more = (
        "with k rows more than k times as much" if promise.delta else "with k rows k times as much"
    )
    add_up = (
        "Releases add up: a row that was in several releases, by Parley or by any other software, "
        "has at most the sum of their epsilons and the sum of their deltas. This statement counts "
        "one release."
        if promise.delta
        else "Releases add up: a row that was in several releases, by Parley or by any other "
        "software, has the sum of their epsilons. This statement counts one release."
    )
    if promise.rows or promise.events:
        add_up = add_up.replace("a row that was", "a person who was")
    if promise.events:
        persons = (
            "A person in the tables of two owners, or under two identifiers, is protected less: "
            f"the epsilon is {_words(two)} instead of {_words(one)}."
        )
    elif promise.rows:
        persons = (
            f"A person with more rows than {_rows_of(promise)}, under several identifiers or with "
            f"more owners, is protected less: with twice as many the epsilon is {_words(two)} "
            f"instead of {_words(one)}."
        )
    else:
        persons = (
            "A person with several rows is protected less: with two rows, of one owner or of two, "
            f"the epsilon is {_words(two)} instead of {_words(one)}, {more}."
        )
    return (
        persons,
        add_up,
        (
            "What is true of a group is true of its members: a reader who learns that most smokers "
            "of an age are ill may conclude it of any smoker, whether that row was counted or not."
        ),
        "The schema and the number of rows of each owner are public, and no noise protects them.",
    )


def shortcomings(
    *,
    source_private: bool,
    clear_aggregation: bool = False,
    rows_agreed: bool = True,
    rehearsal: bool = False,
) -> tuple[str, ...]:
    """Say why a run is not private; empty for a run that is."""
    reasons = [REHEARSAL] if rehearsal else []
    if not source_private:
        reasons.append(SEEDED)
    if clear_aggregation:
        reasons.append(CLEAR_AGGREGATION)
    if not rows_agreed:
        reasons.append(ROWS_NOT_AGREED)
    return tuple(reasons)


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """Everything that has to be said about the privacy of one release."""

    promise: Promise
    accountant: Accountant
    protections: Sequence[Protection]
    not_private_because: Sequence[str]  # see `shortcomings`; empty for a private run
    notes: Sequence[str] = ()
    may_miss: int = 0  # up to how many parties may be missing before the noise is too small
    # For each party that is not in all sums, the first step (from 0) without it.
    missing: Mapping[str, int] = field(default_factory=dict)
    # For each party that left and is counted, after how many sums (the last one may be among them).
    left: Mapping[str, int] = field(default_factory=dict)
    # About boxes of key shares: who could not open whose, in which step (from 0), and who left.
    disputes: Sequence[Mapping[str, object]] = ()
    criteria: Sequence[Mapping[str, object]] = ()
    # The SHA-256 of the manifest of the release that was built on; empty if none was.
    prior: str = ""

    def __post_init__(self) -> None:
        if not self.protections:
            raise LocalError("an epsilon means nothing without an adversary: name at least one")

    @property
    def private(self) -> bool:
        return not self.not_private_because

    @property
    def delivered(self) -> Fraction:
        """The epsilon, at the promise's delta, of the party that paid most."""
        return self.promise.delivered(self.accountant.most_spent)

    def _paid(self, party: str) -> Fraction:
        return self.promise.delivered(self.accountant.spent(party))

    def as_dict(self) -> dict[str, object]:
        accountant, promise = self.accountant, self.promise
        parties = accountant.parties
        claims = [promise.delivered(accountant.claimed(party)) for party in parties]
        # Of this run: no bound where it is below what a party paid.
        realised = {party: promise.delivered(accountant.realised(party)) for party in parties}
        return {
            "format": "parley privacy statement",
            "version": VERSION,
            "private": self.private,
            "not_private_because": list(self.not_private_because),
            "epsilon_requested": shown(promise.epsilon),
            "epsilon_delivered": shown(self.delivered),
            "epsilon_realised": shown(max(realised.values(), default=Fraction(0))),
            "epsilon_claimed_by_paper": shown(max(claims, default=Fraction(0))),
            "delta": shown(promise.delta) if promise.delta else 0,
            "delta_delivered": shown(promise.delta) if promise.delta else 0,
            "rho": shown(accountant.most_spent) if promise.delta else None,
            "epsilon_by_delta": self._curve(),
            "parties": {party: shown(self._paid(party)) for party in parties},
            "realised": {party: shown(epsilon) for party, epsilon in realised.items()},
            "exact": {
                "epsilon_requested": str(promise.epsilon),
                "epsilon_delivered": str(self.delivered),
                "delta": str(promise.delta),
                "rho": str(accountant.most_spent) if promise.delta else None,
                "parties": {party: str(self._paid(party)) for party in parties},
                "realised": {party: str(epsilon) for party, epsilon in realised.items()},
                "parties_paid": {party: str(accountant.spent(party)) for party in parties},
            },
            "may_miss": self.may_miss,
            "missing": dict(self.missing),
            **self._leaving(),
            "prior": self.prior or None,
            "currency": promise.currency,
            "steps": [_step(charge, promise.currency) for charge in accountant.charges],
            "unit_of_privacy": unit_of_privacy(promise),
            "neighbours": neighbour_relation(promise),
            "adversaries": [
                {
                    "against": protection.against,
                    "epsilon": None if protection.epsilon is None else shown(protection.epsilon),
                    "assumes": protection.assumes,
                }
                for protection in self.protections
            ],
            "not_promised": list(not_promised(promise, accountant.most_spent)),
            "what_delta_means": what_delta_means(promise, accountant.most_spent),
            "mechanisms": sorted({charge.mechanism for charge in accountant.charges}),
            "sampler": SAMPLER_WITH_DELTA if promise.delta else SAMPLER,
            "notes": list(self.notes),
            "criteria": [dict(criterion) for criterion in self.criteria],
            "versions": versions(),
        }

    def _leaving(self) -> dict[str, object]:
        """Return the keys that only the statement of a study has that parties left."""
        entries = {
            "left": dict(self.left),
            "disputes": [dict(dispute) for dispute in self.disputes],
        }
        return {key: value for key, value in entries.items() if value}

    def _curve(self) -> list[dict[str, float]]:
        """Return the epsilon that holds at some other deltas; nothing for pure epsilon."""
        if not self.promise.delta:
            return []
        deltas = sorted({*_CURVE, self.promise.delta}, reverse=True)
        spent = self.accountant.most_spent
        return [
            {"delta": shown(delta), "epsilon": shown(epsilon_of(spent, delta))} for delta in deltas
        ]


def _words(epsilon: Fraction) -> str:
    """Write an epsilon in six digits; the exact value is in privacy.json."""
    return f"{shown(epsilon):g}"


def versions() -> dict[str, str]:
    """Return the versions of what drew and computed the release."""
    numbers = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            numbers[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            numbers[library] = "not installed"
    return numbers


def minor_version(version: str) -> tuple[int, int] | None:
    """Return the first two numbers of a version of parley; None if it has none."""
    match = _MINOR.match(version)
    return None if match is None else (int(match[1]), int(match[2]))


def _step(charge: Charge, currency: str) -> dict[str, object]:
    most = shown(max(charge.costs.values()))
    parameter = None if charge.scale is None else shown(charge.scale)
    return {
        "step": charge.step,
        "mechanism": charge.mechanism,
        "epsilon": most if currency == "epsilon" else None,
        "rho": most if currency == "rho" else None,
        "parties": {party: shown(cost) for party, cost in charge.costs.items()},
        "sensitivities": {
            party: shown(sensitivity) for party, sensitivity in charge.sensitivities.items()
        },
        "sensitivity_norm": charge.norm if charge.sensitivities else None,
        "scale": parameter if charge.parameter == "scale" else None,
        "variance": parameter if charge.parameter == "variance" else None,
        "claimed_by_paper": None
        if charge.claimed is None
        else {party: shown(cost) for party, cost in charge.claimed.items()},
    }
