"""What precedes the first step: who exchanges seeds of masks with whom."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import pytest

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.masks import partners
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.exchanges.commitments import COMMITMENTS
from common.exchanges.setup import (
    curator_set_up,
    party_set_up,
    seed_partners,
    with_hybrid_masks,
)
from common.privacy.randomness import SeededRandomSource
from common.study.document import Study
from common.study.members import Member
from common.study.messages import StepMessage
from common.study.sides import Memory
from tests.harness.run_script import schema_of


def large_study(parties, **terms):
    members = [
        Member(name=f"p{i}", rows=9, identity=Identity.generate(SeededRandomSource(i)).public)
        for i in range(parties)
    ]
    return Study(
        name="many", schema=schema_of((2, 2)), members=tuple(members), epsilon=Fraction(1),
        method="dp-subn", aggregation=Aggregation.MASKED, **terms,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parties", "cohorts", "colluders"), [(2, 1, 1), (5, 2, 1), (40, 1, 1), (80, 2, 3), (80, 1, 40)]
)
def test_seeds_are_exchanged_with_every_mask_partner_of_every_sum(parties, cohorts, colluders):
    study = large_study(parties, cohorts=cohorts, colluders=colluders)
    names = study.parties
    bounds = [parties * number // cohorts for number in range(cohorts + 1)]
    orders = [names, *(names[a:b] for a, b in pairwise(bounds))]
    for name in names:
        before, after = seed_partners(study, name)
        assert all(names.index(a) < names.index(name) < names.index(b)
                   for a in before for b in after)  # fmt: skip
        for order in (order for order in orders if name in order):
            shared = min(colluders, len(order) - 1)
            places = partners(order.index(name), parties=len(order), colluders=shared)
            assert {order[place] for place in places} <= {*before, *after}
        for other in after:
            assert name in seed_partners(study, other)[0], "and both ends know of it"
    if parties == 80 and cohorts == 1:
        assert len(seed_partners(study, names[0])[1]) < parties - 1


@pytest.mark.parametrize(("parties", "colluders", "may_miss"), [(7, 1, 2), (50, 1, 3), (60, 8, 4)])
def test_where_parties_go_missing_seeds_reach_every_later_partner(parties, colluders, may_miss):
    """Whoever is missing, partners of the sums of the rest have exchanged seeds, both ways."""
    study = large_study(parties, colluders=colluders, may_miss=may_miss)
    names = study.parties
    exchanged = {name: set(seed_partners(study, name)[1]) for name in names}
    assert all(seed_partners(study, name)[0] == seed_partners(study, name)[1] for name in names)
    assert all(name in exchanged[other] for name in names for other in exchanged[name])
    spread = [names[i * (parties // may_miss)] for i in range(may_miss)]
    for gone in (names[:may_miss], names[3 : 3 + may_miss], tuple(spread)):
        for missing in range(may_miss + 1):
            left = [name for name in names if name not in gone[:missing]]
            for place, name in enumerate(left):
                terms = {"colluders": colluders, "may_miss": may_miss - missing}
                places = partners(place, parties=len(left), **terms)
                assert {left[other] for other in places} <= exchanged[name]
    if parties == 50:
        assert len(exchanged[names[0]]) == 32 + 2 * may_miss < parties - 1


def test_a_new_study_has_hybrid_masks_if_it_can():
    study = large_study(5)
    assert with_hybrid_masks(study).agreement == "hybrid"
    assert with_hybrid_masks(study).digest != study.digest
    assert with_hybrid_masks(replace(study, may_miss=1)).agreement == "hybrid"
    clear = {"aggregation": Aggregation.CLEAR}
    assert with_hybrid_masks(replace(study, **clear)).agreement == ""
    with pytest.raises(InputError, match="agreement: 'hybrid' needs masks"):
        replace(study, agreement="hybrid", **clear)


def test_a_party_that_commits_to_nothing_can_leave_after_all_seeds_are_in():
    """It sends its seeds, and withholds the commitment that an honest party sends before them."""
    study = replace(large_study(4, may_miss=1, colluders=0), agreement="hybrid", commitments=True)
    roster, curator = study.roster, curator_set_up(study, None)
    sides = {}
    for number, name in enumerate(study.parties):
        identity = Identity.generate(SeededRandomSource(number))
        memory = Memory(LocalParty(name=name, identity=identity, roster=roster))
        source = SeededRandomSource(name)
        rows = SimpleNamespace(digest="0" * 64)
        sides[name] = party_set_up(study, memory, lambda step, source=source: source, b"", rows)
    seeds, commitments = [], []
    for name, side in sides.items():
        for post in side.begin():
            (commitments if post.round == COMMITMENTS else seeds).append((name, post))
    told = [move for sent in seeds for move in curator.receive(*arriving(study, *sent))]
    for name, post in commitments[:-1]:
        told += curator.receive(*arriving(study, name, post))
    assert curator.waiting_for == ("p3",)
    told += curator.without("p3")
    assert curator.done
    for post in (post for post in told if post.to != "p3"):
        sides[post.to].receive(arriving(study, "", post)[1])
    assert all(sides[name].done and sides[name].absent == {"p3"} for name in ("p0", "p1", "p2"))


def arriving(study, sender, post):
    return sender, StepMessage(study=study.digest, step=0, round=post.round, payload=post.payload)
