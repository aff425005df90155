"""Which statistics a release supports."""

from itertools import combinations

import numpy as np

from common.analysis.diagnostics import Diagnostics, PairVerdict
from common.release.measured import MeasuredTable


def tables_of(*measured, unrelated=None):
    every = frozenset(combinations(range(4), 2)) - {unrelated}
    return Diagnostics(("a", "b", "c", "d"), measured, every)


def measured(attributes, shape, *, deviation=1.0, exact=True, residuals=None, summable=True):
    scores = None if residuals is None else np.asarray(residuals, dtype=float)
    return MeasuredTable(
        name="step", attributes=attributes, shape=shape, deviation=deviation, rows=1_000,
        grouped=(not exact,) * len(attributes), residuals=scores, summable=summable,
        deviations=None if scores is None else np.ones(scores.size),
    )  # fmt: skip


def test_pairs_are_safe_or_to_be_used_with_care_or_absent():
    found = tables_of(
        measured((0, 1), (2, 2)),
        measured((0, 2), (2, 2), deviation=200.0),
        measured((1, 2), (2, 2), exact=False),
        measured((1, 3), (16, 8), exact=False, deviation=0.5),
        measured((0, 2, 3), (2, 2, 2), summable=False),
        measured((2, 3), (2, 2), residuals=[9, -9, -9, 9]),
    ).pairs
    assert {pair: facts.verdict for pair, facts in found.items()} == {
        (0, 1): PairVerdict.SAFE, (0, 2): PairVerdict.CARE, (1, 2): PairVerdict.CARE,
        (1, 3): PairVerdict.SAFE, (2, 3): PairVerdict.CARE, (0, 3): PairVerdict.ABSENT,
    }  # fmt: skip
    assert "do not follow" in found[2, 3].reason
    assert "in few groups" in found[1, 2].reason
    weak = tables_of(measured((0, 1), (2, 2)), unrelated=(0, 1)).pairs[0, 1]
    assert weak.verdict is PairVerdict.CARE
    assert "no relation" in weak.reason


def test_statistics_of_what_was_not_measured_are_flagged():
    found = tables_of(*(measured(pair, (2, 2)) for pair in ((0, 1), (0, 2), (1, 2))))
    assert found.concerns(["a"]) == found.concerns(["a", "b"]) == []
    assert "never counted together" in found.concerns(["a", "d"])[0]
    assert found.concerns(["a", "b", "c"])  # every pair was counted, the triple was not
    assert found.concerns(["a", "b", "c"], pairwise=True) == []
    assert found.triples == 0
    assert tables_of(measured((0, 1, 2), (2, 2, 2))).concerns(["a", "b", "c"]) == []
