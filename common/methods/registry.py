"""The methods by name: a study's plan, what its steps cost, and what may be said about it.

plan = plan_of(study)                       # one copy for every role
accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import assert_never

from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.methods.dp_ccbn import dp_ccbn
from common.methods.dp_subn.script import dp_subn
from common.methods.floor import floor
from common.methods.independent import independent
from common.methods.subn_plus.budget import PublicFacts
from common.methods.subn_plus.script import SubnPlusPlan
from common.privacy.accountant import Accountant, Release, laplace_release
from common.privacy.statement import PrivacyStatement, shortcomings
from common.study.document import Study
from common.study.protections import adds_up, protections_of
from common.study.script import Script, ScriptedPlan
from common.study.steps import ChoiceStep, Model, Plan, ReplaceStep, Step, SumStep

_SCRIPTS: Mapping[str, Callable[[Study], Script[Model]]] = {
    "dp-subn": dp_subn,
    "dp-ccbn": dp_ccbn,
    "independent": independent,
    "floor": floor,
}


def plan_of(study: Study) -> Plan:
    """A fresh copy of the plan that the study implies.

    Raises:
        InputError: the method cannot do what the study asks of it.
    """
    if study.method == "subn+":
        return _subn_plus(study)
    return ScriptedPlan(_SCRIPTS[study.method](study))


def _subn_plus(study: Study) -> Plan:
    if study.encoding != "own":
        raise InputError('encoding: subn+ keeps the attributes\' own domains; use encoding = "own"')
    return SubnPlusPlan(
        PublicFacts(
            sizes=study.schema.sizes,
            parties=tuple(member.name for member in study.members),
            rows=study.rows,
            epsilon=study.epsilon,
            noise_shares=study.noise_shares(len(study.members)),
        )
    )


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
    match step:
        case SumStep():
            return laplace_release(
                step.name,
                scale=step.scale,
                sensitivities=dict.fromkeys(step.parties, step.sensitivity),
                mechanism=step.mechanism,
            )
        case ReplaceStep():
            scale = step.release.noise_scale
            # [Su16, Theorem 5] counts a release for the party whose turn it is, and nobody else.
            claim = {step.release.party: Fraction(2 * len(step.group.marginals)) / scale}
            return laplace_release(
                step.name,
                scale=scale,
                sensitivities={party: cost * scale for party, cost in step.costs.items()},
                mechanism=step.mechanism,
                claimed=claim,
            )
        case ChoiceStep():
            return Release(step=step.name, mechanism=step.mechanism, epsilons=step.costs)
        case _:
            assert_never(step)


def statement_of(study: Study, accountant: Accountant, *, source_private: bool) -> PrivacyStatement:
    """Who is protected from whom in this study, and what it cost.

    Args:
        study: what was agreed.
        accountant: as `account` makes it.
        source_private: whether every random bit came from a private source.
    """
    return PrivacyStatement(
        requested=study.epsilon,
        accountant=accountant,
        protections=protections_of(study, accountant.delivered),
        not_private_because=shortcomings(
            source_private=source_private,
            clear_aggregation=study.aggregation is Aggregation.CLEAR and adds_up(study),
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
