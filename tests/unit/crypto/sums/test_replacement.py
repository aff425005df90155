"""Noise replacement: the coverage, the shares, and the statistics they lead to."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.crypto.sums.replacement import Coverages, Group, ShareKeeper, Statistics
from common.errors import LocalError, PolicyError
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from tests.harness.roles import run_secure_sum

NAMES = ("ada", "ben", "cyd", "dan")
PEOPLE = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
AB, BC, CD = (0, 1), (1, 2), (2, 3)
SIZES = {AB: 4, BC: 6, CD: 9}
SCALE = Fraction(10)


def open_turn(coverages, party, marginals, *, rows=100, scale=SCALE):
    cells = {marginal: SIZES[marginal] for marginal in marginals}
    return coverages.open_turn(party=party, rows=rows, marginals=cells, law=DiscreteLaplace(scale))


class Run:
    """A whole sequence of turns in one process."""

    def __init__(self, *, aggregation=Aggregation.CLEAR, private_key=None, seed=0):
        self.aggregation, self.private_key = aggregation, private_key
        self.public_key = None if private_key is None else private_key.public_key
        self.coverages, self.statistics, self.step = Coverages(), Statistics(), 0
        self.keepers = {name: ShareKeeper(name) for name in NAMES}
        self.source = SeededRandomSource(f"run {seed}")
        self.generator = np.random.default_rng(seed)
        self.exact = dict.fromkeys(SIZES, 0)
        self.eta = {}

    def turn(self, party, marginals, *, rows=100, scale=SCALE):
        turn = open_turn(self.coverages, party, marginals, rows=rows, scale=scale)
        counts = {
            marginal: self.generator.multinomial(rows, np.full(size, 1 / size))
            for marginal, size in SIZES.items()
        }
        answers = self.keepers[party].answer(turn, counts, self.source)
        totals = []
        for group, answer in zip(turn.groups, answers, strict=True):
            vectors = {party: answer}
            if group.holder is not None:
                vectors[group.holder] = self.keepers[group.holder].hand_over(group)
            limits = turn.limits(group)
            plan = SumPlan(
                study=bytes(32),
                step=self.step,
                parties=tuple(limits),
                limits=tuple(limits.values()),
                cells=group.cells,
                noise=Noise.NONE,
                aggregation=self.aggregation,
                public_key=self.public_key,
            )
            totals.append(
                run_secure_sum(
                    plan, vectors, PEOPLE, source=self.source, private_key=self.private_key
                )
            )
            for marginal, noisy in turn.tables(group, answer).items():
                self.eta[marginal] = noisy - counts[marginal]
                covered_before = 0 if group.holder is None else self.exact[marginal]
                self.exact[marginal] = covered_before + counts[marginal]
        self.statistics.apply(turn, totals)
        self.coverages, self.step = turn.coverages, self.step + 1
        return turn

    def check(self):
        """Every statistic is the exact sum over what it covers plus its holder's share."""
        for marginal, coverage in self.coverages.by_marginal.items():
            noisy = self.statistics[marginal]
            assert np.array_equal(noisy - self.exact[marginal], self.eta[marginal])
            assert self.exact[marginal].sum() == coverage.rows


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_statistics_carry_one_share_through_new_dropped_and_returning_marginals(
    aggregation, private_key
):
    key = private_key if aggregation is Aggregation.PAILLIER else None
    run = Run(aggregation=aggregation, private_key=key)
    run.turn("ada", [AB, BC])
    run.check()
    second = run.turn("ben", [BC, CD])  # AB is dropped, CD is new
    assert [(group.holder, group.marginals) for group in second.groups] == [
        (None, (CD,)),
        ("ada", (BC,)),
    ]
    run.check()
    third = run.turn("cyd", [AB, CD, BC])  # AB comes back from an older holder
    assert [(group.holder, group.marginals) for group in third.groups] == [
        ("ada", (AB,)),
        ("ben", (CD, BC)),
    ]
    run.check()
    coverage = run.coverages.by_marginal
    assert coverage[AB].parties == ("ada", "cyd")
    assert coverage[BC].parties == ("ada", "ben", "cyd")
    assert coverage[CD].parties == ("ben", "cyd")
    assert {marginal: each.rows for marginal, each in coverage.items()} == {
        AB: 200,
        BC: 300,
        CD: 200,
    }
    assert {each.holder for each in coverage.values()} == {"cyd"}


REQUESTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(list(SIZES)), min_size=1, unique=True),
        st.integers(1, 1_000),
        st.sampled_from([Fraction(1, 2), Fraction(3), Fraction(200)]),
    ),
    min_size=1,
    max_size=len(NAMES),
)


