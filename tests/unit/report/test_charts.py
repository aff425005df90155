"""Bars, intervals and heat maps show the numbers that they are given."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from common.analysis.estimates import Estimate
from common.analysis.survival import Curve
from common.report.charts import (
    Series,
    _groups,
    _interval,
    bar_rows,
    curves_svg,
    distribution,
    heatmap,
    shorten,
)
from common.schema.attribute import Attribute
from common.schema.binning import Binning
from tests.harness.schemas import single
from tests.unit.report.conftest import local, parse


def bars(chart):
    return [e for e in parse(chart).iter() if local(e) == "rect"]


def words(chart):
    return [e.text for e in parse(chart).iter() if local(e) == "text"]


def test_bars_are_as_long_as_their_shares_and_print_them():
    chart = bar_rows("t", ["a", "b"], [Series("synthetic", [0.25, 0.75])])
    first, second = (float(e.get("width")) for e in bars(chart))
    assert second == pytest.approx(3 * first, rel=0.01)
    assert words(chart) == ["a", "25.0%", "b", "75.0%"]


def test_two_series_print_both_shares_under_their_names():
    chart = bar_rows("t", ["a"], [Series("real", [0.25]), Series("synthetic", [1.0])])
    assert words(chart) == ["real", "synthetic", "a", "25.0%", "100.0%"]


def test_negative_values_draw_no_negative_width():
    chart = bar_rows("t", ["a", "b"], [Series("noisy", [-0.1, 1.1])], [(-0.2, 0.1), (0.9, 1.2)])
    assert all(float(e.get("width")) >= 0 for e in bars(chart))


def test_an_interval_reaches_from_its_low_end_to_its_high_end():
    chart = bar_rows("t", ["a"], [Series("synthetic", [0.5])], [(0.25, 1.0)])
    (bar,) = bars(chart)
    (line,) = (e.get("d") for e in parse(chart).iter() if local(e) == "path")
    low, high = (float(x) for x in re.match(r"M([0-9.]+) [0-9.]+H([0-9.]+)", line).groups())
    zero, half = float(bar.get("x")), float(bar.get("width"))
    assert low - zero == pytest.approx(half / 2, abs=0.2)
    assert high - zero == pytest.approx(2 * half, abs=0.2)


@pytest.mark.parametrize("count", [1, 2, 52])
def test_heatmap_has_a_cell_for_every_pair(count):
    names = [f"attribute {i}" for i in range(count)]
    picture = parse(heatmap("t", names, np.eye(count)))
    cells = [e for e in picture.iter() if local(e) == "rect" and len(e)]
    assert len(cells) == count * count


def test_heat_grows_deeper_and_is_printed_where_there_is_room():
    values = np.array([[0.0, 0.3], [0.6, 1.0]])
    picture = heatmap("t", ["a", "b"], values)
    depths = [float(e.get("fill-opacity")) for e in parse(picture).iter() if local(e) == "rect"]
    assert depths == sorted(depths)
    assert {".30", ".60", "1.00"} <= set(words(picture))


def test_a_signed_map_tells_more_from_less_by_colour():
    picture = parse(heatmap("t", ["a", "b"], np.array([[0.0, 0.2], [-0.2, 0.0]]), signed=True))
    _, more, less, _ = (e.get("fill") for e in picture.iter() if local(e) == "rect")
    assert more != less


def test_shortened_words_fit():
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"


def attribute(kind, **keys):
    return single(kind, **keys).attributes[0]


ORDERED = attribute("integer", min=0, max=99, bins=50, missing="true", other="true")
WORDS = attribute("categorical", values=[f"w{n}" for n in range(40)])
SMALL = attribute("categorical", values=["a", "b"], missing="true")


@pytest.mark.parametrize("of", [ORDERED, WORDS, SMALL], ids=["ordered", "words", "small"])
def test_every_value_is_in_one_row_and_there_are_few(of):
    shares = np.random.default_rng(1).dirichlet(np.ones(of.size))
    groups = _groups(of, shares)
    places = np.concatenate([own for _, own in groups])
    assert sorted(places.tolist()) == list(range(of.size))
    assert len(groups) == {52: 27, 40: 16, 3: 3}[of.size]


def test_neighbours_of_an_order_are_put_together_and_special_values_stand_alone():
    labels = [label for label, _ in _groups(ORDERED, np.ones(52) / 52)]
    assert labels[0] == "0..3"
    assert labels[-2:] == ["(other)", "(missing)"]
    for _, own in _groups(ORDERED, np.ones(52) / 52):
        assert (np.diff(own) == 1).all()


@pytest.mark.parametrize("bins", [*range(16, 21), 40, 48, 80])
def test_even_bins_make_an_even_picture(bins):
    """Groups of unequally many bins would show a mode that is not there."""
    of = attribute("integer", min=0, max=bins - 1, bins=bins)
    groups = _groups(of, np.ones(bins) / bins)
    assert len({len(own) for _, own in groups}) == 1


def test_of_many_words_the_most_frequent_are_shown_and_the_rest_together():
    shares = np.arange(40) / np.arange(40).sum()
    groups = _groups(WORDS, shares)
    assert [label for label, _ in groups[:3]] == ["w39", "w38", "w37"]
    assert groups[-1][0] == "25 others"
    assert len(groups[-1][1]) == 25


def test_an_interval_grows_with_the_root_of_the_values_in_it():
    noisy = np.full(10, 0.05)
    low, high = _interval(noisy, np.arange(4), deviation=0.01)
    assert (low + high) / 2 == pytest.approx(0.2)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.01 * 2)


def test_a_chart_prints_the_shares_of_its_groups():
    shares = np.arange(40) / np.arange(40).sum()
    drawn = distribution(WORDS, [Series("released", shares.tolist())])
    assert "Distribution of x" in drawn
    others = f"{shares[:25].sum():.1%}"
    assert re.search(re.escape(others), drawn)


def test_wide_bins_are_drawn_by_density_so_that_none_looks_like_a_peak():
    """Each number is as frequent as any other; the third bin is three times as wide."""
    counted = Attribute("n", "integer", Binning((0, 10, 20, 50), equal=False), missing=True)
    chart = distribution(counted, [Series("synthetic", [0.2, 0.2, 0.6, 0.0])])
    drawn = chart[chart.index("<svg") : chart.index("</svg>") + 6]
    first, second, third, empty = (float(bar.get("width")) for bar in bars(drawn))
    assert first == second == pytest.approx(third, rel=0.05)
    assert empty == 0
    assert "60.0%" in words(drawn)
    assert "n (bars by density)" in chart


def test_bins_of_one_width_are_drawn_by_their_shares():
    counted = Attribute("n", "integer", Binning.equal_width(0, 80, 8, whole=True))
    assert "density" not in distribution(counted, [Series("synthetic", [0.125] * 8)])


def test_lights_differ_in_form_and_are_named():
    lights = {(0, 1): 0, (0, 2): 1, (1, 2): 2}
    picture = heatmap("t", list("abc"), np.eye(3), lights=lights, legend=["well", "roughly", "no"])
    shapes = [local(e) for e in parse(picture).iter()]
    assert (shapes.count("circle"), shapes.count("path")) == (3, 6), "twice each, and the legend"
    assert words(picture)[-3:] == ["well", "roughly", "no"]
    assert all(f'"{colour}"' in picture for colour in ("#009e73", "#e69f00", "#d55e00"))


def point(value, group=None):
    low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
    return Estimate("survival", group, value, 0.05, low, high, flagged=False)


def test_every_group_has_a_staircase_inside_of_its_intervals():
    curves = [
        Curve(group, (1.0, 2.0, 3.0), (point(0.9), point(0.5), point(None)))
        for group in ("old & grey", "new")
    ]
    drawn = ElementTree.fromstring(curves_svg("months", curves))  # noqa: S314
    paths = [own for own in drawn.iter() if own.tag.endswith("path") and own.get("stroke-width")]
    assert len(paths) == 2
    # level, down, level, down: the time without an estimate is not drawn
    assert paths[0].get("d").count("L") == 5
    words = "".join(drawn.itertext())
    assert "old & grey" in words
    assert "months" in words


def test_a_curve_of_all_people_is_called_so():
    assert ">all<" in curves_svg("months", [Curve(None, (1.0,), (point(0.4),))])
