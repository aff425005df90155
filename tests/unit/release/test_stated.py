"""How owners stand to the sums of a study."""

import pytest

from common.release.stated import standings


@pytest.mark.parametrize(
    ("missing", "left", "state", "sums", "words"),
    [
        ({}, (), "in every sum", 3, "in every sum"),
        ({}, ("west",), "left", 3, "left after sum 3, and is counted up to it"),
        (
            {"west": 2},
            ("west",),
            "left",
            2,
            "left after sum 2, and is counted up to it",
        ),
        ({"west": 1}, (), "left", 1, "left after sum 1, and is counted up to it"),
        ({"west": 0}, (), "missing", 0, "missing from the start: in no sum"),
    ],
)
def test_an_owner_is_in_one_of_three_states(missing, left, state, sums, words):
    east, west = standings(("east", "west"), sums=3, missing=missing, left=left)
    assert (east.state, east.sums) == ("in every sum", 3)
    assert (west.state, west.sums, west.words) == (state, sums, words)
    assert west.as_json() == {"party": "west", "state": state, "sums": sums}
