"""How owners stand to the sums of a study."""

import pytest

from common.study.standing import State, standings


@pytest.mark.parametrize(
    ("missing", "left", "state", "sums", "words"),
    [
        ({}, (), State.WHOLE, 3, "in every sum"),
        ({}, ("west",), State.LEFT, 3, "left after sum 3, and is counted up to it"),
        ({"west": 2}, ("west",), State.LEFT, 2, "left after sum 2, and is counted up to it"),
        ({"west": 1}, (), State.LEFT, 1, "left after sum 1, and is counted up to it"),
        ({"west": 0}, (), State.MISSING, 0, "missing from the start: in no sum"),
    ],
)
def test_an_owner_is_in_one_of_three_states(missing, left, state, sums, words):
    east, west = standings(("east", "west"), sums=3, missing=missing, left=left)
    assert (east.state, east.sums) == (State.WHOLE, 3)
    assert (west.state, west.sums, west.words) == (state, sums, words)
    assert west.as_json() == {"party": "west", "state": state.value, "sums": sums}
