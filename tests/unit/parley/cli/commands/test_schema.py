"""`parley schema infer` proposes and warns; `parley schema check` names what is wrong."""

import json

import pytest

from common.schema import Schema


def test_infer_prints_a_schema_and_warns_on_standard_error(parley, small):
    folder = small()
    done = parley("schema", "infer", folder / "data.csv")
    assert done.code == 0
    assert Schema.from_toml(done.out).names == ("age", "sex")
    assert "NOT PRIVATE YET" in done.err
    assert "READ OFF THE DATA" in done.err


def test_infer_writes_the_file_it_was_given_and_nothing_else(parley, small):
    folder = small()
    done = parley("schema", "infer", "data.csv", "--out", "mine.toml")
    assert done.code == 0
    assert done.out == ""
    assert "NOT PRIVATE YET" in (folder / "mine.toml").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["data.csv", "mine.toml", "schema.toml"]


def test_infer_replaces_a_file_only_when_asked(parley, small):
    folder = small(schema="# mine\n")
    done = parley("schema", "infer", "data.csv", "--out", "schema.toml")
    assert done.code == 3
    assert "--overwrite" in done.err
    assert (folder / "schema.toml").read_text() == "# mine\n"
    assert parley("schema", "infer", "data.csv", "--out", "schema.toml", "--overwrite").code == 0


def test_infer_names_a_folder_that_is_not_there(parley, small):
    small()
    done = parley("schema", "infer", "data.csv", "--out", "no/where.toml")
    assert done.code == 3
    assert "no folder no" in done.err


def test_infer_as_json_says_it_is_not_private(parley, small):
    small()
    found = parley("schema", "infer", "data.csv", "--json").json
    assert found["private"] is False
    assert Schema.from_toml(found["schema"]).names == ("age", "sex")
    assert any("range" in note for note in found["notes"])


def test_a_proposal_fits_the_table_it_came_from(parley, study, tmp_path):
    assert parley("schema", "infer", study / "data.csv", "--out", "s.toml").code == 0
    done = parley("schema", "check", "s.toml", study / "data.csv")
    assert done.code == 0
    assert "fits the schema, 600 rows" in done.out


def test_check_lists_the_domains(parley, study):
    done = parley("schema", "check", study / "schema.toml")
    assert done.code == 0
    assert "age: integer, 20 codes, 0..99 (integer)" in done.out
    assert "+ missing" in done.out


def test_check_as_json_has_the_digest(parley, study):
    found = json.loads(parley("schema", "check", study / "schema.toml", "--json").out)
    assert found["digest"] == Schema.load(study / "schema.toml").digest()
    assert found["attributes"][1] == {
        "name": "sex", "kind": "categorical", "size": 2, "labels": ["Female", "Male"]
    }  # fmt: skip
    assert found["rows"] is None


def test_a_semicolon_need_not_be_named_and_a_wrong_delimiter_is_refused(parley, small):
    small(data="age;sex\n20;Male\n30;Female\n")
    assert parley("schema", "check", "schema.toml", "data.csv").code == 0
    assert parley("schema", "check", "schema.toml", "data.csv", "--delimiter", ";").code == 0
    wrong = parley("schema", "check", "schema.toml", "data.csv", "--delimiter", ",")
    assert wrong.code == 3
    assert "semicolon" in wrong.err


def test_a_delimiter_of_two_characters_is_refused(parley, small):
    small()
    done = parley("schema", "check", "schema.toml", "data.csv", "--delimiter", "::")
    assert done.code == 3
    assert "'::'" in done.err


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("", ["no attributes"]),
        ("[[attribute]\n", ["schema.toml"]),
        ('[[attribute]]\nname = "sex"\nkind = "categorical"\nvalues = ["F"]\n', ["sex"]),
        ('[[attribute]]\nname = "sex"\nkind = "colour"\n', ["sex", "colour"]),
        ('[[attribute]]\nname = "age"\nkind = "integer"\nmin = 9\nmax = 1\n', ["age"]),
        ('[[attribute]]\nname = "age"\nkind = "integer"\nmin=0\nmax=9\nbinz=3\n', ["age", "binz"]),
    ],
)
def test_a_bad_schema_is_named_with_its_attribute(parley, small, schema, words):
    small(schema=schema)
    done = parley("schema", "check", "schema.toml")
    assert done.code == 3
    assert all(word in done.err for word in ["schema.toml", *words])


def test_every_command_that_reads_a_workbook_takes_its_sheet(parley, study, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="parley[formats] is not installed")
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    sheet = book.create_sheet("2026")
    for line in (study / "data.csv").read_text().splitlines():
        sheet.append(line.split(","))
    book.save(tmp_path / "data.xlsx")
    named, own = ("--sheet", "2026"), ("--schema", study / "schema.toml")
    assert parley("schema", "check", study / "schema.toml", tmp_path / "data.xlsx").code == 3
    infer = parley("schema", "infer", tmp_path / "data.xlsx", *named)
    assert Schema.from_toml(infer.out).names == Schema.load(study / "schema.toml").names
    joint = parley(
        "simulate", tmp_path / "data.xlsx", "--parties", "3", *named, *own, "--epsilon", "1",
        "--method", "floor", "--aggregation", "masked", "--out", tmp_path / "joint",
    )  # fmt: skip
    assert joint.code == 0, joint.err
    assert parley("evaluate", tmp_path / "data.xlsx", tmp_path / "joint", *named, *own).code == 0
    wrong = parley("schema", "check", study / "schema.toml", study / "data.csv", *named)
    assert "it is no Excel file" in wrong.err


def test_a_public_list_names_the_values_of_a_column(parley, tmp_path):
    rows = "".join(f"{'ABC'[n % 3]},{n % 7}\n" for n in range(60))
    (tmp_path / "t.csv").write_text(f"ward,x\n{rows}Z,1\n")
    (tmp_path / "wards.txt").write_text("A\nB\nC\nD\nZ\n")
    done = parley("schema", "infer", "t.csv", "--public", "ward=wards.txt")
    assert Schema.from_toml(done.out).attributes[0].domain.values == ("A", "B", "C", "D", "Z")
    done = parley("schema", "infer", "t.csv")
    assert Schema.from_toml(done.out).attributes[0].domain.values == ("A", "B", "C")
    assert Schema.from_toml(done.out).attributes[0].other
    for wrong, words in (("ward", "expected COLUMN=FILE"), ("city=wards.txt", "no such column")):
        done = parley("schema", "infer", "t.csv", "--public", wrong)
        assert done.code == 3
        assert words in done.err


def test_an_owners_table_is_checked_with_the_names_and_codes_of_its_settings(parley, place):
    folder = place.folder
    (folder / "own.csv").write_text("Alter,GESCHL\n20,1\n30,2\n")
    settings = (folder / "north" / "party.toml").read_text().replace("data.csv", "own.csv")
    codes = '[source.recode.sex]\n1 = "Male"\n2 = "Female"\n'
    names = '[source.columns]\nage = "Alter"\nsex = "GESCHL"\n'
    (folder / "north" / "party.toml").write_text(settings + names + codes)
    plain = parley("schema", "check", "schema.toml", "own.csv")
    assert plain.code == 3
    assert "check with --config party.toml" in plain.err
    mapped = parley("schema", "check", "schema.toml", "--config", "north/party.toml")
    assert mapped.code == 0, mapped.err
    assert "north/party.toml: fits the schema, 2 rows" in mapped.out
    both = parley("schema", "check", "schema.toml", "own.csv", "--config", "north/party.toml")
    assert "not both" in both.err
