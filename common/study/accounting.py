"""What the steps of a study cost, and what may be said about it.

accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, method, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from common.crypto.sums.plan import Aggregation
from common.privacy.accountant import Accountant, Charge
from common.privacy.statement import PrivacyStatement, shortcomings
from common.study.document import Study
from common.study.method import Method
from common.study.protections import protections_of
from common.study.steps import Step


def account(study: Study, steps: Iterable[Step]) -> Accountant:
    """Charge every step, party by party, with what it truly costs.

    In the sound profile the study's budget is everybody's cap, so a method that would cost more
    than it says is refused here. In the paper's profile there is no cap: the paper's own count
    stands beside the truth as a claim.

    Raises:
        PolicyError: the steps cost a party more than the study says.
    """
    promise = study.promise
    cap = promise.budget if study.profile == "sound" else None
    accountant = Accountant(
        {member.name: cap for member in study.members}, currency=promise.currency
    )
    for step in steps:
        accountant.charge(charge_of(step))
    return accountant


def charge_of(step: Step) -> Charge:
    """What the rows of each party pay for a step."""
    law = step.law
    charge = Charge(
        step=step.name, mechanism=step.mechanism, costs=step.costs, claimed=step.claimed
    )
    if law is None:
        return charge
    moved = {party: own.in_norm(law.norm) for party, own in step.sensitivities.items()}
    return replace(
        charge, sensitivities=moved, scale=law.scale, parameter=law.parameter, norm=law.norm
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
    return PrivacyStatement(
        promise=study.promise,
        accountant=accountant,
        protections=protections_of(study, method, study.promise.delivered(accountant.most_spent)),
        not_private_because=shortcomings(
            source_private=source_private,
            clear_aggregation=study.aggregation is Aggregation.CLEAR and method.sums,
        ),
        notes=_notes(study, accountant),
    )


def _notes(study: Study, accountant: Accountant) -> list[str]:
    if study.profile == "sound":
        return ["Profile sound: the epsilon printed is the epsilon delivered."]
    lines = ["Profile paper: the noise is the paper's, the epsilons here are the true ones."]
    for party in accountant.parties:
        spent, claimed = accountant.spent(party), accountant.claimed(party)
        if spent != claimed:
            lines.append(
                f"Party {party}: the paper claims {claimed}, the true epsilon is {spent}, because "
                "its rows are under fresh noise in every release from its turn on."
            )
    return lines
