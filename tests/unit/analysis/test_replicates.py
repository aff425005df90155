"""Replicates: how they scatter, and the intervals that follow."""

import math

import numpy as np

import common.analysis.replicates as replicates_module
import parley
from common.analysis import statistics as kinds
from common.analysis.estimates import estimate
from common.analysis.replicates import Replicator, shuffled
from common.marginals import count
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.linked import frames
from tests.unit.analysis.estimated import SCHEMA, people, small_study


def test_replicates_are_the_same_in_several_processes(monkeypatch):
    made = small_study(people(300), 1)
    told = []
    alone = Replicator(made, made.released, 3, processes=1).run(7)
    monkeypatch.setattr(replicates_module, "_WORTH_S", 1e-9)
    shared = Replicator(made, made.released, 3, processes=2)
    found = shared.run(7, tell=lambda fraction, doing: told.append(fraction))
    for one, other in zip(alone.tables, found.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))
    assert told == sorted(told)
    assert told[-1] == 1


def test_replicates_scatter_as_samples_of_people_do_where_a_model_draws_in_strata():
    rows = people(1_000)[["ill"]]
    schema = parley.Schema(tuple(a for a in SCHEMA.attributes if a.name in rows.columns))
    made = parley.simulate(
        [rows[::2], rows[1::2]], schema, epsilon=1_000, method="subn+", aggregation="clear", seed=1
    )
    asked = kinds.share(schema, "ill = true")
    (found,) = estimate(asked, Replicator(made, made.released, 1, processes=1).run(60))
    sampling = math.sqrt(found.estimate * (1 - found.estimate) / 1_000)
    assert 0.75 < found.standard_error / sampling < 1.35  # in strata it would be a hundredth


def test_shuffled_people_and_events_keep_every_column_and_no_relation():
    people, events = frames(4_000)
    events = events.drop_duplicates("id").sort_values("id")  # as many events as people have
    linked = encode_linked(LINKED, people[people.id.isin(events.id)], events, person="id")
    apart = shuffled(linked)
    for one, other in zip(linked.arrays, apart.arrays, strict=True):
        assert np.array_equal(np.sort(one), np.sort(other))
    (before,), (after,) = (count(own.by_event, [(1, 3)]) for own in (linked, apart))
    expected = np.outer(before.sum(axis=1), before.sum(axis=0)) / before.sum()
    assert abs(before - expected).sum() / before.sum() > 0.3
    assert abs(after - expected).sum() / after.sum() < 0.1
