"""What the steps of a study cost, and what may be said about it.

accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, method, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from common.crypto.sums.plan import Aggregation
from common.privacy.accountant import Accountant, Charge
from common.privacy.statement import PrivacyStatement, shortcomings
from common.study.document import Study
from common.study.method import Method
from common.study.protections import protections_of
from common.study.steps import Step
from common.wording import many


def account(study: Study, steps: Iterable[Step]) -> Accountant:
    """Charge every step, party by party, with what it truly costs.

    In the sound profile the study's budget is every party's cap, so a method that would cost more
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
    study: Study,
    method: Method,
    accountant: Accountant,
    *,
    source_private: bool,
    rows_agreed: bool = True,
    criteria: Sequence[Mapping[str, object]] = (),
) -> PrivacyStatement:
    """Who is protected from whom in this study, and what it cost.

    Row counts are agreed if they were agreed without a look at people's rows.
    """
    bounds = method.bound(study)
    paid = accountant.most_spent if bounds is None else max(bounds.values())
    missing = missing_in(study, [charge.costs for charge in accountant.charges])
    return PrivacyStatement(
        promise=study.promise,
        accountant=accountant,
        bounds=bounds,
        protections=protections_of(study, method, study.promise.delivered(paid)),
        not_private_because=shortcomings(
            source_private=source_private,
            rows_agreed=rows_agreed,
            clear_aggregation=study.aggregation is Aggregation.CLEAR and method.sums,
        ),
        notes=[
            *_notes(study, accountant, bounds),
            *_missing_notes(study, missing),
            *_prior_notes(study),
        ],
        may_miss=study.may_miss,
        missing=missing,
        criteria=criteria,
        prior=study.prior,
    )


def missing_in(study: Study, sums: Sequence[Collection[str]]) -> dict[str, int]:
    """For each party that went missing, the first step without it."""
    if not study.may_miss:
        return {}
    first = {
        member.name: next((n for n, there in enumerate(sums) if member.name not in there), None)
        for member in study.members
    }
    return {name: number for name, number in first.items() if number is not None}


def _missing_notes(study: Study, missing: Mapping[str, int]) -> list[str]:
    if not study.may_miss:
        return []
    shares = len(study.members) - study.effective_colluders - study.may_miss
    told = (
        f"Up to {study.may_miss} of {len(study.members)} parties may go missing: any {shares} "
        "shares make up the whole noise, so a sum of all parties carries "
        f"{float(study.noise_shares(len(study.members))):.3g} times its variance."
    )
    lines, rows = [told], {member.name: member.rows for member in study.members}
    for name, number in missing.items():
        before = "in no sum" if number == 0 else f"in the sums before step {number + 1} only"
        lines.append(
            f"Party {name} went missing: its {many(rows[name], 'row')} are {before}. Later sums "
            "were scaled up by the public row counts."
        )
    return lines


def _prior_notes(study: Study) -> list[str]:
    if not study.prior:
        return []
    words = (
        "Prior: noisy sums were drawn towards the table of an earlier release (SHA-256 of its "
        f"manifest: {study.prior}), the more the less they differ from it. That release is public, "
        "so this costs no privacy. Its own epsilon is not in this statement: rows that are in both "
        "have paid both."
    )
    return [words]


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
