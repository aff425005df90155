"""Estimates of people and events: by the published sums, whatever the model did."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import parley
from common.analysis.linked_answers import UNTOLD, LinkedAnswers, every_answer
from common.analysis.replicates import Replicates
from common.analysis.statistics import CodedTable, mean, share, shares
from common.analysis.survival import survival
from common.errors import LocalError
from common.schema import Schema
from common.schema.linked import LinkedCodes, encode_linked
from tests.harness.linked import SCHEMA, frames, shared_out

PEOPLE, EVENTS = frames(1500)
REAL = encode_linked(SCHEMA, PEOPLE, EVENTS, person="id")
ANALYSES = ['mean = "visits", by = "sex"', 'relation = ["age", "diagnosis"]', 'mean = "age"']


def simulated(**terms):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parley.PrivacyWarning)
        return parley.simulate(
            shared_out(PEOPLE, EVENTS, 2), SCHEMA, person="id", aggregation="clear", seed=1,
            **{"epsilon": 80, **terms},
        )  # fmt: skip


@pytest.fixture(scope="module")
def declared():
    return simulated(analyses=ANALYSES)


@pytest.fixture(scope="module")
def plain():
    return simulated()


def apart(seed):
    """The real people and events, each column shuffled: a model that knows of no relation."""
    rng = np.random.default_rng(seed)
    events = replace(REAL.events, columns=tuple(map(rng.permutation, REAL.events.columns)))
    numbers = rng.permutation(REAL.numbers)
    return LinkedCodes(
        tuple(map(rng.permutation, REAL.columns)),
        REAL.sizes,
        replace(events, places=()),
        numbers,
        4,
    )


def by_wrong_model(fitted, statistic, of):
    """Estimate with rows and replicates of a model without relations."""
    rows = apart(0)
    made = Replicates(SCHEMA, rows, rows, tuple(map(apart, range(1, 9))), {})
    asked = LinkedAnswers(fitted, fitted.diagnostics, rows)
    return asked.of(statistic, fitted.view(of), lambda: made)


def truth(fitted, statistic, of):
    view = fitted.view(of)
    return statistic.of(CodedTable(view.schema, view.codes(REAL)))


@pytest.mark.parametrize(
    ("of", "make"),
    [
        ("visits", lambda schema: shares(schema, "ward", "diagnosis")),
        ("visits", lambda schema: share(schema, "diagnosis = a", "sex")),
        ("visits", lambda schema: share(schema, "diagnosis = c", where="age < 45")),
        ("visits", lambda schema: shares(schema, "diagnosis")),
        ("", lambda schema: mean(schema, "visits", "sex")),
    ],
)
def test_intervals_follow_the_published_sums_where_the_model_knows_nothing(plain, of, make):
    statistic = make(plain.view(of).schema)
    values = truth(plain, statistic, of)
    found = by_wrong_model(plain, statistic, of)
    held = [each.low <= values[each.statistic, each.group] <= each.high for each in found]
    assert np.mean(held) >= 0.9
    assert all(each.high - each.low < 1 for each in found if statistic.bounds == (0, 1))


def test_what_no_table_has_together_has_the_range_of_its_columns_and_is_flagged():
    fitted = simulated(epsilon=0.3)  # pairs would be noise: margins alone
    schema = fitted.view("visits").schema
    found = by_wrong_model(fitted, share(schema, "ward = x", "diagnosis"), "visits")
    assert all(each.flagged and each.high - each.low > 0.5 for each in found)
    assert "never counted together" in fitted.concerns(
        share(schema, "ward = x", "diagnosis"), fitted.view("visits")
    )[0]  # fmt: skip


def test_answers_are_those_of_estimate_the_report_and_hold_the_truth(declared, tmp_path):
    found = declared.answers()
    assert [len(own.estimates) for own in found] == [2, 4, 1]
    assert found == every_answer(declared, declared.diagnostics, released=declared.released)
    for answer, of, make in zip(
        found, ("", "visits", ""),
        (lambda s: mean(s, "visits", ["sex"]), lambda s: mean(s, "age", "diagnosis"),
         lambda s: mean(s, "age")), strict=True,
    ):  # fmt: skip
        statistic = make(declared.view(of).schema)
        assert tuple(declared.estimate(statistic, of=of)) == answer.estimates
        values = truth(declared, statistic, of)
        for each in answer.estimates:
            near = values[each.statistic, each.group]
            assert each.low - 1 <= near <= each.high + 1  # bins of ages: a year more
    declared.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "relation of age, diagnosis" in page
    assert "counted first, for the analyses" in " ".join(declared.events_told.lines())


def with_days():
    """People who have a visit a day, of which the published order is a column."""
    text = (
        SCHEMA.to_toml()
        + """
[[events.attribute]]
name = "day"
kind = "integer"
min = 0
max = 9
bins = 10
"""
    )
    return Schema.from_toml(text)


def test_the_first_event_has_the_range_that_published_tables_allow_and_is_flagged():
    schema = with_days()
    with pytest.warns(parley.PrivacyWarning):
        fitted = parley.simulate(
            shared_out(PEOPLE, EVENTS, 2), schema, person="id", aggregation="clear", seed=1,
            epsilon=80,
        )  # fmt: skip
    real = encode_linked(schema, PEOPLE, EVENTS, person="id")
    view, status = fitted.survival_view("day", status="diagnosis = a")
    statistic = survival(view.schema, "day", status=status, by="sex")
    assert fitted.concerns(statistic, view) == [UNTOLD]
    values = statistic.of(CodedTable(view.schema, view.codes(real)))
    rng = np.random.default_rng(0)
    shuffled = [
        LinkedCodes(
            real.columns, real.sizes, replace(real.events.take(rng.permutation(real.events.rows))),
            real.numbers, 4,
        )
        for _ in range(7)
    ]  # fmt: skip
    made = Replicates(schema, shuffled[0], shuffled[0], tuple(shuffled[1:]), {})
    asked = LinkedAnswers(fitted, fitted.diagnostics, shuffled[0])
    found = asked.of(statistic, view, lambda: made)
    held = [own.low <= values[own.statistic, own.group] <= own.high for own in found]
    assert all(own.flagged for own in found)
    assert np.mean(held) >= 0.9
    assert min(own.high - own.low for own in found[3:8]) > 0.1  # it says what it does not know


def test_people_without_their_events_are_refused(declared):
    with pytest.raises(LocalError, match="without their events"):
        every_answer(declared, declared.diagnostics, released=REAL.with_number)
