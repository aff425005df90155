"""What the steps of a study cost, who is protected from whom, and what may be said about it.

accountant = account(study, steps)          # the steps that were made, in order
statement = statement_of(study, method, accountant, source_private=True)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from common.crypto.sums.plan import Aggregation, Noise
from common.privacy.accountant import Accountant, Charge
from common.privacy.statement import PrivacyStatement, Protection, shortcomings, suspicion
from common.study.document import Study
from common.study.method import Method
from common.study.steps import Step
from common.wording import many


def account(study: Study, steps: Iterable[Step]) -> Accountant:
    """Charge every step, party by party, with what it truly costs.

    In the sound profile the study's budget is every party's cap, so a method that would cost more
    than it says is refused here, with PolicyError. In the paper's profile there is no cap: the
    paper's own count stands beside the truth as a claim.
    """
    promise = study.promise
    cap = promise.budget if study.profile == "sound" else None
    accountant = Accountant(dict.fromkeys(study.parties, cap), currency=promise.currency)
    for step in steps:
        accountant.charge(charge_of(step))
    return accountant


def charge_of(step: Step) -> Charge:
    """Return what the rows of each party pay for a step."""
    law = step.law
    charge = Charge(
        step=step.name,
        mechanism=step.mechanism,
        costs=step.costs,
        claimed=step.claimed,
        realised=step.realised,
    )
    if law is None:
        return charge
    moved = {
        party: sensitivity.in_norm(law.norm) for party, sensitivity in step.sensitivities.items()
    }
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
    left: Collection[str] = (),
    disputes: Sequence[Mapping[str, object]] = (),
) -> PrivacyStatement:
    """Say who is protected from whom in this study, and what it cost.

    Row counts are agreed if they were agreed without a look at people's rows. `left` are the
    parties that left the study, and `disputes` those about boxes of key shares.
    """
    sums = [charge.costs for charge in accountant.charges]
    missing = missing_in(study, sums)
    counted = {name: missing.get(name, len(sums)) for name in study.parties if name in left}
    counted = {name: number for name, number in counted.items() if number}
    return PrivacyStatement(
        promise=study.promise,
        accountant=accountant,
        protections=protections_of(study, method, study.promise.delivered(accountant.most_spent)),
        not_private_because=shortcomings(
            source_private=source_private,
            rows_agreed=rows_agreed,
            clear_aggregation=study.aggregation is Aggregation.CLEAR and method.sums,
            rehearsal=study.rehearsal,
        ),
        notes=[
            *_notes(study, accountant, missing=missing),
            *_notes_on_leaving(counted, disputes, sums=len(sums)),
        ],
        may_miss=study.may_miss,
        missing=missing,
        left=counted,
        disputes=disputes,
        criteria=criteria,
        prior=study.prior,
    )


def missing_in(study: Study, sums: Sequence[Collection[str]]) -> dict[str, int]:
    """Return, for each party that went missing, the first step without it."""
    if not study.may_miss:
        return {}
    first = {
        name: next((n for n, there in enumerate(sums) if name not in there), None)
        for name in study.parties
    }
    return {name: number for name, number in first.items() if number is not None}


def _notes(study: Study, accountant: Accountant, *, missing: Mapping[str, int]) -> Iterator[str]:
    if study.profile == "sound":
        yield "Profile sound: the epsilon printed is the epsilon delivered."
    else:
        yield "Profile paper: the noise is the paper's, the epsilons here are the true ones."
        yield from (
            f"Party {party}: the paper claims {study.epsilon}, the mechanism's bound is "
            f"{accountant.spent(party)}, because its rows are under fresh noise in every release "
            f"from its turn on. This run realised {accountant.realised(party)}, which depends on "
            "what was published and is no bound."
            for party in study.parties
            if accountant.spent(party) > study.epsilon
        )
    if study.may_miss:
        parties = len(study.members)
        shares = parties - study.effective_colluders - study.may_miss
        yield (
            f"Up to {study.may_miss} of {parties} parties may go missing: any {shares} "
            "shares make up the whole noise, so a sum of all parties carries "
            f"{float(study.noise_shares(parties)):.3g} times its variance."
        )
    for name, number in missing.items():
        before = "in no sum" if number == 0 else f"in the sums before step {number + 1} only"
        yield (
            f"Party {name} went missing: its {many(study.rows_of[name], study.schema.row)} are "
            f"{before}. Later sums were scaled up by the public row counts."
        )
    if study.prior:
        yield (
            "Prior: noisy sums were drawn towards the table of an earlier release (SHA-256 of its "
            f"manifest: {study.prior}), the more the less they differ from it. That release is "
            "public, so this costs no privacy. Its own epsilon is not in this statement: rows that "
            "are in both have paid both."
        )


def _notes_on_leaving(
    left: Mapping[str, int], disputes: Sequence[Mapping[str, object]], *, sums: int
) -> Iterator[str]:
    for name, number in left.items():
        if number == sums:  # of the others, a note says that they went missing
            yield (
                f"Party {name} left after sum {number}, the last one: its rows are in every sum, "
                "and it was not there for the end of the study."
            )
    for dispute in disputes:
        verdict = (
            "and the box did not open for any other party"
            if dispute["left"] == dispute["dealer"]
            else "and the box opened for every other party"
        )
        yield (
            f"Party {dispute['receiver']} said that it could not open the key shares of party "
            f"{dispute['dealer']} in step {int(str(dispute['step'])) + 1}, {verdict}: "
            f"{dispute['left']} was left out."
        )


def protections_of(study: Study, method: Method, epsilon: Fraction) -> list[Protection]:
    """List every adversary of this study, and whether it is held off."""
    about = "person" if study.person_rows else "row"
    public = Protection(
        against="the public",
        epsilon=epsilon,
        assumes=f"it sees nothing but what is published; "
        f"{suspicion(float(epsilon), float(study.delta), about=about)}",
    )
    protections = [public, _curator(study, method, epsilon)]
    if len(study.members) > 1:
        more = method.assumes(study)
        protections += [
            replace(protection, assumes=f"{protection.assumes}; {more}")
            if more and protection.epsilon is not None
            else protection
            for protection in _other_parties(study, method, epsilon)
        ]
    return protections


def _withstands_pooling(study: Study) -> bool:
    """Return whether the curator and tolerated colluders together see noisy sums only.

    The paper's ring has no masks, so that a neighbour and the curator can open partial products;
    in the clear the curator needs no party's help.
    """
    return study.profile == "sound" and study.aggregation is not Aggregation.CLEAR


def _curator(study: Study, method: Method, epsilon: Fraction) -> Protection:
    if not method.sums:
        assumes = "it is sent noisy models only"
    elif study.aggregation is Aggregation.CLEAR:
        return _not_held_off(
            "the curator",
            "it adds up in the clear: it is sent each party's own counts, with only a part of the "
            "noise in them",
        )
    elif study.noise is Noise.ONE_SHARE:
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
    return Protection(against="the curator", epsilon=epsilon, assumes=assumes)


def _other_parties(study: Study, method: Method, epsilon: Fraction) -> list[Protection]:
    if not method.sums:
        return [
            Protection(
                against="all other parties together, and the curator",
                epsilon=epsilon,
                assumes="each party's model is made by itself alone",
            )
        ]
    if study.noise is Noise.ONE_SHARE:
        chance = Fraction(1, len(study.members))
        return [
            _not_held_off(
                "another party",
                "every sum carries one party's noise: that party can subtract it, and a party that "
                f"subtracts its own share is right with probability {chance}",
            )
        ]
    if study.profile == "paper":
        return _of_the_paper(study, method, epsilon)
    return _colluders(study, epsilon)


def _of_the_paper(study: Study, method: Method, epsilon: Fraction) -> list[Protection]:
    pooled = _not_held_off(
        "the curator and another party together",
        "partial sums on their way from party to party carry no masks: the two can open them",
    )
    if not method.replaces_noise:
        return [*_colluders(study, epsilon), pooled]
    alone = _not_held_off(
        "another party",
        "a running statistic carries the noise of the party whose turn was last: that party can "
        "subtract it",
    )
    return [alone, pooled]


def _colluders(study: Study, epsilon: Fraction) -> list[Protection]:
    """List the parties that subtract their own shares of distributed noise."""
    limit = study.effective_colluders
    if limit == 0:
        return [
            _not_held_off(
                "another party",
                "the study tolerates no colluders: a party can subtract its own share of the noise",
            )
        ]
    who = "another party" if limit == 1 else f"up to {limit} other parties together"
    alone = "with or without" if _withstands_pooling(study) else "without"
    tolerated = Protection(
        against=f"{who}, {alone} the curator",
        epsilon=epsilon,
        assumes="the noise of the parties that do not collude makes up the whole"
        + (f", even if {_others_are(study.may_miss)} missing" if study.may_miss else "")
        + "; messages between parties are sealed to keys pinned in the study",
    )
    if limit == len(study.members) - 1:
        return [tolerated]
    too_many = _not_held_off(
        f"{limit + 1} or more other parties together",
        "when they subtract their noise, less is left than the study counts on; invented parties "
        "do collude, so find out whose identities these are",
    )
    return [tolerated, too_many]


def _others_are(number: int) -> str:
    return "another one is" if number == 1 else f"{number} others are"


def _not_held_off(against: str, why: str) -> Protection:
    return Protection(against=against, epsilon=None, assumes=why)
