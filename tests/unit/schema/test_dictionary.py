"""A schema from a data dictionary: values, ranges and rules of a public file, and never of rows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from common.errors import InputError
from common.schema import Schema
from common.schema.dictionary import read_dictionary
from common.schema.schema import is_draft
from parley.cli.main import app

PLAIN = """\
name,label,kind,values,min,max,bins,missing,asked if,otherwise
age,Age in years,integer,,0,110,,,,
job,Occupation,,none; farm; office,,,,,age >= 15,none
hours,Hours a week,integer,,0,80,8,-9; -8,job != none,
weight,,real,,2.5,300,,yes,,
born,,date,,1900-01-01,2026-12-31,,,,
smoker,,boolean,,,,,,"age in 18..99 and not job = farm",
note,Remarks,text,,,,,,,
"""
REDCAP = """\
"Variable / Field Name","Form Name","Field Type","Field Label","Choices, Calculations, OR Slider \
Labels","Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",\
"Branching Logic (Show field only if...)"
sex,base,radio,Sex,"1, female | 2, male",,,,
age,base,text,Age,,integer,0,100,
pregnant,base,yesno,Pregnant,,,,,"[sex] = '1' and [age] < 55"
stage,base,dropdown,Stage,"0, none | 1, I | 2, II",,,,"[sex] <> '2'"
who,base,text,Name,,,,,
"""


def proposed(tmp_path, text):
    (tmp_path / "dictionary.csv").write_text(text, encoding="utf-8")
    return read_dictionary(tmp_path / "dictionary.csv")


def test_columns_and_rules_of_a_dictionary(tmp_path):
    proposal = proposed(tmp_path, PLAIN)
    schema = proposal.schema
    assert schema.names == ("age", "job", "hours", "weight", "born", "smoker")
    kinds = [each.kind for each in schema.attributes]
    assert kinds == ["integer", "categorical", "integer", "real", "date", "boolean"]
    age, job, hours, weight, _, smoker = schema.attributes
    assert {15, 18, 100} <= set(age.domain.edges)
    assert job.domain.values == ("none", "farm", "office")
    assert hours.domain.count == 8
    assert hours.missing_codes == ("-9", "-8")
    assert weight.missing
    assert smoker.missing
    assert not job.missing
    assert [str(rule) for rule in schema.rules] == [
        "when not (age >= 15), then job = none",
        "when not (job != none), then hours is missing",
        "when not (age in 18..99 and not job = farm), then smoker is missing",
    ]
    assert proposal.notes == ("note: left out, the dictionary has neither values nor a range",)
    assert not is_draft(proposal.to_toml())
    assert Schema.from_toml(proposal.to_toml()) == schema


def test_a_redcap_dictionary(tmp_path):
    schema = proposed(tmp_path, REDCAP).schema
    sex, age, pregnant, stage = schema.attributes
    assert sex.domain.values == ("1", "2")
    assert stage.domain.values == ("0", "1", "2")
    assert 55 in age.domain.edges
    assert pregnant.kind == "boolean"
    assert [rule.texts[1][1] for rule in schema.rules] == [
        "pregnant is missing",
        "stage is missing",
    ]
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "sex,age,pregnant,stage\n1,30,1,2\n2,30,,\n1,60,,0\n2,31,1,\n", encoding="utf-8"
    )
    (tmp_path / "schema.toml").write_text(proposed(tmp_path, REDCAP).to_toml(), encoding="utf-8")
    done = CliRunner().invoke(app, ["schema", "check", str(tmp_path / "schema.toml"), str(rows)])
    assert "1 row broke rule 1" in done.output


def test_what_is_not_understood_is_left_out_and_told(tmp_path):
    text = "name,min,max,bins,asked if\nage,0,100,10,\nhours,0,80,,age > 15\npay,0,9,,salary = 1\n"
    proposal = proposed(tmp_path, text)
    assert not proposal.schema.rules
    cut, unknown = proposal.notes
    assert cut.startswith("hours: its rule (age > 15) is left out: ")
    assert "cuts through a bin of 'age'" in cut
    assert "there is no attribute 'salary'" in unknown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label,min\nage,0\n", "has a column `name`"),
        ("name,min,max\nage,young,old\n", "column 'age'"),
        ("name,label\nage,years\n", "no column has values or a range"),
        ("name,values\n,1;2\n", "line 2: it has no name"),
        ("name,values\na,1;2\na,1;2\n", "a"),
    ],
)
def test_errors_name_the_file_and_the_place(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        proposed(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "dictionary.csv"))


def test_the_command_reads_a_dictionary_or_a_table(tmp_path):
    (tmp_path / "d.csv").write_text(PLAIN, encoding="utf-8")
    out = tmp_path / "schema.toml"
    words = [
        "schema",
        "infer",
        "--dictionary",
        str(tmp_path / "d.csv"),
        "--out",
        str(out),
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    told = json.loads(done.stdout)
    assert told["private"] is True
    assert "NOT PRIVATE" not in done.output
    assert Schema.load(out).rules
    done = CliRunner().invoke(app, ["schema", "infer"])
    assert done.exit_code != 0
    assert "name a table, a --dictionary, or both" in str(done.exception)


def test_a_dictionary_describes_columns_of_a_table_and_brings_the_rules(tmp_path):
    (tmp_path / "d.csv").write_text(PLAIN, encoding="utf-8")
    rows = "".join(
        f"{n % 90},{'none' if n % 90 < 15 else 'farm'},{'AB'[n % 2]}\n" for n in range(200)
    )
    (tmp_path / "t.csv").write_text("age,job,ward\n" + 2 * rows, encoding="utf-8")
    out = tmp_path / "schema.toml"
    words = ["schema", "infer", tmp_path / "t.csv", "--dictionary", tmp_path / "d.csv"]
    assert CliRunner().invoke(app, [*map(str, words), "--out", str(out)]).exit_code == 0
    schema = Schema.load(out)
    assert schema.names == ("age", "job", "ward")
    assert schema.attributes[1].domain.values == ("none", "farm", "office")
    assert [str(rule) for rule in schema.rules] == ["when not (age >= 15), then job = none"]
    assert is_draft(out.read_text())


def test_a_rule_that_does_not_fit_is_there_to_paste(tmp_path):
    text = "name,min,max,bins,asked if\nage,0,100,10,\nhours,0,80,,age > 15\n"
    written = proposed(tmp_path, text).to_toml()
    assert '# [[rule]]\n# when = "not (age > 15)"\n# then = "hours is missing"' in written
    assert not Schema.from_toml(written).rules
    pasted = written.replace("# [[rule]]", "[[rule]]").replace("# when", "when")
    pasted = pasted.replace("# then", "then").replace("bins = 10", "edges = [0, 16, 60, 100]")
    pasted = pasted.replace("min = 0\nmax = 100\n", "", 1)
    assert len(Schema.from_toml(pasted).rules) == 1, pasted


@given(st.integers(-40, 40), st.integers(1, 200), st.sampled_from(["<", "<=", ">", ">=", "="]),
       st.integers(-60, 260))  # fmt: skip
def test_bins_begin_where_conditions_cut(tmp_path_factory, low, width, operator, cut):
    """A rule is proposed wherever both of its sides have values inside of the range."""
    text = f"name,min,max,asked if\nn,{low},{low + width},\nm,0,5,n {operator} {cut}\n"
    proposal = proposed(tmp_path_factory.mktemp("dictionary"), text)
    if low < cut < low + width - 1:
        assert proposal.schema.rules, proposal.notes
