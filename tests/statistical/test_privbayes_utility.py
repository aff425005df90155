"""Utility: the reference figures of the specification, and planted networks that must be found."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from common.bayes.network import Network
from common.bayes.privbayes.decisions import PrivBayesOptions
from common.bayes.privbayes.mechanism import fit_privbayes
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score, mutual_information
from common.marginals import BinarySubsets, count
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes

pytestmark = pytest.mark.statistical

UNIFORM = 0.438  # NLTCS, 3-way


@pytest.fixture(scope="module")
def nltcs(shared_data):
    table = np.loadtxt(shared_data / "nltcs.csv", delimiter=",", skiprows=1, dtype=np.int64)
    return Codes.from_columns(list(table.T), [2] * 16)


def fit(codes, epsilon, seed, **options):
    return fit_privbayes(
        codes,
        epsilon=Fraction(epsilon),
        source=SeededRandomSource(seed),
        accountant=Accountant({"owner": None}),
        options=PrivBayesOptions(**options),
    )


def distance(real, synthetic, order=3):
    """The average total variation distance of all marginals of three binary attributes."""
    sets = np.array(list(combinations(range(real.width), order)))
    left, right = (
        BinarySubsets(codes, order).tables(sets).reshape(len(sets), -1) / codes.rows
        for codes in (real, synthetic)
    )
    return float(np.abs(left - right).sum(axis=1).mean() / 2)


def mean_distance(codes, epsilon, runs=4, **options):
    found = []
    for run in range(runs):
        model = fit(codes, epsilon, f"{epsilon} {run}", **options)
        found.append(distance(codes, model.sample(codes.rows, SeededRandomSource(run))))
    return float(np.mean(found))


def information(codes, network):
    """Sum of I(X, P) over the network, in bits."""
    families = [[v.attribute for v in pair.family] for pair in network.pairs if pair.parents]
    tables = count(codes, families)
    return sum(mutual_information(t.reshape(1, 2, -1))[0] for t in tables) / codes.rows


CAPPED = Constraints(max_parents=6)


@pytest.mark.slow
def test_nltcs_distances_are_those_of_the_reference_without_consistency(nltcs):
    for epsilon, expected, deviation in [("0.05", 0.193, 0.02), ("1.6", 0.035, 0.006)]:
        found = mean_distance(nltcs, epsilon, constraints=CAPPED, consistency=False)
        assert found == pytest.approx(expected, abs=4 * deviation / np.sqrt(4))


def test_nltcs_distances_fall_with_epsilon_and_beat_the_reference_with_consistency(nltcs):
    found = [mean_distance(nltcs, e, constraints=CAPPED) for e in ("0.05", "0.2", "1.6")]
    assert found == sorted(found, reverse=True)
    assert all(value < UNIFORM / 2 for value in found)
    for value, reference in zip(found, (0.193, 0.101, 0.035), strict=True):
        assert value <= reference * 1.03


def test_score_f_finds_more_information_than_r_and_r_more_than_i(nltcs):
    for epsilon in ("0.05", "0.2"):
        means = [
            np.mean(
                [
                    information(
                        nltcs,
                        fit(nltcs, epsilon, run, score=score, printed_sensitivity=True).network,
                    )
                    for run in range(8)
                ]
            )
            for score in (Score.MAXIMUM_JOINT, Score.INDEPENDENCE, Score.MUTUAL_INFORMATION)
        ]
        assert means[0] >= means[1] >= means[2]


def planted_tree(rows=40_000, width=8):
    """Binary attributes on a known tree; each differs from its parent in one row of seven."""
    generator = np.random.default_rng(9)
    parents = [0, 0, 0, 1, 1, 2, 3, 3][:width]
    columns = [generator.integers(0, 2, rows)]
    for child in range(1, width):
        columns.append(columns[parents[child]] ^ (generator.random(rows) < 0.15))
    return Codes.from_columns(columns, [2] * width), parents


@pytest.mark.parametrize("score", list(Score))
def test_a_planted_tree_is_recovered(score):
    codes, parents = planted_tree()
    model = fit(codes, "10", 1, score=score, constraints=Constraints(max_parents=1))
    planted = {frozenset((parents[child], child)) for child in range(1, codes.width)}
    assert {frozenset(edge) for edge in model.network.edges} == planted
    best = information(
        codes, Network.from_parents({0: [], **{c: [parents[c]] for c in range(1, 8)}})
    )
    assert information(codes, model.network) >= 0.95 * best


def test_samples_of_an_almost_noise_free_model_have_the_families_of_the_table():
    codes, _ = planted_tree()
    model = fit(codes, "1000", 2, constraints=Constraints(max_parents=1))
    synthetic = model.sample(codes.rows, SeededRandomSource(3))
    for pair in model.network.pairs:
        family = [view.attribute for view in pair.family]
        left, right = count(codes, [family])[0], count(synthetic, [family])[0]
        gap = np.abs(left - right).sum() / 2 / codes.rows
        assert gap < 3 * np.sqrt(left.size / codes.rows)
