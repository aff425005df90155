import pytest

from common.wording import many


@pytest.mark.parametrize(
    ("number", "word", "written"),
    [
        (0, "row", "0 rows"),
        (1, "row", "1 row"),
        (1_200, "made-up row", "1,200 made-up rows"),
        (1, "party", "1 party"),
        (2, "party", "2 parties"),
        (2, "day", "2 days"),
        (1, "synthetic person", "1 synthetic person"),
        (2_000, "synthetic person", "2,000 synthetic people"),
    ],
)
def test_a_number_of_things_is_written_as_people_do(number, word, written):
    assert many(number, word) == written
