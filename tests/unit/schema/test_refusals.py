"""What an owner is told about cells that the schema refuses."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError
from common.schema.refusals import NumbersFrom, describe
from tests.unit.schema.every_kind import encoded, single


def test_refused_cells_are_shown_first_five_with_their_rows():
    column = pd.Series(["a", "z0", "b", "z1", "z2", "z3", "z4", "z5"])
    with pytest.raises(InputError) as caught:
        single("categorical", values='["a", "b"]').encode(
            pd.DataFrame({"x": column}),
            where="people.csv",
            row_numbers=lambda rows: [r + 2 for r in rows],
        )
    text = str(caught.value)
    assert text.startswith("people.csv: attribute 'x': 6 cells are outside the domain a, b: ")
    assert "row 3: 'z0'; row 5: 'z1'; row 6: 'z2'; row 7: 'z3'; row 8: 'z4', ..." in text
    assert "z5" not in text


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (single("integer", min=0, max=9), pd.Series([1, np.nan])),
        (single("real", min=0, max=9), pd.Series([1, np.nan])),
        (single("real", min=0, max=9), pa.array([1.0, float("nan")])),
        (single("categorical", values='["a", "b"]', other="true"), pd.Series(["a", None])),
        (single("boolean"), pd.Series([True, None], dtype="boolean")),
        (
            single("date", min="2024-01-01", max="2024-01-09"),
            pd.to_datetime(pd.Series(["2024-01-02", None])),
        ),
        (single("integer", min=0, max=9), pa.array([1, None]).dictionary_encode()),
    ],
)
def test_an_empty_cell_is_refused_unless_the_schema_allows_it(schema, column):
    with pytest.raises(
        InputError, match=r"attribute 'x': 1 cell is empty \(row 1\).*missing = true"
    ):
        encoded(schema, column)


def test_a_time_zone_is_refused_with_advice():
    column = pd.Series(pd.to_datetime(["2024-01-01"], utc=True))
    with pytest.raises(InputError, match=r"a time zone: row 0: .*drop the zone"):
        encoded(single("date", min="2024-01-01", max="2024-01-09"), column)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (single("integer", min=0, max=99, bins=10), "0..99 (integer)"),
        (single("real", min=0.5, max=2, bins=3), "0.5..2.0"),
        (single("date", min="2024-01-01", max="2024-01-09"), "2024-01-01..2024-01-09 (date)"),
        (single("categorical", values='["a", "b, c", " d"]'), "a, 'b, c', ' d'"),
        (
            single("ordinal", values=list(range(9))),
            "0, 1, 2, 3, 4, 5, 6, 7, ... (9 values)",
        ),
    ],
)
def test_a_domain_is_described_in_a_few_words(schema, words):
    assert describe(schema.attributes[0]) == words


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array(["7.0 ", "2"]), "row 0: 7.0. "),
        (pa.array([b"\xff", b"2"]), r"row 0: b'\xff'"),
        (pa.array(["x" * 100, "2"]), "row 0: '" + "x" * 56 + "..."),
        (pa.array([7.5, 2]), "row 0: 7.5. "),
    ],
)
def test_a_cell_is_shown_as_what_it_is_and_never_at_length(column, shown):
    with pytest.raises(InputError) as refused:
        encoded(single("integer", min=0, max=5), column)
    assert shown in str(refused.value)


def test_the_remedy_is_one_that_the_domain_has():
    with pytest.raises(InputError, match=r"other = true .* or clip = true"):
        encoded(single("integer", min=0, max=5), pa.array([9]))
    with pytest.raises(InputError, match="in the schema with other = true") as refused:
        encoded(single("categorical", values='["a", "b"]'), pa.array(["c"]))
    assert "clip" not in str(refused.value)


def test_rows_of_a_later_piece_of_a_table_have_their_own_numbers():
    numbers = NumbersFrom(100, lambda positions: [position + 2 for position in positions])
    assert numbers([0, 5]) == [102, 107]
