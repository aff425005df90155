"""Three groups of pairs: by the widths of intervals, or by verdicts where there are none."""

from itertools import combinations

from common.analysis.conclusions import WELL, Conclusions, Precision, pair_groups
from common.analysis.diagnostics import Diagnostics, PairVerdict
from tests.unit.report.test_usable_pairs import measured

FOUND = Diagnostics(
    tuple("abc"), (measured((0, 1)), measured((1, 2))), frozenset(combinations(range(3), 2))
)


def test_widths_make_the_groups_where_they_are_known():
    known = (Precision("a and b", WELL), Precision("b and c", WELL + 0.01))
    well, roughly, absent = pair_groups(FOUND, Conclusions((), (), known, ("a and c",)))
    assert [each.name for each in (well, roughly, absent)] == [
        "told well", "told roughly", "not measured",
    ]  # fmt: skip
    assert [list(each.pairs) for each in (well, roughly, absent)] == [[(0, 1)], [(1, 2)], [(0, 2)]]
    assert well.why((0, 1)).startswith("a correlation within +-0.10; noise moves ")
    assert absent.why((0, 2)) == "never counted together"


def test_verdicts_make_the_groups_elsewhere():
    groups = pair_groups(FOUND, None)
    assert [each.name for each in groups] == [str(verdict) for verdict in PairVerdict]
    assert sum(len(each.pairs) for each in groups) == 3
    assert groups[0].why((0, 1)) == FOUND.pairs[0, 1].reason
