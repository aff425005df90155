"""Analyses of people and events: which tables are measured first, at which cost, and what for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.methods.subn_plus.declared import DECLARED
from common.methods.subn_plus.linked.declared import ask_declared
from common.methods.subn_plus.linked.plans import LinkedFacts, declared_budget
from common.methods.subn_plus.prospects import OF_SUBN
from common.privacy import sensitivity
from common.privacy.randomness import SeededRandomSource
from common.study.accounting import account
from common.study.analyses import read_analyses
from common.study.requests import RowsInMemory
from tests.harness.linked import SCHEMA, linked_codes
from tests.harness.linked_runs import dealt_out, fitted, linked_study

LINKED = linked_codes(900)
PEOPLE = 'mean = "visits", by = "sex"'
EVENTS = 'share = "diagnosis = a", by = "sex"'
NUMBER, DIAGNOSIS, WARD = 2, 3, 4
DELTA = Fraction(1, 10**9)


def read(*analyses):
    return read_analyses(list(analyses), SCHEMA)


def study_of(*analyses, **terms):
    return linked_study(dealt_out(LINKED), analyses=read(*analyses), **{"epsilon": 20, **terms})


def facts_of(*analyses, **terms):
    return LinkedFacts.of(study_of(*analyses, **terms))


def tables_of(*analyses, **terms):
    _, declared = declared_budget(facts_of(*analyses, **terms))
    return [table.attributes for table in declared.tables]


def test_a_table_of_people_stays_beside_one_of_events_that_has_its_columns():
    """People without events are in the first alone."""
    assert tables_of(PEOPLE, EVENTS) == [(0, NUMBER), (0, NUMBER, DIAGNOSIS)]
    assert tables_of(EVENTS) == [(0, NUMBER, DIAGNOSIS)]


def test_a_joint_table_that_would_be_noise_is_measured_by_its_pairs():
    pairs = tables_of('relation = ["diagnosis", "ward"]', epsilon=Fraction(1, 20))
    assert pairs == [(NUMBER, DIAGNOSIS), (NUMBER, WARD), (DIAGNOSIS, WARD)]


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("others", [None, Fraction(0), Fraction(1, 2)])
def test_the_steps_cost_what_was_promised_and_declared_tables_come_after_margins(others, delta):
    terms = {} if others is None else {"others": others}
    outcome = fitted(LINKED, epsilon=20, delta=delta, analyses=read(PEOPLE, EVENTS), **terms)
    spent = account(outcome.study, outcome.steps).most_spent
    budget = outcome.study.promise.budget
    assert budget * Fraction(999, 1000) < spent <= budget
    names = [step.name for step in outcome.steps]
    assert names[:4] == ["margins", "number of events", "margins of events", DECLARED]
    assert ("pairs" in names) == (others != 0)


def test_the_sum_moves_by_a_unit_for_each_table_and_its_pairs_are_the_rows():
    every = facts_of(PEOPLE, EVENTS).every
    histograms = [np.full(size, 900 // size) for size in every.sizes]
    script = ask_declared(every, every.budget, 4, histograms)
    step = next(script)
    assert step.sensitivity == sensitivity.averaged(2, unit=12)
    with pytest.raises(StopIteration) as end:
        script.send(step.counted.answer(RowsInMemory(LINKED)))
    pairs = {own.variables: own for own in end.value.value}
    # Of the table of events, people's columns together lack those without events.
    assert set(pairs) == {(0, NUMBER), (0, DIAGNOSIS), (NUMBER, DIAGNOSIS)}
    assert pairs[0, NUMBER].proportions.sum() == pytest.approx(1)
    with_events = float((LINKED.numbers > 0).mean())
    assert pairs[0, DIAGNOSIS].proportions.sum() == pytest.approx(with_events)
    assert pairs[0, DIAGNOSIS].variance > pairs[0, NUMBER].variance


def test_the_model_is_near_what_was_declared_even_without_other_pairs():
    analyses = read('relation = ["diagnosis", "ward"]')
    outcome = fitted(LINKED, epsilon=60, analyses=analyses, others=Fraction(0))
    drawn = outcome.model.sample(20_000, SeededRandomSource("rows"))
    apart = [_together(rows) for rows in (LINKED, drawn)]
    assert np.abs(apart[0] - apart[1]).sum() / 2 < 0.06
    independent = np.outer(apart[0].sum(axis=1), apart[0].sum(axis=0))
    assert np.abs(apart[0] - independent).sum() / 2 > 0.3


def _together(rows):
    table = np.zeros((4, 3))
    np.add.at(table, tuple(rows.events.columns), 1)
    return table / table.sum()


def test_owners_read_a_forecast_and_a_time_of_events_is_refused_by_name():
    study = study_of(PEOPLE, EVENTS)
    first, second = OF_SUBN.of(study)
    assert 0 < first.within < 1 and 0 < second.within <= 1  # noqa: PT018
    better = OF_SUBN.of(replace(study, epsilon=Fraction(80)))
    assert better[0].within < first.within
    assert len(OF_SUBN.halving(study)) == 2
    with pytest.raises(InputError, match="names a column of events"):
        read('survival = ["age", "diagnosis"]')
    with pytest.raises(InputError, match="nothing"):
        read('mean = "nothing"')
    assert SCHEMA.joined.names[NUMBER] == "visits"
