"""Proposals: the table fits them, and their owner is told what to review."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.attribute import Listed
from common.schema.infer import LEAST_ROWS
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
    assert "name: left out, its name says that it holds names of people" in notes
    assert "id: left out, its name says that it holds identifiers" in notes
    assert "country: left out, every row has the same value" in notes
    assert "empty: left out, every cell is empty" in notes


def test_what_looks_like_an_identifier_is_left_out_whatever_it_is_called():
    frame = FRAME.rename(columns={"id": "a", "name": "b"})
    notes = "\n".join(Schema.infer(frame).notes)
    assert "a: left out, the numbers count the rows" in notes
    assert "b: left out, 60 different texts in 60 rows" in notes


def test_numbers_that_count_people_are_left_out_and_measurements_are_not():
    rng = np.random.default_rng(3)
    who = np.concatenate([np.arange(1, 1201), rng.integers(1, 1201, 800)])
    frame = pd.DataFrame({"who": who, "ratio": rng.integers(0, 500, 2_000), "y": who % 2})
    proposal = Schema.infer(frame)
    assert proposal.schema.names == ("ratio", "y")
    assert "who: left out, 1,200 different numbers, few rows each" in "\n".join(proposal.notes)


def test_rare_values_are_not_listed_unless_a_public_list_has_them():
    frame = pd.DataFrame({"illness": ["flu"] * 30 + ["cold"] * 30 + ["kuru"]})
    proposal = Schema.infer(frame)
    (illness,) = proposal.schema.attributes
    assert illness.domain.values == ("cold", "flu")
    assert illness.other
    assert "illness: values in fewer than 5 rows: 1 of 3;" in proposal.notes[0]
    assert proposal.schema.encode(frame).rows == 61
    (illness,) = Schema.infer(frame, public={"illness": ["flu", "cold", "kuru"]}).schema.attributes
    assert illness.domain.values == ("flu", "cold", "kuru")
    assert not illness.other
    (illness,) = Schema.infer(frame, public={"illness": ["flu", "pox"]}).schema.attributes
    assert illness.domain.values == ("flu", "pox")
    assert illness.other


FIRST = ["Anna", "Ben", "Carla", "David", "Emma", "Finn", "Greta", "Hugo", "Ida", "Jonas"]
LAST = ["Smith", "Jones", "Brown", "Taylor", "Wilson", "Davies", "Evans", "Thomas"]


def patients(rows, seed):
    """A table of visits of patients, with everything in it that names them."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, max(2, rows // 3), rows)
    first, last = [FIRST[n % 10] for n in who], [LAST[n * 7 % 8] for n in who]
    return pd.DataFrame(
        {
            "first_name": first,
            "LastName": last,
            "patient_id": 100_000 + who,
            "visit": rng.permutation(rows) + 1,
            "mrn": rng.choice(10**9, rows, replace=False) + 10**9,
            "contact": [f"{f.lower()}.{n}@example.org" for f, n in zip(first, who, strict=True)],
            "reached at": [f"+44 20 {n:04} {n * 3:04}" for n in who],
            "notes": [f"came in with pain number {n % 9} again" for n in who],
            "what happened": [f"patient {first[0]} was seen in room {n}" for n in who],
            "age": rng.integers(18, 90, rows),
            "ward": rng.choice(["A", "B", "C"], rows),
            "smokes": rng.random(rows) < 0.01,
        }
    )  # fmt: skip


@settings(deadline=None, max_examples=20)
@given(st.integers(150, 900), st.integers(0, 10**6))
def test_nothing_that_names_a_patient_is_proposed(rows, seed):
    table = patients(rows, seed)
    proposal = Schema.infer(table)
    assert set(proposal.schema.names) <= {"age", "ward", "smokes"}
    assert {"age", "ward"} <= set(proposal.schema.names)
    text = proposal.to_toml()
    assert not [word for word in (*FIRST, *LAST, "example.org", "+44") if word in text]
    left_out = [name for name in table if f"{name}: left out" in "\n".join(proposal.notes)]
    assert set(left_out) >= set(table) - {"age", "ward", "smokes"}


CELLS = st.one_of(
    st.lists(st.sampled_from(["x", "y", "z", "<5", "5-9", "10+", "", "low", "high", "7"])),
    st.lists(st.integers(-3, 12)),
    st.lists(st.text(max_size=2)),
    st.lists(st.sampled_from([1, 2, 9, 77, 1000])),
)


@settings(deadline=None, max_examples=200)
@given(CELLS, st.integers(1, 12), st.sampled_from(["x", "race", "code"]))
def test_no_value_is_listed_that_few_rows_have(cells, repeats, name):
    frame = pd.DataFrame({name: [*cells * repeats, *cells[:3]]})
    frame["flag"] = np.arange(len(frame)) % 2
    try:
        attribute = next(a for a in Schema.infer(frame).schema.attributes if a.name == name)
    except (InputError, StopIteration):
        return
    if not isinstance(attribute.domain, Listed):
        return
    counts = frame[name].astype(str).value_counts()
    listed = {str(value) for value in attribute.domain.values}
    if listed not in ({"0", "1"}, {"0"}, {"1"}):
        assert all(counts[value] >= LEAST_ROWS for value in listed)


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["10+", "<5", "5-9"], ("<5", "5-9", "10+")),
        (["30", "0", "1-2", "10-19", "3-9", "20-29"], ("0", "1-2", "3-9", "10-19", "20-29", "30")),
        (["high", "Low", "medium"], ("Low", "medium", "high")),
        (["65 and over", "under 18", "18 to 64"], ("under 18", "18 to 64", "65 and over")),
    ],
)
def test_ordered_answers_are_ordered(values, order):
    (attribute,) = Schema.infer(pd.DataFrame({"x": values * 20})).schema.attributes
    assert (attribute.kind, attribute.domain.values) == ("ordinal", order)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", [1, 2, 9], "categorical"),
        ("race", [1, 2, 3], "categorical"),
        ("INDUSTRY_CODE", list(range(1, 21)), "categorical"),
        ("children", [0, 1, 2, 3], "integer"),
        ("score", [0, 10, 20, 30], "integer"),
        ("rooms", [1, 2, 3, 4, 5, 6], "integer"),
        ("siblings", [0, 1, 2, 3, 4, 5, 8], "integer"),
    ],
)
def test_codes_of_a_category_are_not_numbers(name, values, kind):
    (attribute,) = Schema.infer(pd.DataFrame({name: values * 20})).schema.attributes
    assert attribute.kind == kind


def test_a_gap_that_rare_counts_leave_makes_no_codes():
    frame = pd.DataFrame({"children": [0, 1, 2, 3] * 30 + [7]})
    assert Schema.infer(frame).schema.attributes[0].kind == "integer"


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
    assert "heaps = [40]" in notes
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
