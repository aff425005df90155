"""A script whose parties go missing: the steps it asks for, and the sums it is shown."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.exchanges.sums import sum_step
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.sensitivity import Sensitivity
from common.study.requests import TableRequest, scaled
from common.study.script import ScriptRun, Total, measured

ROWS = {"a": 10, "b": 20, "c": 30}


def two_sums(seen):
    for number in range(2):
        step = sum_step(
            name=f"sum {number}",
            phase="sums",
            parties=tuple(ROWS),
            request=TableRequest(((0,),), (2,)),
            sensitivity=Sensitivity.moving(2),
            law=DiscreteLaplace(Fraction(5)),
        )
        seen.append((yield from measured(step)))
    return None


def test_a_sum_without_a_party_is_scaled_to_the_rows_of_all_and_its_noise_with_it():
    seen = []
    run = ScriptRun(two_sums(seen), ROWS)
    run.advance(np.array([40, 20]))
    assert run.step_without(["b"]).parties == ("a", "c")
    assert run.step().parties == ("a", "b", "c")
    run.leave_out(["b"])
    assert run.step().parties == ("a", "c")
    run.advance(np.array([30, 10]))
    assert [step.parties for step in run.steps] == [("a", "b", "c"), ("a", "c")]
    (before, law), (after, wider) = seen
    assert before[0].tolist() == [40, 20]
    assert law.scale == 5
    assert after[0].tolist() == [45, 15]  # times 60 / 40
    # Two shares of three, at 1.5 times the size.
    ratio = wider.nominal_variance / law.nominal_variance
    assert float(ratio) == pytest.approx(2 / 3 * 1.5**2, rel=1e-5)


@given(st.lists(st.integers(-(2**60), 2**60), min_size=1), st.integers(1, 10**10), st.data())
def test_scaling_rounds_exactly_to_the_nearest_integer(counts, top, data):
    bottom = data.draw(st.integers(1, top))
    if max(map(abs, counts)) * top // bottom >= 2**62:
        return
    found = scaled(np.array(counts), top=top, bottom=bottom)
    for count, got in zip(counts, found.tolist(), strict=True):
        assert abs(Fraction(count * top, bottom) - got) <= Fraction(1, 2)


def test_a_total_is_an_array_to_whoever_asks_for_one():
    assert np.asarray(Total(np.arange(3))).tolist() == [0, 1, 2]
