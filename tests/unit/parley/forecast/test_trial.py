"""A trial: stand-in rows dealt out so that every party has its rows, and none is lost."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.analysis.distances import total_variation
from common.bayes.contingency import cramers_v
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.marginals import count
from common.schema import Codes, Schema
from parley.forecast.trial import StandInRows, Trial, _dealt_out, simulated
from parley.simulation.population import demo_schema_toml
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import linked_study
from tests.harness.run_script import random_tables, study_of

SIZES = (2, 3)
STUDY = study_of(random_tables(SIZES, [7, 300, 41]), method="floor")


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.data())
def test_every_party_has_its_rows_and_every_stand_in_row_is_dealt_once(rows, data):
    study = study_of(random_tables(SIZES, rows))
    there = data.draw(st.integers(len(rows), sum(rows)))
    stand_in = Codes.from_columns([np.zeros(there, int), np.zeros(there, int)], SIZES)
    dealt = _dealt_out(study, stand_in, seed=1)
    assert sum(table.rows for table, _ in dealt.values()) == there
    for member in study.members:
        table, repeated = dealt[member.name]
        assert table.rows >= 1
        assert repeated.sum() == member.rows
        assert repeated.max() - repeated.min() <= 1


def test_rows_that_count_as_several_are_counted_as_if_they_were_there():
    (table,) = random_tables(SIZES, [20]).values()
    stand_in = StandInRows(table, np.arange(20))
    assert stand_in.rows == stand_in.codes().rows == 190
    sets = [(0,), (0, 1)]
    for one, other in zip(stand_in.count(sets), count(stand_in.codes(), sets), strict=True):
        np.testing.assert_array_equal(one, other)
    parts = np.concatenate([part.columns[1] for part in stand_in.chunks()])
    assert np.array_equal(np.sort(parts), np.sort(stand_in.codes().columns[1]))


def test_a_stand_in_that_is_shorter_than_the_parties_are_many_is_refused():
    with pytest.raises(InputError, match="a stand-in of 2 rows is too short for 3 parties"):
        Trial(STUDY, simulated(STUDY.schema, 2, seed=1), 1)


def test_a_trial_repeats_and_pays_what_it_was_given():
    trial = Trial(STUDY, simulated(STUDY.schema, 100, seed=1), seed=4)
    first, again = (trial.run(Fraction(1, 2)) for _ in range(2))
    other = trial.run(Fraction(1, 2), number=1)
    assert first.results == again.results != other.results
    assert trial.quiet > 10
    assert trial.distances([trial.run(trial.quiet)])["2-way"] < trial.distances([first])["2-way"]


def test_only_the_first_run_of_a_ring_encrypts_and_the_floor_never_does():
    ring = replace(STUDY, aggregation=Aggregation.PAILLIER)
    trial = Trial(ring, simulated(ring.schema, 100, seed=1), 1)
    runs = [trial.run(Fraction(1)), trial.run(Fraction(1), 1), trial.run_floor(Fraction(1))]
    sent = [sum(sum(phase.sent.values()) for phase in run.traffic.values()) for run in runs]
    assert sent[0] > 2 * sent[1]
    assert sent[1] == sent[2]


def test_simulated_rows_repeat_fit_the_schema_and_depend_as_asked():
    schema = Schema.from_toml(demo_schema_toml())
    first = simulated(schema, 5000, seed=4)
    again, other = simulated(schema, 5000, seed=4), simulated(schema, 5000, seed=5)
    assert all(np.array_equal(a, b) for a, b in zip(first.columns, again.columns, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first.columns, other.columns, strict=True))
    assert first.sizes == schema.sizes
    pairs = list(combinations(range(first.width), 2))
    strength = {}
    for dependence in (0.0, 0.5, 0.95):
        rows = simulated(schema, 5000, seed=4, dependence=dependence)
        strength[dependence] = np.sort([cramers_v(table) for table in count(rows, pairs)])
    assert strength[0.0].max() < 0.12, "independent but for chance"
    assert strength[0.0][-10:].mean() < strength[0.5][-10:].mean() < strength[0.95][-10:].mean()


def test_simulated_marginals_do_not_depend_on_the_dependence():
    schema = Schema.from_toml(demo_schema_toml())
    loose = simulated(schema, 20_000, seed=4, dependence=0.1)
    tight = simulated(schema, 20_000, seed=4, dependence=0.9)
    alone = [(i,) for i in range(loose.width)]
    assert max(total_variation(loose, tight, alone)) < 0.15


def off(table):
    """How far a table is from independence."""
    alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return np.abs(table - alone).sum() / 2 / table.sum()


def test_simulated_people_have_events_that_depend_as_asked():
    first, again, free = (simulated(LINKED, 4000, seed=2, dependence=d) for d in (0.6, 0.6, 0))
    assert all(map(np.array_equal, first.arrays, again.arrays))
    assert set(first.numbers.tolist()) == set(range(LINKED.events.most + 1))
    width = first.events.width
    pairs = [(own, width + own) for own in range(width)]
    for strong, none in zip(
        *(count(own.consecutive[0], pairs) for own in (first, free)), strict=True
    ):
        assert off(strong) > 0.2
        assert off(none) < 0.05
    people = [(a, e) for a in range(3) for e in (3, 4)]
    strong, none = ([off(t) for t in count(own.by_event, people)] for own in (first, free))
    assert max(strong) > 0.1 > 0.05 > max(none)


def test_a_trial_of_people_and_events_compares_every_kind_of_pairs():
    study = linked_study({"p0": linked_codes(2), "p1": linked_codes(700)}, method="floor")
    trial = Trial(study, simulated(LINKED, 90, seed=1), seed=4)
    noisy = trial.distances([trial.run(Fraction(1))])
    assert list(noisy) == ["people pairs", "person x event", "event pairs", "next event"]
    quiet = trial.distances([trial.run(trial.quiet)])
    assert sum(quiet.values()) < sum(noisy.values())
