"""The methods by name: a study's plan, what its steps cost, and what may be said about it.

plan = plan_of(study)                       # one copy for every role
accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import assert_never

from common.crypto.sum_plan import Aggregation, Noise
from common.errors import InputError
from common.privacy.accountant import Accountant, Release, laplace_release
from common.privacy.statement import CLEAR_AGGREGATION, SEEDED, PrivacyStatement, Protection
from common.study import Study
from common.subn.dp_ccbn import dp_ccbn
from common.subn.dp_subn import dp_subn
from common.subn.floor import floor
from common.subn.independent import independent
from common.subn.plus_budget import PublicFacts
from common.subn.script import Script, ScriptedPlan
from common.subn.steps import ChoiceStep, Model, Plan, ReplaceStep, Step, SumStep
from common.subn.subn_plus import SubnPlusPlan

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
    reasons = [] if source_private else [SEEDED]
    if study.aggregation is Aggregation.CLEAR and _sums(study):
        reasons.append(CLEAR_AGGREGATION)
    return PrivacyStatement(
        requested=study.epsilon,
        accountant=accountant,
        protections=_protections(study, accountant),
        not_private_because=reasons,
        notes=_notes(study, accountant),
    )


def _protections(study: Study, accountant: Accountant) -> list[Protection]:
    delivered = accountant.delivered
    parties = [
        Protection(against="the public", epsilon=delivered, assumes="sees what is published"),
        _curator(study, delivered),
    ]
    if len(study.members) == 1:
        return parties
    return [*parties, *_other_parties(study, delivered)]


def _curator(study: Study, delivered: Fraction) -> Protection:
    who = "the curator"
    if not _sums(study):
        return Protection(against=who, epsilon=delivered, assumes="it is sent noisy models only")
    if study.aggregation is Aggregation.CLEAR:
        return Protection(against=who, epsilon=None, assumes="it added up exact counts")
    if study.noise is Noise.ONE_SHARE:
        assumes = (
            "no party tells it anything, it made its key as it should, and it proves that it "
            "selected one share of noise"
        )
    elif _withstands_pooling(study):
        assumes = (
            "the noise is the parties' own, so it cannot switch it off; "
            f"up to {study.effective_colluders} of them may tell it all they know"
        )
    else:
        assumes = "no party tells it anything"
    return Protection(against=who, epsilon=delivered, assumes=assumes)


def _sums(study: Study) -> bool:
    """Whether anything is added up: otherwise every party publishes a model of its own."""
    return study.method != "independent"


def _withstands_pooling(study: Study) -> bool:
    """Whether the curator and tolerated colluders together still see noisy sums only.

    The paper's ring has no masks, so that a neighbour and the curator can open partial products. In
    the clear the curator has every party's own vector, under a share of the noise.
    """
    return study.profile == "sound" and study.aggregation is not Aggregation.CLEAR


def _other_parties(study: Study, delivered: Fraction) -> list[Protection]:
    if not _sums(study):
        return [
            Protection(
                against="all other parties together, and the curator",
                epsilon=delivered,
                assumes="each party's model is made by itself alone",
            )
        ]
    if study.noise is Noise.ONE_SHARE:
        chance = Fraction(1, len(study.members))
        return [
            Protection(
                against="another party",
                epsilon=None,
                assumes="every sum carries one party's noise: that party can subtract it, and a "
                f"party that subtracts its own share is right with probability {chance}",
            )
        ]
    if study.profile == "paper" and study.method == "dp-subn":
        return [
            Protection(
                against="another party",
                epsilon=None,
                assumes="a running statistic carries the noise of the party whose turn was last: "
                "that party can subtract it",
            )
        ]
    limit = study.effective_colluders
    if limit == 0:
        return [
            Protection(
                against="another party",
                epsilon=None,
                assumes="the study tolerates no colluders: a party can subtract its own share of "
                "the noise",
            )
        ]
    who = "another party" if limit == 1 else f"up to {limit} other parties together"
    alone = "with or without" if _withstands_pooling(study) else "without"
    return [
        Protection(
            against=f"{who}, {alone} the curator",
            epsilon=delivered,
            assumes="the noise of the parties that do not collude makes up the whole; messages "
            "between parties are sealed to keys pinned in the study",
        )
    ]


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