@settings(max_examples=60, deadline=None)
@given(REQUESTS, st.integers(0, 1_000))
def test_any_sequence_of_requests_keeps_one_share_per_statistic(requests, seed):
    run = Run(aggregation=Aggregation.MASKED, seed=seed)
    for party, (marginals, rows, scale) in zip(NAMES, requests, strict=False):
        turn = run.turn(party, marginals, rows=rows, scale=scale)
        asked = [marginal for group in turn.groups for marginal in group.marginals]
        assert sorted(asked) == sorted(marginals)
        run.check()


@pytest.mark.statistical
def test_after_three_parties_the_noise_is_one_discrete_laplace():
    """400 runs of 19 cells; the mean absolute value tells scale 10 from 7 and from 13."""
    noise = []
    for seed in range(400):
        run = Run(seed=seed)
        for party in NAMES[:3]:
            run.turn(party, [AB, BC, CD])
        noise += [run.statistics[marginal] - run.exact[marginal] for marginal in SIZES]
    noise = np.concatenate(noise)

    def p_value(scale):
        expected = discrete_laplace(Fraction(scale), 200_000, SeededRandomSource(scale))
        edges = np.quantile(expected, np.linspace(0.05, 0.95, 10)) + 0.5
        table = [np.bincount(np.searchsorted(edges, x), minlength=11) for x in (noise, expected)]
        return stats.chi2_contingency(table).pvalue

    assert p_value(10) > 1e-6
    assert p_value(7) < 1e-12
    assert p_value(13) < 1e-12


def test_the_true_cost_counts_every_turn_that_covers_a_party():
    """Section 7a: party 1's rows are in all K turns, not in one."""
    coverages = Coverages()
    covering = []
    for party in ("ada", "ben", "cyd"):
        turn = open_turn(coverages, party, [AB, BC])
        coverages = turn.coverages
        covering.append([turn.marginals_covering(name) for name in ("ada", "ben", "cyd")])
    assert covering == [[2, 0, 0], [2, 2, 0], [2, 2, 2]]


def test_a_sum_of_two_has_room_for_the_older_share_and_for_counts_with_the_new_one():
    coverages = open_turn(Coverages(), "ada", [AB], scale=Fraction(5)).coverages
    turn = open_turn(coverages, "ben", [AB], rows=70, scale=Fraction(20))
    (group,) = turn.groups
    limits = turn.limits(group)
    assert list(limits) == ["ada", "ben"]
    assert limits == {
        "ada": coverages.by_marginal[AB].share_bound,
        "ben": 70 + turn.share_bound,
    }
    assert turn.share_bound > coverages.by_marginal[AB].share_bound


def test_a_share_is_handed_over_once():
    run = Run()
    run.turn("ada", [AB])
    (group,) = open_turn(run.coverages, "ben", [AB]).groups
    run.keepers["ada"].hand_over(group)
    with pytest.raises(PolicyError, match="handed over once"):
        run.keepers["ada"].hand_over(group)


def test_nobody_hands_over_what_somebody_else_holds():
    run = Run()
    run.turn("ada", [AB])
    (group,) = open_turn(run.coverages, "ben", [AB]).groups
    with pytest.raises(PolicyError, match="holds no share"):
        run.keepers["cyd"].hand_over(group)
    made_up = Group(holder="ada", marginals=(CD,), cells=9, share_bound=1)
    with pytest.raises(PolicyError, match="holds no share"):
        run.keepers["ada"].hand_over(made_up)


def test_a_turn_is_answered_once_and_by_the_party_whose_turn_it_is():
    turn = open_turn(Coverages(), "ada", [AB])
    counts = {AB: np.zeros(4, dtype=np.int64)}
    keeper = ShareKeeper("ada")
    keeper.answer(turn, counts, SeededRandomSource(1))
    with pytest.raises(LocalError, match="answered this turn already"):
        keeper.answer(turn, counts, SeededRandomSource(1))
    with pytest.raises(LocalError, match="the turn of 'ada'"):
        ShareKeeper("ben").answer(turn, counts, SeededRandomSource(1))


def test_a_partys_rows_are_counted_once():
    coverages = open_turn(Coverages(), "ada", [AB]).coverages
    with pytest.raises(LocalError, match="covers the rows of 'ada' already"):
        open_turn(coverages, "ada", [AB])


def test_a_marginal_does_not_change_its_size():
    coverages = open_turn(Coverages(), "ada", [AB]).coverages
    with pytest.raises(LocalError, match="had 4 cells, now 5"):
        coverages.open_turn(party="ben", rows=1, marginals={AB: 5}, law=DiscreteLaplace(SCALE))


def test_shares_are_not_printed():
    run = Run()
    run.turn("ada", [AB])
    assert repr(run.keepers["ada"]) == "ShareKeeper('ada', 1 shares)"
