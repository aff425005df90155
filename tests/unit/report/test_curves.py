"""The picture of survival: well-formed, a staircase for each group, and no gap is drawn over."""

from xml.etree import ElementTree

from common.analysis.estimates import Estimate
from common.analysis.survival import Curve
from common.report.curves import curves_svg


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
