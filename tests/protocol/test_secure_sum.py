"""What comes out of a secure sum: exact sums, and noise of exactly the law that was asked for."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from common.crypto.identities.identity import LocalParty
from common.crypto.sums.one_share import SEED_BYTES, Selection
from common.crypto.sums.plan import Aggregation, Noise, SumPlan, draw_noise
from common.errors import InputError, LocalError
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource, below
from common.privacy.secret import Secret
from tests.harness.roles import (
    accept,
    delivered,
    run_secure_sum,
    sum_curator,
    sum_party,
    total_of,
)

STUDY = bytes(range(32))


def make_plan(parties, *, aggregation, private_key=None, noise=Noise.NONE, cells=50, **changes):
    names = changes.pop("names", tuple(f"party-{number}" for number in range(parties)))
    key = private_key.public_key if aggregation is Aggregation.PAILLIER else None
    fields = {
        "study": STUDY,
        "step": 1,
        "parties": names,
        "limits": (1_000,) * parties,
        "cells": cells,
        "noise": noise,
        "aggregation": aggregation,
        "public_key": key,
    }
    return SumPlan(**{**fields, **changes})


def random_vectors(plan, seed):
    generator = np.random.default_rng(seed)
    return {
        name: generator.integers(-limit, limit, plan.cells, endpoint=True)
        for name, limit in zip(plan.parties, plan.limits, strict=True)
    }


@pytest.mark.parametrize("parties", [1, 2, 3, 10])
@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize("masks", [True, False])
def test_without_noise_the_sum_is_exact(
    parties, aggregation, masks, private_key, blinder, identities
):
    plan = make_plan(
        parties,
        aggregation=aggregation,
        private_key=private_key,
        cells=700,
        zero_sum_masks=masks,
        chunk_ciphertexts=2,
    )
    assert aggregation is not Aggregation.PAILLIER or plan.chunks > 2
    vectors = random_vectors(plan, parties)
    total = run_secure_sum(
        plan,
        vectors,
        identities,
        source=SeededRandomSource(parties),
        private_key=private_key,
        blinder=blinder,
    )
    assert np.array_equal(total, sum(vectors.values()))


def test_ten_thousand_random_masked_sums_are_exact_to_the_last_unit(identities):
    source = SeededRandomSource("ten thousand")
    for step in range(2_000):
        parties = 2 + below(2, source)
        limits = tuple(below(1 << (1 + below(50, source)), source) for _ in range(parties))
        plan = make_plan(
            parties,
            aggregation=Aggregation.MASKED,
            step=step,
            limits=limits,
            cells=5 + below(5, source),
        )
        vectors = random_vectors(plan, step)
        total = run_secure_sum(plan, vectors, identities, source=source)
        assert np.array_equal(total, sum(vectors.values()))


def test_ten_thousand_packed_random_sums_are_exact_to_the_last_unit(
    private_key, blinder, identities
):
    """Each cell of a ring's sum is an exact sum of its own; bounds are met, extremes included."""
    source = SeededRandomSource("packed")
    for step, limits in enumerate([(3, 0), (1_000, 50_000, 7), (2**40, 2**41)]):
        plan = make_plan(
            len(limits),
            aggregation=Aggregation.PAILLIER,
            private_key=private_key,
            limits=limits,
            cells=3_400,
            step=step,
        )
        vectors = random_vectors(plan, step)
        for vector, limit in zip(vectors.values(), limits, strict=True):
            vector[:10], vector[10:20] = limit, -limit
        total = run_secure_sum(
            plan, vectors, identities, source=source, private_key=private_key, blinder=blinder
        )
        assert np.array_equal(total, sum(vectors.values()))


