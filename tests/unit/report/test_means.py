"""The section on means, if there are any."""

from common.analysis.means import Mean
from common.report.means import means_section


def test_a_mean_is_shown_in_a_picture_and_a_table():
    (section,) = means_section([Mean("children", 1.5, 0.25 / 1.96, (0.0, 5.0))])
    assert "children" in section.html
    assert "1.25 .. 1.75" in section.html
    assert 'role="img"' in section.html


def test_without_means_there_is_no_section():
    assert means_section([]) == []
