"""What may be used together: every pair under its verdict."""

from itertools import combinations

import numpy as np

from common.analysis.conclusions import pair_groups
from common.analysis.diagnostics import Diagnostics, PairVerdict
from common.release.measured import MeasuredTable
from common.report.usable_pairs import usable_pairs


def measured(pair, residuals=None):
    scores = None if residuals is None else np.asarray(residuals, dtype=float)
    return MeasuredTable(
        name="step", attributes=pair, shape=(2, 2), deviation=1.0, rows=1000,
        grouped=(False, False), residuals=scores,
        deviations=None if scores is None else np.ones(scores.size),
    )  # fmt: skip


def section(names, *tables):
    every = frozenset(combinations(range(len(names)), 2))
    found = Diagnostics(tuple(names), tables, every)
    return usable_pairs(found, pair_groups(found, None))


def test_every_pair_stands_under_its_verdict_with_its_reason():
    (made,) = section("abc", measured((0, 1)), measured((1, 2), [9, -9, -9, 9]))
    safe, care, absent = (made.html.index(f"<h3>{v.capitalize()}") for v in PairVerdict)
    assert safe < made.html.index("a and b") < care
    assert care < made.html.index("b and c") < absent
    assert absent < made.html.index("a and c")
    assert "do not follow" in made.html
    assert "0 of 1 triple of attributes were counted together" in made.html


def test_sums_come_with_the_largest_residual_first():
    (made,) = section("abc", measured((0, 1), [1, -1, -1, 1]), measured((1, 2), [9, -9, -9, 9]))
    first, second = made.html.index("step: b, c"), made.html.index("step: a, b")
    assert made.html.index("Residuals") < first < second
    assert "Residuals" not in section("ab", measured((0, 1)))[0].html


def test_a_long_list_is_folded_and_cut():
    names = [f"c{n}" for n in range(14)]
    (made,) = section(names, *(measured(pair) for pair in combinations(range(14), 2)))
    assert "<details><summary>Show the pairs</summary>" in made.html
    assert "<code>parley describe --pairs</code> lists the others" in made.html
    assert made.html.count(" and c") == 60
    (short,) = section("abcd", *(measured(pair) for pair in combinations(range(4), 2)))
    assert "<details" not in short.html


def test_one_column_has_no_pairs():
    assert section("a") == []