def test_chunks_are_pipelined(private_key, blinder, identities):
    """The curator has the first chunk before the second party has the second."""
    plan = make_plan(
        3,
        aggregation=Aggregation.PAILLIER,
        private_key=private_key,
        cells=300,
        chunk_ciphertexts=1,
    )
    roster = {name: identity.public for name, identity in identities.items()}
    first, second, third = (
        sum_party(
            plan,
            LocalParty(name=name, identity=identities[name], roster=roster),
            np.ones(300, dtype=np.int64),
            source=SeededRandomSource(name),
            blinder=blinder,
        )
        for name in plan.parties
    )
    curator = sum_curator(plan, private_key=private_key, source=SeededRandomSource(1))
    for post in first.begin():
        accept(curator, "party-2", passed_on(post, second, third))
    assert plan.chunks > 1
    assert np.array_equal(total_of(curator, plan), np.full(300, 3))


def passed_on(post, *parties):
    """Return what the last of these parties of the ring sends, the first party's post given."""
    for number, party in enumerate(parties):
        (post,) = party.receive(delivered(post, f"party-{number}"))
    return post


def laplace_fit(noise, scale):
    """The p-value of a chi-square test against discrete Laplace noise of this scale."""
    decay = np.exp(-1 / scale)
    edge = int(3 * scale)
    values = np.arange(-edge, edge + 1)
    inner = (1 - decay) / (1 + decay) * decay ** np.abs(values)
    tail = decay ** (edge + 1) / (1 + decay)
    expected = np.concatenate([[tail], inner, [tail]]) * noise.size
    clipped = np.clip(noise, -edge - 1, edge + 1)
    observed = np.bincount(clipped + edge + 1, minlength=expected.size)
    return stats.chisquare(observed, expected).pvalue


def assert_discrete_laplace(noise, scale):
    assert laplace_fit(noise, scale) > 1e-6
    assert laplace_fit(noise, 0.7 * scale) < 1e-9
    assert laplace_fit(noise, 1.3 * scale) < 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("parties", [2, 3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("aggregation", "noise"),
    [
        (Aggregation.PAILLIER, Noise.ONE_SHARE),
        (Aggregation.PAILLIER, Noise.DISTRIBUTED),
        (Aggregation.MASKED, Noise.DISTRIBUTED),
        (Aggregation.CLEAR, Noise.ONE_SHARE),
        (Aggregation.CLEAR, Noise.DISTRIBUTED),
    ],
)
def test_the_noise_in_the_sum_is_one_discrete_laplace(
    parties, aggregation, noise, private_key, blinder, identities
):
    plan = make_plan(
        parties,
        aggregation=aggregation,
        private_key=private_key,
        noise=noise,
        law=DiscreteLaplace(Fraction(5)),
        colluders=0,
        cells=2_500,
    )
    vectors = random_vectors(plan, 1)
    total = run_secure_sum(
        plan,
        vectors,
        identities,
        source=SeededRandomSource(f"{parties} {aggregation} {noise}"),
        private_key=private_key,
        blinder=blinder,
    )
    assert_discrete_laplace(total - sum(vectors.values()), 5)


@pytest.mark.statistical
@pytest.mark.parametrize(("parties", "colluders"), [(2, 1), (3, 1), (10, 4)])
def test_colluders_who_subtract_their_shares_leave_one_discrete_laplace(
    parties, colluders, identities
):
    plan = make_plan(
        parties,
        aggregation=Aggregation.MASKED,
        noise=Noise.DISTRIBUTED,
        law=DiscreteLaplace(Fraction(5)),
        colluders=colluders,
        cells=2_500,
    )
    vectors = random_vectors(plan, 2)
    roster = {name: identity.public for name, identity in identities.items()}
    curator = sum_curator(plan, source=SeededRandomSource("curator"))
    for name in plan.parties:
        member = LocalParty(name=name, identity=identities[name], roster=roster)
        party = sum_party(plan, member, vectors[name], source=SeededRandomSource(name))
        for post in party.begin():
            accept(curator, name, post)
    noise = total_of(curator, plan) - sum(vectors.values())
    for name in plan.parties[:colluders]:
        noise -= draw_noise(plan, SeededRandomSource(name))  # what that colluder drew
    assert_discrete_laplace(noise, 5)


def test_one_share_noise_is_exactly_one_partys_share(private_key, blinder, identities):
    source = SeededRandomSource("whose share")
    roster = {name: identity.public for name, identity in identities.items()}
    seed = source.random_bytes(SEED_BYTES)
    used = set()
    for step in range(6):
        plan = make_plan(
            3,
            aggregation=Aggregation.PAILLIER,
            private_key=private_key,
            noise=Noise.ONE_SHARE,
            law=DiscreteLaplace(Fraction(50)),
            cells=8,
            step=step,
        )
        curator = sum_curator(plan, private_key=private_key, source=source)
        parties = {
            name: sum_party(
                plan,
                LocalParty(name=name, identity=identities[name], roster=roster),
                np.zeros(8, dtype=np.int64),
                source=SeededRandomSource(f"{name} {step}"),
                blinder=blinder,
                selection=Selection(selector=curator.opening, seed=Secret(seed)),
            )
            for name in plan.parties
        }
        (post,) = parties["party-0"].begin()
        accept(curator, "party-2", passed_on(post, parties["party-1"], parties["party-2"]))
        shares = {name: draw_noise(plan, SeededRandomSource(f"{name} {step}")) for name in parties}
        holders = [
            name for name in parties if np.array_equal(total_of(curator, plan), shares[name])
        ]
        assert len(holders) == 1
        used.update(holders)
    assert len(used) > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": Noise.ONE_SHARE}, "do not agree"),
        (
            {"noise": Noise.ONE_SHARE, "law": DiscreteLaplace(Fraction(1))},
            "ask for noise 'distributed'",
        ),
        (
            {"noise": Noise.DISTRIBUTED, "law": DiscreteLaplace(Fraction(1)), "colluders": 3},
            "cannot keep distributed noise",
        ),
        ({"names": ("ada", "ada", "ben")}, "different names"),
        ({"limits": (1, 2)}, "one limit"),
        ({"cells": 0}, "at least one cell"),
        ({"limits": (2**60,) * 3}, "64 bits"),
    ],
)
def test_a_plan_that_cannot_hold_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        make_plan(3, **{"aggregation": Aggregation.MASKED, **changes})


