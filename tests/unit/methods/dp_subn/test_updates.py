from fractions import Fraction

import numpy as np
import pytest

from common.exchanges.replacement import Replacement
from common.marginals import count
from common.methods.dp_subn.decisions import FamilyLimit
from common.methods.dp_subn.information import on_grid
from common.methods.dp_subn.updates import (
    PartialTable,
    Search,
    families_of,
    update_by_replacement,
    update_in_cohorts,
)
from common.methods.network_model import Variables
from common.privacy.promise import Promise
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.script import ScriptRun
from tests.harness.run_script import Driver, chain_tables, random_tables, study_of

HUGE = Fraction(10**9)


ONE_PARENT, TWO_PARENTS = FamilyLimit(1, 100), FamilyLimit(2, 100)


def search_over(sizes, information=None, network=ONE_PARENT, frontier=TWO_PARENTS):
    matrix = np.zeros((len(sizes), len(sizes))) if information is None else information
    return Search(
        variables=Variables(sizes),
        information=matrix,
        network_limit=network,
        frontier_limit=frontier,
        promise=Promise(HUGE),
        epsilon=HUGE,
    )


def all_tables(codes, frontier):
    families = families_of(frontier)
    return {
        family: PartialTable(table, codes.rows, Fraction(0))
        for family, table in zip(families, count(codes, families), strict=True)
    }


def test_the_best_parents_among_the_frontiers_are_taken():
    codes = concatenate(list(chain_tables(4, [4000]).values()))
    search = search_over((2,) * 4)
    frontier = ((), (0,), (0, 1), (0, 1, 2))
    assert search.updated(frontier, all_tables(codes, frontier)) == ((), (0,), (1,), (2,))


def test_parents_that_do_not_fit_the_network_are_not_taken():
    (codes,) = random_tables((4, 4, 2), [500]).values()
    search = search_over((4, 4, 2), network=FamilyLimit(2, 8), frontier=FamilyLimit(2, 32))
    frontier = ((), (0,), (0, 1))
    updated = search.updated(frontier, all_tables(codes, frontier))
    assert updated[1] == ()
    assert len(updated[2]) == 1


def test_the_frontier_keeps_to_its_cells_on_mixed_domains():
    sizes = (2, 50, 3, 50, 4)
    rng = np.random.default_rng(3)
    matrix = rng.random((5, 5))
    search = search_over(sizes, matrix + matrix.T, frontier=FamilyLimit(3, 120))
    frontier = search.frontier(((),) * 5)
    for child, parents in enumerate(frontier):
        assert search.frontier_limit.fits(sizes, child, parents)
    assert families_of(frontier)


def test_rounding_makes_last_digits_agree():
    values = np.array([0.1, 0.7, 1.3])
    assert np.array_equal(on_grid(values), on_grid(np.nextafter(values, 2)))
    assert np.abs(on_grid(values) - values).max() < 1e-9


class Captured:
    """A model that is just the structure."""

    def __init__(self, structure, statistics):
        self.structure = structure
        self.statistics = statistics


def scripted(update):
    def script():
        structure, statistics = yield from update
        return lambda: Captured(structure, statistics)

    return ScriptRun(script())


@pytest.mark.parametrize("way", ["cohorts", "replacement"])
@pytest.mark.parametrize("parties", [1, 2, 3, 10])
def test_both_ways_find_the_chain_without_noise(way, parties):
    tables = chain_tables(5, [400] * parties, seed=parties)
    names = [(name, table.rows) for name, table in tables.items()]
    codes = concatenate(list(tables.values()))
    information = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            information[i, j] = 1.0 / (1 + abs(i - j))
    search = search_over((2,) * 5, information)
    start = ((), (0,), (0,), (0,), (0,))
    update = (
        update_in_cohorts(search, start, [[name] for name in names])
        if way == "cohorts"
        else update_by_replacement(search, start, names)
    )
    driven = Driver(study_of(tables), tables, SeededRandomSource(1)).run(scripted(update))
    edges = {(p, c) for c, own in enumerate(driven.model.structure) for p in own}
    assert {(min(e), max(e)) for e in edges} == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert codes.rows == 400 * parties


def test_a_replaced_statistic_covers_everybody_since_it_was_first_asked_for():
    tables = chain_tables(3, [50, 60, 70])
    names = [(name, table.rows) for name, table in tables.items()]
    driven = Driver(study_of(tables), tables, SeededRandomSource(2)).run(
        scripted(update_by_replacement(search_over((2,) * 3), ((), (0,), (1,)), names))
    )
    assert all(isinstance(step.exchange, Replacement) for step in driven.steps)
    last = driven.steps[-1].exchange.turn
    for family, coverage in last.coverages.by_marginal.items():
        rows = sum(tables[name].rows for name in coverage.parties)
        assert coverage.rows == rows
        assert coverage.holder == coverage.parties[-1], family


@pytest.mark.parametrize("way", ["cohorts", "replacement"])
def test_statistics_say_how_many_rows_and_how_much_noise_they_have(way):
    tables = chain_tables(3, [50, 60, 70])
    names = [(name, table.rows) for name, table in tables.items()]
    search, start = search_over((2,) * 3), ((), (0,), (1,))
    update = (
        update_in_cohorts(search, start, [[name] for name in names])
        if way == "cohorts"
        else update_by_replacement(search, start, names)
    )
    driven = Driver(study_of(tables), tables, SeededRandomSource(2)).run(scripted(update))
    assert driven.model.statistics
    for family, statistic in driven.model.statistics.items():
        sums = [s for s in driven.steps if s.counts_all and family in s.request.sets]
        laws = [s.law for s in sums] or [driven.steps[-1].law]
        assert statistic.rows == sum(tables[s.parties[0]].rows for s in sums) or not sums
        assert statistic.variance == sum(law.nominal_variance for law in laws)
