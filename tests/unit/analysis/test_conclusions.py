"""What may be concluded: every column and pair is named once, by how exactly it is known."""

import numpy as np

import parley
from common.analysis.conclusions import Conclusions, Precision, conclude
from tests.unit.analysis.estimated import SCHEMA, people


def study(method, epsilon):
    rows = people(3_000)
    return parley.simulate(
        [rows.iloc[::2], rows.iloc[1::2]], SCHEMA,
        epsilon=epsilon, delta="1e-6", method=method, aggregation="clear", seed=1,
    )  # fmt: skip


def test_pairs_that_were_counted_have_a_width_and_others_are_named():
    floor = study("floor", "1")
    found = conclude(floor, floor.diagnostics)
    assert [each.name for each in found.columns] == sorted(
        SCHEMA.names, key=lambda name: next(k.within for k in found.columns if k.name == name)
    )
    assert found.pairs == ()
    assert len(found.unmeasured) == 3
    exact, noisy = (study("subn+", epsilon) for epsilon in ("30", "2"))
    widths = []
    for fitted in (exact, noisy):
        concluded = conclude(fitted, fitted.diagnostics)
        assert len(concluded.pairs) + len(concluded.unmeasured) == 3
        widths.append(np.mean([each.within for each in concluded.pairs] or [1.0]))
    assert widths[0] < widths[1]


def test_ten_lines_are_enough_for_any_number_of_pairs():
    known = tuple(Precision(f"pair {place}", place / 100) for place in range(100))
    names = tuple(map(str, range(50)))
    lines = list(Conclusions(known, names, known, names).lines())
    assert len(lines) <= 10
    assert "11 of 150 pairs" in lines[3]
