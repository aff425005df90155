"""The section on means, if there are any."""

from common.analysis.answers import Answer
from common.analysis.estimates import Estimate
from common.analysis.means import Mean
from common.report.estimates import answers_section, means_section
from common.study.analyses import Analysis


def test_a_mean_is_shown_in_a_picture_and_a_table():
    (section,) = means_section([Mean("children", 1.5, 0.25 / 1.96, (0.0, 5.0))])
    assert "children" in section.html
    assert "1.25 .. 1.75" in section.html
    assert 'role="img"' in section.html


def test_without_means_there_is_no_section():
    assert means_section([]) == []


ANALYSIS = Analysis("mean", ("income",), ("sex",))


def estimate(group, value=10.0, *, flagged=False):
    low, high = (None, None) if value is None else (value - 1, value + 1)
    return Estimate("mean of income", group, value, 0.5, low, high, flagged)


def test_without_analyses_there_is_no_section():
    assert answers_section([]) == []


def test_a_line_has_the_estimate_its_interval_and_why_it_is_wide():
    lines = (estimate("f"), estimate("m", None), estimate("x", flagged=True))
    (section,) = answers_section([Answer(ANALYSIS, lines)])
    text = str(section.html)
    assert section.title == "What was asked"
    for words in ("mean of income by sex", "9", "11", "too few rows", "wide: not measured"):
        assert words in text


def test_many_lines_are_folded_away():
    lines = tuple(estimate(str(number)) for number in range(30))
    (section,) = answers_section([Answer(ANALYSIS, lines)])
    assert "30 estimates" in str(section.html)
