"""Kaplan and Meier: against going through the times one by one, and against known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.analysis.estimates import Estimate
from common.analysis.statistics import CodedTable
from common.analysis.survival import curves_of, kaplan_meier, survival, times_of
from common.errors import InputError
from common.schema import Codes, Schema

SCHEMA = Schema.from_toml("""
attribute = [
  { name = "months", kind = "integer", min = 0, max = 23, bins = 8, missing = true },
  { name = "died", kind = "boolean" },
  { name = "arm", kind = "categorical", values = ["old", "new"] },
]
""")


def by_hand(people, size):
    """Go through the times; at each, count who is still watched and for whom it happened."""
    curve, left = [], 1.0
    for time in range(size):
        watched = [died for end, died in people if end >= time]
        happened = sum(died for end, died in people if end == time and died)
        left = left * (1 - happened / len(watched)) if watched else float("nan")
        curve.append(left)
    return curve


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_survival_is_that_of_going_through_the_times(people):
    times = np.array([end for end, _ in people], dtype=np.int64)
    died = np.array([own for _, own in people], dtype=bool)
    after = kaplan_meier(times, died, range(6))
    watched = times.max(initial=-1)
    curve = [value if time <= watched else np.nan for time, value in enumerate(after)]
    assert curve == pytest.approx(by_hand(people, 6), nan_ok=True)
    known = [value for value in curve if not np.isnan(value)]
    assert all(0 <= b <= a for a, b in zip([1.0, *known], known, strict=False))
    if died.all() and people:  # without censoring it is the share that lives longer
        assert known == pytest.approx([float((times > t).mean()) for t in range(len(known))])


def test_a_missing_time_is_left_out_and_groups_have_their_own_curves():
    columns = [[0, 1, 8, 2, 0, 8], [1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1]]  # month 8 is missing
    codes = Codes.from_columns(list(map(np.array, columns)), SCHEMA.sizes)
    values = survival(SCHEMA, "months", status="died", by="arm").of(CodedTable(SCHEMA, codes))
    assert values["survival of months after 2", "old"] == pytest.approx(0.5)
    assert values["survival of months after 5", "old"] == pytest.approx(0.0)
    assert values["survival of months after 8", "new"] == pytest.approx(1.0)
    as_condition = survival(SCHEMA, "months", status="died = true and arm = old")
    assert as_condition.attributes == {"months", "died", "arm"}


def test_curves_are_cut_by_group():
    attribute = SCHEMA.attributes[0]
    assert times_of(attribute) == [2, 5, 8, 11, 14, 17, 20, 23]
    points = [Estimate("s", group, 0.5, 0.1, 0.3, 0.7, flagged=False)
              for group in ("old", "new") for _ in range(8)]  # fmt: skip
    assert [curve.group for curve in curves_of(attribute, points)] == ["old", "new"]


@pytest.mark.parametrize(
    ("time", "status", "words"),
    [("arm", "died", "arm"), ("months", "months", "twice"), ("months", "cured", "cured")],
)
def test_what_is_no_time_or_status_is_refused(time, status, words):
    with pytest.raises(InputError, match=words):
        survival(SCHEMA, time, status=status)
