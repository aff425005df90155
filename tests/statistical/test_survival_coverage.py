"""Intervals of survival and of events: how often they hold the truth of a known population."""

import numpy as np
import pandas as pd
import pytest

import parley
from common.analysis import statistics
from common.analysis.statistics import CodedTable
from common.analysis.survival import survival
from common.schema.linked import encode_linked
from parley.simulation.population import PERSON, linked_schema, make_linked_population
from tests.harness.schemas import schema

pytestmark = [pytest.mark.slow, pytest.mark.statistical]
SCHEMA = schema(
    'name = "months", kind = "integer", min = 0, max = 23, bins = 8',
    'name = "died", kind = "boolean"',
    'name = "arm", kind = "categorical", values = ["old", "new"]',
)


def trial(people, seed):
    """Exponential times, shorter in the old arm, of people who leave at random times."""
    rng = np.random.default_rng(seed)
    arm = rng.random(people) < 0.5
    died, left = rng.exponential(np.where(arm, 22, 11)), rng.uniform(4, 30, people)
    months = np.minimum(np.minimum(died, left), 23).astype(int)
    return pd.DataFrame(
        {"months": months, "died": (died <= left) & (died < 24), "arm": np.where(arm, "new", "old")}
    )


def held(estimates, truth):
    """Return which intervals hold the truth."""
    return [
        own.low <= truth[own.statistic, own.group] <= own.high
        for own in estimates
        if own.low is not None and np.isfinite(truth[own.statistic, own.group])
    ]


def test_intervals_of_survival_hold_the_truth():
    asked = survival(SCHEMA, "months", status="died", by="arm")
    truth = asked.of(CodedTable(SCHEMA, SCHEMA.encode(trial(400_000, 99))))
    outcomes = []
    for seed in range(6):
        table = trial(3000, seed)
        owners = [table[part::3] for part in range(3)]
        study = parley.simulate(owners, SCHEMA, epsilon=1, seed=seed, aggregation="clear")
        outcomes += held(study.estimate(asked), truth)
    assert len(outcomes) >= 80
    assert np.mean(outcomes) >= 0.88


def test_intervals_of_events_hold_the_truth():
    schema = linked_schema()
    people, events = make_linked_population(5000, seed=3)
    owners = [
        (people[people.patient % 3 == part], events[events.patient % 3 == part])
        for part in range(3)
    ]
    study = parley.simulate(owners, schema, epsilon=3, delta=1e-9, person=PERSON, seed=1,
                            aggregation="clear")  # fmt: skip
    many = encode_linked(schema, *make_linked_population(200_000, seed=99), person=PERSON)
    outcomes = []
    for of, by in (("", "sex"), ("", "education"), ("visits", "sex"), ("visits", "department")):
        view = study.view(of)
        column = "nights" if of else "visits"
        asked = statistics.mean(view.schema, column, by)
        truth = asked.of(CodedTable(view.schema, view.codes(many)))
        outcomes += held(study.estimate(asked, of=of), truth)
    assert np.mean(outcomes) >= 0.8
