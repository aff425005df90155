"""The privacy statement: what was promised, to whom, and what it cost, for people and for scripts.

`as_dict` is privacy.json. Its keys are fixed. Numbers are never below the exact value beside them;
exact values are strings like "3/10". `as_text` says the same in plain words.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata

from common.errors import LocalError
from common.privacy.accountant import Accountant, Release
from common.privacy.budget import shown

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
SEEDED = "the random numbers came from a seed and can be repeated"
CLEAR_AGGREGATION = "the parties' exact counts were added up in the clear"

_NEARLY_SURE = 99
_LIBRARIES = ("parley", "numpy", "gmpy2", "cryptography", "phe")


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """What one kind of adversary can learn.

    Attributes:
        against: who: the public, the curator, another party, some parties together.
        epsilon: the bound on what they learn about any one row; None if they are not held off.
        assumes: what the bound rests on.
    """

    against: str
    epsilon: Fraction | None
    assumes: str


def suspicion(epsilon: float) -> str:
    """What an epsilon means, for whoever does not think in exponents."""
    sure = 100 / (1 + math.exp(-epsilon))
    most = f"about {sure:.0f} % at most" if sure < _NEARLY_SURE else "all but certain"
    return f"a suspicion of 50 % about a row can become {most}"


def not_promised(epsilon: Fraction) -> tuple[str, ...]:
    """What an epsilon for one row does not say, in sentences for whoever signs for the people.

    Args:
        epsilon: what one row pays.
    """
    return (
        (
            "A person with several rows is protected less: with two rows, of one owner or of two, "
            f"the epsilon is {_words(2 * epsilon)} instead of {_words(epsilon)}, with k rows k "
            "times as much."
        ),
        (
            "Releases add up: the epsilon of a row that was in several releases, by Parley or by "
            "anything else, is the sum of theirs. This is the epsilon of one."
        ),
        (
            "What is true of a group is true of its members: who learns that most smokers of an "
            "age are ill may conclude so of a smoker, whether that row was counted or not."
        ),
        "The schema and the number of rows of each owner are public, and no noise protects them.",
    )


def shortcomings(*, source_private: bool, clear_aggregation: bool = False) -> tuple[str, ...]:
    """Why a run is not private; empty for a run that is."""
    reasons = [] if source_private else [SEEDED]
    if clear_aggregation:
        reasons.append(CLEAR_AGGREGATION)
    return tuple(reasons)


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """Everything that has to be said about the privacy of one release.

    Attributes:
        requested: the epsilon that was asked for.
        accountant: who paid how much for what.
        protections: who is protected from whom.
        not_private_because: see `shortcomings`; empty for a private run.
        notes: further sentences for the reader.
        bounds: the most that each party can pay, where what it paid depends on published results:
            the sum of such payments is no bound. None where it does not.
    """

    requested: Fraction
    accountant: Accountant
    protections: Sequence[Protection]
    not_private_because: Sequence[str]
    notes: Sequence[str] = ()
    bounds: Mapping[str, Fraction] | None = None

    def __post_init__(self) -> None:
        if not self.protections:
            raise LocalError("an epsilon means nothing without an adversary: name at least one")

    @property
    def private(self) -> bool:
        """Whether the numbers below protect anybody."""
        return not self.not_private_because

    @property
    def paid(self) -> Mapping[str, Fraction]:
        """The epsilon of each party's rows: the bound where there is one."""
        accountant = self.accountant
        return self.bounds or {party: accountant.spent(party) for party in accountant.parties}

    @property
    def delivered(self) -> Fraction:
        """The largest epsilon of any party: that of the whole."""
        return max(self.paid.values(), default=Fraction(0))

    def as_dict(self) -> dict[str, object]:
        """The content of privacy.json."""
        accountant = self.accountant
        parties = accountant.parties
        claims = [accountant.claimed(party) for party in parties]
        return {
            "format": "parley privacy statement",
            "version": VERSION,
            "private": self.private,
            "not_private_because": list(self.not_private_because),
            "epsilon_requested": shown(self.requested),
            "epsilon_delivered": shown(self.delivered),
            "epsilon_realised": shown(accountant.delivered),
            "epsilon_claimed_by_paper": shown(max(claims, default=Fraction(0))),
            "delta": 0,
            "parties": {party: shown(epsilon) for party, epsilon in self.paid.items()},
            "realised": {party: shown(accountant.spent(party)) for party in parties},
            "exact": {
                "epsilon_requested": str(self.requested),
                "epsilon_delivered": str(self.delivered),
                "parties": {party: str(epsilon) for party, epsilon in self.paid.items()},
                "realised": {party: str(accountant.spent(party)) for party in parties},
            },
            "steps": [_step(release) for release in accountant.releases],
            "unit_of_privacy": UNIT_OF_PRIVACY,
            "neighbours": NEIGHBOUR_RELATION,
            "adversaries": [
                {
                    "against": protection.against,
                    "epsilon": None if protection.epsilon is None else shown(protection.epsilon),
                    "assumes": protection.assumes,
                }
                for protection in self.protections
            ],
            "not_promised": list(not_promised(self.delivered)),
            "mechanisms": sorted({release.mechanism for release in accountant.releases}),
            "sampler": SAMPLER,
            "notes": list(self.notes),
            "versions": versions(),
        }

    def as_json(self) -> str:
        """privacy.json itself."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n"

    def as_text(self) -> str:
        """The statement in plain words."""
        accountant = self.accountant
        promise = (
            f"This release was made with an epsilon of {_words(self.delivered)} "
            f"({_words(self.requested)} was asked for). What is protected is {UNIT_OF_PRIVACY}: "
            "what is published is at most exp(epsilon) times as likely with one row as with any "
            f"other in its place. Here {NEIGHBOUR_RELATION}."
        )
        lines = [
            promise,
            "",
            "Who is protected from whom:",
            *(_protection_line(protection) for protection in self.protections),
            "",
            "What the rows of each party paid:",
            *(self._party_line(party) for party in accountant.parties),
            "",
            "For what:",
            *(
                f"- {release.step}, {release.mechanism}: {_words(max(release.epsilons.values()))}"
                for release in accountant.releases
            ),
            "",
            "What is not promised:",
            *(f"- {sentence}" for sentence in not_promised(self.delivered)),
        ]
        if not self.private:
            lines = ["NOT PRIVATE: " + "; ".join(self.not_private_because) + ".", "", *lines]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"

    def _party_line(self, party: str) -> str:
        paid, claimed = self.paid[party], self.accountant.claimed(party)
        claim = "" if paid == claimed else f" (the paper would have counted {_words(claimed)})"
        spent = self.accountant.spent(party)
        realised = (
            "" if paid == spent else f"; this run realised {_words(spent)}, which is no bound"
        )
        return f"- {party}: {_words(paid)}{claim}{realised}"


def _protection_line(protection: Protection) -> str:
    bound = (
        "NOT protected" if protection.epsilon is None else f"epsilon {_words(protection.epsilon)}"
    )
    return f"- against {protection.against}: {bound} ({protection.assumes})"


def _words(epsilon: Fraction) -> str:
    """An epsilon for a reader: six digits are enough, the exact value is in privacy.json."""
    return f"{shown(epsilon):g}"


def versions() -> dict[str, str]:
    """The versions of what drew and computed the release."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def _step(release: Release) -> dict[str, object]:
    return {
        "step": release.step,
        "mechanism": release.mechanism,
        "epsilon": shown(max(release.epsilons.values())),
        "parties": {party: shown(cost) for party, cost in release.epsilons.items()},
        "sensitivities": {
            party: shown(sensitivity) for party, sensitivity in release.sensitivities.items()
        },
        "scale": None if release.scale is None else shown(release.scale),
        "claimed_by_paper": None
        if release.claimed is None
        else {party: shown(cost) for party, cost in release.claimed.items()},
    }
