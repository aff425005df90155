from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from common.bayes.postprocessing import mutual_information, onto_simplex
from common.marginals import count
from common.methods.dp_ccbn import MOST_CELLS, affordable_limit, first_attribute
from common.methods.dp_subn.decisions import FamilyLimit, candidate_families
from common.methods.dp_subn.information import mutual_informations
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.accounting import account
from tests.harness.run_script import chain_tables, drive, random_tables, study_of

MIXED = (2, 3, 4, 2, 5)


def finished(tables, **changes):
    study = study_of(tables, method="dp-ccbn", **changes)
    return study, drive(run_of(study), study, tables)


@given(
    arrays(np.int64, (4, 3, 4), elements=st.integers(-(10**9), 10**9)),
    st.integers(1, 10**6),
)
def test_many_informations_are_those_of_each_table(tables, rows):
    together = mutual_informations(tables.astype(np.float64), rows)
    alone = [mutual_information(onto_simplex(table.astype(float), total=rows)) for table in tables]
    assert np.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("rows", [[600], [300, 300], [500, 5], [60] * 10])
def test_every_party_pays_the_printed_epsilon(rows, encoding):
    tables = random_tables(MIXED, rows)
    study, driven = finished(tables, epsilon=Fraction(5), encoding=encoding)
    accountant = account(study, driven.steps)
    assert [accountant.spent(name) for name in tables] == [Fraction(5)] * len(rows)
    synthetic = driven.model.sample(100, SeededRandomSource("rows"))
    assert synthetic.sizes == MIXED


def test_each_iteration_costs_its_part_and_asks_for_every_candidate():
    tables = random_tables((2,) * 5, [400, 400])
    study, driven = finished(tables, epsilon=Fraction(6))
    *iterations, parameters = driven.steps
    assert len(iterations) == 4
    for number, step in enumerate(iterations, start=1):
        assert step.counts_all
        assert step.costs["p0"] == Fraction(6) / 2 / 4
        # (d - i) * C(i, min(k, i)) candidates in the i-th iteration
        assert len(step.request.sets) % (5 - number) == 0
    assert parameters.costs["p0"] == Fraction(3)
    assert study.digest


def test_a_planted_chain_is_found_at_a_huge_budget():
    tables = chain_tables(5, [700, 700, 600])
    _, driven = finished(tables, epsilon=Fraction(10**7))
    everything = concatenate(list(tables.values()))
    synthetic = driven.model.sample(20_000, SeededRandomSource("rows"))
    pairs = [(i, j) for i in range(5) for j in range(i)]
    for truth, drawn in zip(count(everything, pairs), count(synthetic, pairs), strict=True):
        assert np.abs(truth / everything.rows - drawn / 20_000).sum() / 2 < 0.05


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 3), Fraction(50)])
def test_any_budget_gives_finite_conditionals(epsilon):
    tables = random_tables(MIXED, [40, 5])
    _, driven = finished(tables, epsilon=epsilon)
    assert all(np.isfinite(table).all() for table in driven.model.conditionals)


def test_the_root_is_the_studys_and_differs_between_studies():
    tables = random_tables(MIXED, [10])
    roots = {first_attribute(study_of(tables, name=str(i)), 5) for i in range(50)}
    assert roots == set(range(5))


@pytest.mark.parametrize("sizes", [(2,) * 52, (2,) * 12, (3, 7, 20, 2, 50) * 3])
def test_candidates_of_an_iteration_stay_below_the_cap(sizes):
    limit = affordable_limit(sizes, FamilyLimit(8, 512))
    assert limit.parents >= 1
    for placed in (len(sizes) // 2, len(sizes) - 2):
        families = candidate_families(sizes, range(placed), limit)
        cells = sum(prod(sizes[a] for a in family) for family in families if len(family) > 1)
        assert cells <= MOST_CELLS
