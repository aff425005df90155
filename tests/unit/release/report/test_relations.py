"""A report shows relations that the rows have, none that chance made, and what may be used."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import parley
from common.release.diagnostics import Diagnostics, Measured, Verdict
from common.release.fitted_study import study_drawing
from common.release.report.relations import floor_forecast, relations, significant, usable_pairs
from common.release.writing import write_release
from common.schema import Codes, Schema

SIZES = (2, 3, 5, 12, 20, 60)
NAMES = tuple("abcdef")
SCHEMA = parley.Schema.from_toml(
    "".join(
        f'[[attribute]]\nname = "{name}"\nkind = "integer"\nmin = 1\nmax = {size}\nbins = {size}\n'
        for name, size in zip(NAMES, SIZES, strict=True)
    )
)


def independent(rows, seed):
    """Attributes of few and many values, some of them rare."""
    rng = np.random.default_rng(seed)
    return [rng.choice(size, rows, p=rng.dirichlet(np.full(size, 0.4))) for size in SIZES]


def related(rows, seed):
    """Half of the rows of the second attribute follow the first, and of the fourth the third."""
    columns = independent(rows, seed)
    half = np.random.default_rng(seed).random((2, rows)) < 0.5
    columns[1] = np.where(half[0], columns[0], columns[1])
    columns[3] = np.where(half[1], columns[2], columns[3])
    return columns


def codes(columns):
    return Codes.from_columns(columns, SIZES)


@pytest.mark.parametrize("rows", [100, 1_200, 20_000])
def test_independent_attributes_never_stand_out(rows):
    for seed in range(10):
        found = relations(NAMES, codes(independent(rows, seed)))
        assert found.related == 0
        assert found.alone == NAMES
        assert np.array_equal(found.strength, np.eye(len(SIZES)))


def test_related_attributes_do():
    found = relations(NAMES, codes(related(1_200, 1)))
    assert found.related == 2
    assert found.strength[0, 1] > 0.2
    assert found.strength[2, 3] > 0.2
    assert found.alone == ("e", "f")
    assert found.caution().startswith("No relations: 2 of 6 columns (e, f)")


def test_all_attributes_alone_are_a_caution():
    words = relations(NAMES, codes(independent(1_200, 1))).caution()
    assert words.startswith("No relations: 6 of 6 columns (a, b, c, d, e, f)")


def test_two_attributes_may_well_be_independent():
    two = Codes.from_columns(independent(1_200, 1)[:2], SIZES[:2])
    assert relations(NAMES[:2], two).caution() is None


def test_one_attribute_or_one_value_has_no_relations():
    assert relations(["a"], Codes.from_columns([np.array([0, 1])], (2,))).alone == ("a",)
    assert not significant(np.array([[5, 7], [0, 0]]), among=1)


def test_a_picture_of_a_model_without_arrows_has_none_that_chance_made():
    """In 1,200 independent rows the strongest pair by chance has more than 0.3 bits."""
    drawing = study_drawing(object(), SCHEMA, codes(independent(1_200, 1)))
    assert drawing.strengths == {}
    assert "No two attributes are significantly dependent" in drawing.without_edges
    drawing = study_drawing(object(), SCHEMA, codes(related(1_200, 1)))
    assert {frozenset(edge) for edge in drawing.strengths} == {frozenset("ab"), frozenset("cd")}
    assert sorted(drawing.names) == list(NAMES)


def measured(pair, residuals=None):
    scores = None if residuals is None else np.asarray(residuals, dtype=float)
    return Measured(
        name="step", attributes=pair, shape=(2, 2), deviation=1.0, rows=1000,
        grouped=(False, False), residuals=scores,
        deviations=None if scores is None else np.ones(scores.size),
    )  # fmt: skip


def section(names, *tables):
    every = frozenset(combinations(range(len(names)), 2))
    return usable_pairs(Diagnostics(tuple(names), tables, every))


def test_every_pair_stands_under_its_verdict_with_its_reason():
    (made,) = section("abc", measured((0, 1)), measured((1, 2), [9, -9, -9, 9]))
    safe, care, absent = (made.html.index(f"<h3>{v.capitalize()}") for v in Verdict)
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
    assert "`parley describe`" not in made.html
    assert "<code>parley describe</code> lists the others" in made.html
    assert made.html.count(" and c") == 60
    (short,) = section("abcd", *(measured(pair) for pair in combinations(range(4), 2)))
    assert "<details" not in short.html


def test_one_column_has_no_pairs():
    assert section("a") == []


COINS = Schema.from_toml(
    "".join(f'[[attribute]]\nname = "a{i}"\nkind = "boolean"\n' for i in range(8))
)


def copies(rows):
    """Eight copies of one coin: as dependent as can be."""
    coin = np.random.default_rng(3).random(rows) < 0.5
    return pd.DataFrame({f"a{i}": coin for i in range(8)})


def coins(rows):
    """Eight coins that know nothing of each other."""
    tossed = np.random.default_rng(4).random((rows, 8)) < 0.5
    return pd.DataFrame({f"a{i}": tossed[:, i] for i in range(8)})


def study(table, epsilon):
    parts = [table.iloc[::2], table.iloc[1::2]]
    return parley.simulate(
        parts, COINS, epsilon=epsilon, method="dp-subn", aggregation="clear", seed=1
    )


def forecast_of(fitted):
    return floor_forecast(
        fitted.model,
        fitted.steps,
        fitted.sample_codes(),
        rows=fitted.rows,
        promise=fitted.study.promise,
    )


@pytest.mark.parametrize(
    ("table", "epsilon", "below"),
    [(copies(4_000), 2, False), (coins(4_000), 0.4, True)],
)
def test_the_report_warns_exactly_where_noise_exceeds_dependence(tmp_path, table, epsilon, below):
    fitted = study(table, epsilon)
    forecast = forecast_of(fitted)
    assert forecast.below_floor is below
    write_release(tmp_path, fitted)
    assert ("Below the floor" in (tmp_path / "report.html").read_text()) is below


def test_the_floor_itself_is_not_warned_about():
    parts = [coins(500), coins(500)]
    fitted = parley.simulate(parts, COINS, epsilon=0.1, method="floor", aggregation="clear", seed=1)
    forecast = forecast_of(fitted)
    assert forecast is None or not forecast.below_floor
