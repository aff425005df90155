"""Sums of averaged events, compared with rows: what is left is noise, and people are counted."""

import numpy as np
import pytest

import parley
from common.fitted.compared import among_events, linked_sums
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA, frames, shared_out

PEOPLE, EVENTS = frames(600)
REAL = encode_linked(SCHEMA, PEOPLE, EVENTS, person="id")
NUMBER = 2


@pytest.fixture(scope="module")
def tables():
    with pytest.warns(parley.PrivacyWarning):
        study = parley.simulate(
            shared_out(PEOPLE, EVENTS, 2), SCHEMA, person="id", epsilon=30, aggregation="clear",
            seed=1, analyses=['relation = ["diagnosis", "ward"]'],
        )  # fmt: skip
    return linked_sums(study.study, study.steps, study.results, REAL)


def test_the_residuals_of_the_real_rows_are_the_noise_alone(tables):
    scores = np.concatenate([own.residuals / own.deviation for own in tables])
    assert np.mean(scores**2) == pytest.approx(1, abs=6 * np.sqrt(5 / len(scores)))
    assert {own.name for own in tables} >= {"margins of events", "declared tables"}
    assert all(own.rows == 600 for own in tables)


def test_every_table_knows_the_groups_of_its_columns(tables):
    for own in tables:
        shape = tuple(max(own.groups[v]) + 1 for v in own.attributes)
        assert (shape, own.residuals.size) == (own.shape, own.cells)
        assert own.usable(own.attributes)
        sizes = [SCHEMA.joined.sizes[v] for v in own.attributes]
        assert own.grouped == tuple(few < all_ for few, all_ in zip(shape, sizes, strict=True))


def test_among_people_with_events_no_table_has_a_cell_for_none(tables):
    share = float((REAL.numbers > 0).mean())
    for before, after in zip(tables, among_events(tables, NUMBER, share), strict=True):
        assert after.rows == round(600 * share)
        if NUMBER not in before.attributes:
            assert after.shape == before.shape
            continue
        axis = before.attributes.index(NUMBER)
        alone = list(before.groups[NUMBER]).count(before.groups[NUMBER][0]) == 1
        assert before.shape[axis] - after.shape[axis] == alone
        if alone:
            kept = before.residuals.reshape(before.shape).take(range(1, before.shape[axis]), axis)
            assert np.array_equal(after.residuals, kept.ravel())
            assert list(after.groups[NUMBER])[1:] == [g - 1 for g in before.groups[NUMBER][1:]]
