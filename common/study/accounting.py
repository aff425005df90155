"""What the steps of a study cost, and what may be said about it.

accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, method, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from common.crypto.sums.plan import Aggregation
from common.privacy.accountant import Accountant, Release
from common.privacy.statement import PrivacyStatement, shortcomings
from common.study.document import Study
from common.study.method import Method
from common.study.protections import protections_of
from common.study.steps import Step


def account(study: Study, steps: Iterable[Step]) -> Accountant:
    """Charge every step, party by party, with what it truly costs.

    In the sound profile the study's epsilon is everybody's cap, so a method that would cost more
    than it says is refused here. In the paper's profile there is no cap: the paper's own count
    stands beside the truth as a claim.

    Raises:
        PolicyError: the steps cost a party more than the study says.
    """
    cap = study.epsilon if study.profile == "sound" else None
    accountant = Accountant({member.name: cap for member in study.members})
    for step in steps:
        accountant.charge(_release(step))
    return accountant


def _release(step: Step) -> Release:
    return Release(
        step=step.name,
        mechanism=step.mechanism,
        epsilons=step.costs,
        sensitivities=step.sensitivities,
        scale=None if step.law is None else step.law.scale,
        claimed=step.claimed,
    )


def statement_of(
    study: Study, method: Method, accountant: Accountant, *, source_private: bool
) -> PrivacyStatement:
    """Who is protected from whom in this study, and what it cost.

    Args:
        study: what was agreed.
        method: of the study.
        accountant: as `account` makes it.
        source_private: whether every random bit came from a private source.
    """
    bounds = method.bound(study)
    delivered = accountant.delivered if bounds is None else max(bounds.values())
    return PrivacyStatement(
        requested=study.epsilon,
        accountant=accountant,
        bounds=bounds,
        protections=protections_of(study, method, delivered),
        not_private_because=shortcomings(
            source_private=source_private,
            clear_aggregation=study.aggregation is Aggregation.CLEAR and method.sums,
        ),
        notes=_notes(study, accountant, bounds),
    )


def _notes(
    study: Study, accountant: Accountant, bounds: Mapping[str, Fraction] | None
) -> list[str]:
    if study.profile == "sound":
        return ["Profile sound: the epsilon printed is the epsilon delivered."]
    lines = ["Profile paper: the noise is the paper's, the epsilons here are the true ones."]
    lines += [
        f"Party {party}: the paper claims {study.epsilon}, the mechanism's bound is {bound}, "
        "because its rows are under fresh noise in every release from its turn on. This run "
        f"realised {accountant.spent(party)}, which depends on what was published and is no bound."
        for party, bound in (bounds or {}).items()
        if bound != study.epsilon
    ]
    return lines