def test_a_paillier_key_belongs_to_paillier_plans_only(private_key):
    for aggregation, key in (
        (Aggregation.PAILLIER, None),
        (Aggregation.MASKED, private_key.public_key),
    ):
        with pytest.raises(InputError, match="only there"):
            make_plan(2, aggregation=aggregation, private_key=private_key, public_key=key)


def test_every_field_is_in_the_digest(private_key):
    plain = make_plan(3, aggregation=Aggregation.MASKED)
    ring = {"aggregation": Aggregation.PAILLIER, "private_key": private_key}
    noisy = {"noise": Noise.DISTRIBUTED, "law": DiscreteLaplace(Fraction(2))}
    others = [
        make_plan(3, aggregation=Aggregation.MASKED, study=bytes(32)),
        make_plan(3, aggregation=Aggregation.MASKED, step=2),
        make_plan(3, aggregation=Aggregation.MASKED, limits=(1_000, 1_000, 1_001)),
        make_plan(3, aggregation=Aggregation.MASKED, cells=51),
        make_plan(3, aggregation=Aggregation.MASKED, **noisy),
        make_plan(
            3, aggregation=Aggregation.MASKED, **{**noisy, "law": DiscreteLaplace(Fraction(3))}
        ),
        make_plan(3, aggregation=Aggregation.MASKED, **noisy, colluders=2),
        make_plan(2, aggregation=Aggregation.MASKED),
        make_plan(3, aggregation=Aggregation.CLEAR),
        make_plan(3, **ring),
        make_plan(3, **ring, zero_sum_masks=False),
        make_plan(3, **ring, chunk_ciphertexts=5),
    ]
    assert len({plan.digest for plan in [plain, *others]}) == len(others) + 1


def test_a_value_beyond_the_declared_limit_never_leaves_the_party(identities):
    plan = make_plan(2, aggregation=Aggregation.MASKED)
    vectors = random_vectors(plan, 1)
    vectors["party-1"][3] = 1_001
    with pytest.raises(LocalError, match="outside the"):
        run_secure_sum(plan, vectors, identities, source=SeededRandomSource(1))
