"""Totals of what bins hide: what they add up, whom they are asked of, and how far a row moves."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import parley
from common.analysis.means import known_means
from common.analysis.statistics import mean
from common.methods.subn_plus.facts import SPAN, PublicFacts
from common.methods.subn_plus.totals import (
    LARGEST,
    NO_CLASS,
    BinTotals,
    bin_classes,
    distances,
    totals_share,
)
from common.privacy.promise import Promise
from common.schema import Schema
from common.schema.codes import PLACES, Codes
from common.study.requests import RowsInMemory

SCHEMA = Schema.from_toml(
    """
attribute = [
  { name = "hours", kind = "integer", min = 0, max = 99, bins = 5, missing = true },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
  { name = "amount", kind = "real", edges = [0, 10, 30, 100], clip = true },
]
"""
)
REQUEST = BinTotals((0, 2), ((0, 0, 0, 1, 1, NO_CLASS), (0, 0, 1)), ((SPAN,) * 6, (1, 2, 7)), 3)


def rows_of(**columns):
    return SCHEMA.encode(pd.DataFrame(columns))


def test_the_totals_are_those_of_a_loop_over_the_rows():
    rng = np.random.default_rng(1)
    hours = [
        None if gap else int(h)
        for h, gap in zip(rng.integers(0, 100, 400), rng.random(400) < 0.1, strict=True)
    ]
    codes = rows_of(
        hours=pd.array(hours, "Int64"), sex=["F"] * 400, amount=rng.uniform(-9, 120, 400)
    )
    totals = np.zeros(4, dtype=int)
    for row in range(400):
        for column, place, start in ((0, 0, 0), (1, 2, 2)):
            code, inside = codes.columns[place][row], int(codes.places[place][row])
            own, spans = REQUEST.classes[column], REQUEST.spans[column]
            if own[code] != NO_CLASS:
                widest = max(s for s, c in zip(spans, own, strict=True) if c == own[code])
                exact = Fraction((inside - 127) * spans[code], widest)
                totals[start + own[code]] += int((exact + Fraction(1, 2)) // 1)
    answer = REQUEST.answer(RowsInMemory(codes))
    assert answer.tolist() == totals.tolist()
    assert [own.tolist() for own in REQUEST.split(answer).values()] == [
        totals[:2].tolist(),
        totals[2:].tolist(),
    ]
    assert np.abs(answer).max() <= REQUEST.limit(400)


def test_an_empty_cell_and_a_row_without_places_add_nothing():
    codes = rows_of(hours=pd.array([None], "Int64"), sex=["F"], amount=[5.0])
    assert not REQUEST.answer(RowsInMemory(codes)).any()
    drawn = Codes(codes.columns, codes.sizes)
    assert not REQUEST.answer(RowsInMemory(drawn)).any()


def test_no_two_rows_are_further_apart_than_the_sensitivity():
    """Every value and place of either column against every other: attained in both norms."""
    added = []
    for own, spans in zip(REQUEST.classes, REQUEST.spans, strict=True):
        rows = np.zeros((len(own) * PLACES, max(own) + 1), dtype=int)
        moved = distances(own, spans)
        for code, number in enumerate(own):
            if number != NO_CLASS:
                rows[code * PLACES : (code + 1) * PLACES, number] = moved[code]
        assert np.abs(rows).max() <= LARGEST
        added.append(np.unique(rows, axis=0))
    pairs = [own[:, None] - own[None] for own in added]
    assert sum(np.abs(each).sum(2).max() for each in pairs) == REQUEST.sensitivity.l1
    assert sum((each**2).sum(2).max() for each in pairs) == REQUEST.sensitivity.l2_squared


def test_classes_are_neighbours_of_similar_widths():
    spans = (1, 1, 0, 1, 4, 4, 40, 0)
    classes = bin_classes(np.full(8, 10), 80, spans, most=1)
    assert classes == (0, 0, NO_CLASS, 0, 0, 0, 1, NO_CLASS)
    assert bin_classes(np.full(4, 10), 40, (1, 1, 1, 1), most=4) == (0, 1, 2, 3)


def test_the_request_is_told_apart_by_all_of_it():
    others = (
        BinTotals(REQUEST.columns, REQUEST.classes, REQUEST.spans, 4),
        BinTotals(REQUEST.columns, REQUEST.classes[::-1], REQUEST.spans, 3),
        BinTotals((0, 1), REQUEST.classes, REQUEST.spans, 3),
        BinTotals(REQUEST.columns, REQUEST.classes, (REQUEST.spans[0], (1, 2, 8)), 3),
    )
    assert len({REQUEST.canonical, *(each.canonical for each in others)}) == 5


def facts(rows, *, spans=((SPAN,) * 16, ()), epsilon=1):
    return PublicFacts(
        sizes=(16, 2), parties=("a",), rows=rows, promise=Promise(Fraction(epsilon)), spans=spans
    )


@pytest.mark.parametrize(
    ("rows", "share"), [(500, 0), (2_000, Fraction(1, 50)), (100_000, Fraction(1, 100))]
)
def test_the_sum_is_made_where_its_noise_is_far_below_half_a_bin(rows, share):
    assert totals_share(facts(rows)) == share
    assert totals_share(facts(rows, spans=((), ()))) == 0


HEAPED = """
attribute = [
  { name = "hours", kind = "integer", min = 1, max = 99 },
  { name = "day", kind = "date", min = 2020-01-01, max = 2020-12-31, bins = 12 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]
"""


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_rows_of_a_study_have_the_means_of_columns_that_heap(delta):
    rng = np.random.default_rng(5)
    n = 12_000
    hours = np.where(rng.random(n) < 0.5, 40, rng.integers(20, 60, n))
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(30 * rng.integers(0, 12, n), unit="D")
    table = pd.DataFrame({"hours": hours, "day": days, "sex": rng.choice(["F", "M"], n)})
    fitted = parley.simulate(
        [table[: n // 2], table[n // 2 :]], Schema.from_toml(HEAPED), epsilon=2, delta=delta, seed=1
    )
    assert [step.name for step in fitted.steps][-1] == "totals"
    drawn = fitted.sample()
    assert abs(drawn["hours"].mean() - hours.mean()) < 0.5  # evenly spread rows: 2 hours off
    assert abs((drawn["day"].mean() - table["day"].mean()).days) <= 4
    assert fitted.to_json()["inside_bins"].keys() == {"hours", "day"}
    without = table.assign(hours=np.minimum(hours, 2)).drop(columns="day")
    listed = Schema.from_toml(HEAPED.replace("min = 1, max = 99", "min = 1, max = 2"))
    listed = Schema((listed.attributes[0], listed.attributes[2]))
    plain = parley.simulate([without[:600], without[600:]], listed, epsilon=2, delta=delta, seed=1)
    assert "totals" not in [step.name for step in plain.steps]
    assert "inside_bins" not in plain.to_json()


def test_report_estimate_and_rows_have_one_mean():
    rng = np.random.default_rng(6)
    n = 6_000
    hours = np.where(rng.random(n) < 0.6, 40, rng.integers(20, 60, n))
    table = pd.DataFrame({"hours": hours, "sex": rng.choice(["F", "M"], n)})
    schema = Schema.from_toml(HEAPED)
    schema = Schema((schema.attributes[0], schema.attributes[2]))
    fitted = parley.simulate([table[: n // 2], table[n // 2 :]], schema, epsilon=3, seed=2)
    (known,) = known_means(fitted)
    (asked,) = fitted.estimate(mean(schema, "hours"))
    assert (asked.estimate, asked.low, asked.high) == (known.mean, known.low, known.high)
    assert known.low <= hours.mean() <= known.high
    assert known.high - known.low < 1.5  # half a bin on either side would be 6
    (by_rows,) = fitted.estimate(lambda rows: rows["hours"].mean(), uses=["hours"], tables=5)
    assert by_rows.estimate == pytest.approx(known.mean, abs=0.5)
