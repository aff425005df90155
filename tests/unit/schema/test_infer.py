"""Proposals: the table fits them, and their owner is told what to review."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.schema import WARNING
from common.tables import read_table

ROWS = 60
FRAME = pd.DataFrame(
    {
        "id": np.arange(1, ROWS + 1),
        "name": [f"person {row}" for row in range(ROWS)],
        "age": [20 + row % 40 for row in range(ROWS)],
        "children": [float(row % 5) if row else np.nan for row in range(ROWS)],
        "income": [row * 1.5 + 0.25 for row in range(ROWS)],
        "sex": ["F", "M"] * (ROWS // 2),
        "work": ["Private", "?", "State"] * (ROWS // 3),
        "code": [0, 1] * (ROWS // 2),
        "smokes": [True, False] * (ROWS // 2),
        "insured": ["true", "False", None] * (ROWS // 3),
        "born": [dt.date(1980, 1, 1) + dt.timedelta(days=row) for row in range(ROWS)],
        "seen": [f"2024-01-01T{row % 24:02}:30:00" for row in range(ROWS)],
        "country": "NL",
        "empty": None,
    }
)


def test_every_column_gets_its_kind_and_the_table_fits():
    proposal = Schema.infer(FRAME)
    kinds = {attribute.name: attribute.kind for attribute in proposal.schema.attributes}
    assert kinds == {
        "age": "integer",
        "children": "integer",
        "income": "real",
        "sex": "categorical",
        "work": "categorical",
        "code": "categorical",
        "smokes": "boolean",
        "insured": "boolean",
        "born": "date",
        "seen": "datetime",
    }
    assert not {"id", "name", "country", "empty"} & set(proposal.schema.names)
    assert proposal.schema.ignore == ()  # a schema is published, and names are an owner's matter
    assert proposal.schema.encode(FRAME).rows == ROWS
    assert [a.name for a in proposal.schema.attributes if a.missing] == ["children", "insured"]


def test_arrow_tables_and_files_get_the_same_proposal(tmp_path):
    path = tmp_path / "people.csv"
    FRAME.to_csv(path, index=False)
    expected = Schema.infer(FRAME).schema
    assert Schema.infer(pa.Table.from_pandas(FRAME)).schema == expected
    table = read_table(path)
    assert Schema.infer(table.data).schema == expected
    assert expected.encode(table.data).rows == ROWS


def test_the_file_starts_with_the_warning_and_reads_back():
    proposal = Schema.infer(FRAME)
    text = proposal.to_toml()
    assert text.startswith("# NOT PRIVATE YET")
    assert "read off the data" in WARNING
    assert Schema.from_toml(text) == proposal.schema


def test_the_notes_name_what_was_read_off_the_data():
    notes = "\n".join(Schema.infer(FRAME).notes)
    assert "age: the range 20..59 was read off the data" in notes
    assert "born: the range 1980-01-01..1980-02-29 was read off" in notes
    assert "work: '?' may stand for an empty cell" in notes
    assert "name: left out, 60 different texts in 60 rows" in notes
    assert "id: left out, the numbers count the rows" in notes
    assert "country: left out, every row has the same value" in notes
    assert "empty: left out, every cell is empty" in notes


def test_rare_values_are_pointed_out():
    frame = pd.DataFrame({"illness": ["flu"] * 30 + ["cold"] * 30 + ["kuru"]})
    assert "illness: values in fewer than 5 rows: 1 of 3;" in Schema.infer(frame).notes[0]


def test_line_breaks_in_names_stay_inside_the_comments():
    proposal = Schema.infer(pd.DataFrame({"a\nb": [1, 2, 3], "c": [True, False, True]}))
    assert Schema.from_toml(proposal.to_toml()) == proposal.schema


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([2**60, 2**61, 3], "beyond 2"),
        ([0.5, np.inf, 1.0], "infinite"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"], utc=True), "zone UTC"),
        ([[1], [2]], "not supported"),
        ([1.0, 1.0 + 2**-52, 1.0], "too many"),
    ],
)
def test_columns_that_cannot_be_attributes_are_left_out_with_the_reason(column, reason):
    frame = pd.DataFrame({"x": column})
    proposal = Schema.infer(frame.assign(y=[n % 2 for n in range(len(frame))]))
    assert proposal.schema.names == ("y",)
    assert reason in proposal.notes[0]


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (
            ["158,2", "160,0", "171"],
            "left out, numbers with a comma (158,2): write a decimal point",
        ),
        (["1,204,000", "2,000"], "left out, numbers with a comma (1,204,000)"),
        (["27.08.2018", "1.9.2018"], "left out, dates in a form that is not read (27.08.2018)"),
        (["8/27/18", "9/1/18"], "write them like 2026-12-31"),
        (["27", "n/a", "31.5"], "'n/a' may stand for an empty cell"),
        (["27", "n/a", "31.5"], "All others are numbers: empty those cells"),
    ],
)
def test_numbers_and_dates_in_another_notation_are_recognised(texts, note):
    column = [texts[row % len(texts)] for row in range(ROWS)]
    frame = pd.DataFrame({"x": column, "y": [0, 1] * (ROWS // 2)})
    assert note in "\n".join(Schema.infer(frame).notes)


def test_a_long_list_of_codes_is_not_called_free_text_alone():
    frame = pd.DataFrame({"zip": [f"Z{row % 1500}" for row in range(3000)], "y": [0, 1] * 1500})
    assert "1,500 different texts in 3,000 rows, more than 1,000" in Schema.infer(frame).notes[0]
    assert "public list" in Schema.infer(frame).notes[0]


def test_digits_that_begin_with_a_zero_are_codes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,age\n" + "01067,0\n80331,10\n10115,20\n" * 20)
    zips, ages = Schema.infer(read_table(path).data).schema.attributes
    assert zips.labels == ("01067", "10115", "80331")
    assert ages.kind == "integer"


def test_a_table_without_anything_to_propose_is_refused():
    with pytest.raises(InputError, match="no rows"):
        Schema.infer(FRAME.iloc[:0])
    with pytest.raises(InputError, match="no column can be an attribute: country"):
        Schema.infer(FRAME[["country"]])


def money(rows=2_000):
    """Most have no debt, some a little, few very much."""
    rng = np.random.default_rng(1)
    return np.where(rng.random(rows) < 0.7, 0, np.exp(rng.normal(8, 1.3, rows)).round() + 1)


def test_skewed_numbers_get_bins_that_grow_and_none_stays_none():
    """In equal bins the mean of the drawn numbers was several times the real one."""
    frame = pd.DataFrame({"debt": money()})
    proposal = Schema.infer(frame)
    drawn = proposal.schema.decode(proposal.schema.encode(frame), SeededRandomSource(1))["debt"]
    assert (drawn == 0).sum() == (frame["debt"] == 0).sum()
    assert drawn.mean() == pytest.approx(frame["debt"].mean(), rel=0.1)
    assert any("the bins grow" in note for note in proposal.notes)


def test_amounts_in_cents_stay_such_and_none_stays_none():
    frame = pd.DataFrame({"paid": np.where(money() > 0, (money() * 1.07).round(2), 0)})
    proposal = Schema.infer(frame)
    assert proposal.schema.attributes[0].domain.decimals == 2
    drawn = proposal.schema.decode(proposal.schema.encode(frame), SeededRandomSource(1))["paid"]
    assert (drawn == 0).sum() == (frame["paid"] == 0).sum()
    assert (drawn.round(2) == drawn).all()
    assert proposal.schema.attributes[0].labels[0] == "0"
    assert not any("exactly 0" in note for note in proposal.notes)


def test_a_heap_within_a_bin_is_pointed_out():
    rng = np.random.default_rng(1)
    hours = np.where(rng.random(500) < 0.4, 40, rng.integers(10, 60, 500))
    doses = money() * np.pi
    notes = "\n".join(Schema.infer(pd.DataFrame({"hours": hours})).notes)
    assert "hours: more than a tenth are exactly 40, in the bin 40..4" in notes
    assert "list edges" in notes
    notes = "\n".join(Schema.infer(pd.DataFrame({"doses": doses})).notes)
    assert "exactly 0, in the bin 0.." in notes
    assert "empty these cells" in notes


def test_ordinary_numbers_get_neither():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(0, 100, 500), "kids": rng.poisson(1, 500)})
    notes = "\n".join(Schema.infer(frame).notes)
    assert "grow" not in notes
    assert "exactly" not in notes


def survey(rows=2_000, seed=4):
    """Numbers with a code for "not applicable", as surveys are."""
    source = np.random.default_rng(seed)
    income = np.exp(source.normal(10, 1, rows)).astype(int)
    income[source.random(rows) < 0.01] *= -1
    income[0] = 1_400_000
    skipped = source.random(rows) < 0.2
    return pd.DataFrame(
        {
            "INCOME": np.where(skipped, "N", income.astype(str)),
            "RATIO": np.where(skipped, "N", (income % 500).astype(str)),
            "EDU": np.where(skipped, "N", source.integers(1, 25, rows).astype(str)),
            "ZIP": [f"{code:05}" for code in source.integers(0, 90, rows)],
            "ROOM": [f"{'A' if code % 2 else ''}{code}" for code in source.integers(1, 30, rows)],
            "SCORE": np.where(source.random(rows) < 0.1, 9999, source.integers(0, 50, rows)),
        }
    )


def test_a_number_column_with_a_few_codes_is_numbers_with_missing_values():
    table = survey()
    proposal = Schema.infer(table)
    income, ratio, edu, *_ = proposal.schema.attributes
    for attribute in (income, ratio, edu):
        assert attribute.kind == "integer"
        assert attribute.missing
        assert attribute.missing_codes == ("N",)
        assert any(n.startswith(f"{attribute.name}: all cells are") for n in proposal.notes)
    codes = proposal.schema.encode(table)
    missing = (table["INCOME"] == "N").to_numpy()
    assert np.array_equal(codes.columns[0] == income.size - 1, missing)
    again = Schema.from_toml(proposal.schema.to_toml())
    assert again == proposal.schema


def test_a_negative_number_does_not_switch_growing_bins_off():
    numbers = survey().query("INCOME != 'N'")["INCOME"].astype(int)
    proposal = Schema.infer(pd.DataFrame({"x": numbers}))
    binning = proposal.schema.attributes[0].domain
    assert any("the bins grow" in note for note in proposal.notes)
    assert binning.low <= numbers.min() < 0 < numbers.max() <= binning.high
    counts = np.bincount(binning.assign(numbers.to_numpy())[0], minlength=binning.count)
    assert counts.max() < 0.5 * len(numbers)


def test_codes_are_in_the_order_of_their_numbers_and_keep_their_zeros():
    rooms = pd.DataFrame({"x": ["10", "9", "1a", "2", "B"] * 20})
    assert Schema.infer(rooms).schema.attributes[0].domain.values == ("2", "9", "10", "1a", "B")
    zips = Schema.infer(survey()).schema.attributes[3]
    assert zips.kind == "categorical"
    assert zips.domain.values[:2] == ("00000", "00001")


@pytest.mark.parametrize(("code", "column"), [("9999", "SCORE"), ("N", "EDU"), ("9999.0", "SCORE")])
def test_codes_for_missing_values_can_be_named(code, column):
    attributes = {a.name: a for a in Schema.infer(survey(), missing=[code]).schema.attributes}
    assert attributes[column].missing_codes == (code,)
    assert attributes["ROOM"].missing_codes == ()
    assert attributes[column].domain.high < 100


def test_a_guess_that_costs_accuracy_has_a_note():
    notes = Schema.infer(survey()).notes
    assert any(note.startswith("SCORE: 9999 is far from all other") for note in notes)
    long_tail = np.concatenate([np.arange(5_000) % 1_000, [10**6]])
    assert any(
        "that noise will fill" in n for n in Schema.infer(pd.DataFrame({"x": long_tail})).notes
    )
    values = pd.DataFrame({"x": [f"v{n % 300}" for n in range(3_000)]})
    assert any("noise is added to every one" in note for note in Schema.infer(values).notes)
    two = np.concatenate([np.full(900, 0.123456), np.full(90, 0.123457), [-1.0, -2.5]])
    assert any(
        "of the rows are in one of" in n for n in Schema.infer(pd.DataFrame({"x": -two})).notes
    )
