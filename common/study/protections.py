"""Who is protected from whom in a study: what its privacy statement and an owner's review say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from common.crypto.sums.plan import Aggregation, Noise
from common.privacy.statement import Protection, suspicion
from common.study.document import Study
from common.study.method import Method


def protections_of(study: Study, method: Method, epsilon: Fraction) -> list[Protection]:
    """Every adversary that there is in this study, and whether it is held off."""
    public = Protection(
        against="the public",
        epsilon=epsilon,
        assumes=f"it sees nothing but what is published; "
        f"{suspicion(float(epsilon), float(study.delta))}",
    )
    protections = [public, _curator(study, method, epsilon)]
    if len(study.members) > 1:
        more = method.assumes(study)
        protections += [
            replace(each, assumes=f"{each.assumes}; {more}")
            if more and each.epsilon is not None
            else each
            for each in _other_parties(study, method, epsilon)
        ]
    return protections


def _withstands_pooling(study: Study) -> bool:
    """Whether the curator and tolerated colluders together still see noisy sums only.

    The paper's ring has no masks, so that a neighbour and the curator can open partial products;
    in the clear the curator needs no party's help.
    """
    return study.profile == "sound" and study.aggregation is not Aggregation.CLEAR


def _curator(study: Study, method: Method, epsilon: Fraction) -> Protection:
    who = "the curator"
    if not method.sums:
        return Protection(against=who, epsilon=epsilon, assumes="it is sent noisy models only")
    if study.aggregation is Aggregation.CLEAR:
        return Protection(
            against=who,
            epsilon=None,
            assumes="it adds up in the clear: it is sent each party's own counts, with only a part "
            "of the noise in them",
        )
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
    return Protection(against=who, epsilon=epsilon, assumes=assumes)


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
    """Those that subtract their own shares of distributed noise."""
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
        + (f", even if {study.may_miss} others are missing" if study.may_miss else "")
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


def _not_held_off(against: str, why: str) -> Protection:
    return Protection(against=against, epsilon=None, assumes=why)
