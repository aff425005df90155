"""Commands and linked schemas: tables, draws, estimates; other commands refuse by name."""

import contextlib
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import parley as api
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main
from tests.harness.linked import SCHEMA, frames

RULES = """
[[rule]]
when = "age < 20"
then = "smoker = false"

[[events.rule]]
when = "sex = Male"
then = "diagnosis != Pregnancy"

[[events.rule]]
when = "emergency = true"
then = "department = Surgery"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write tables in `play`, rules, and their release."""
    folder = tmp_path_factory.mktemp("linked")
    with contextlib.chdir(folder):
        assert main(["demo", "--tables", "play", "--linked", "--rows", "60"]) == ExitCode.DONE
        schema = Path("play/schema.toml")
        schema.write_text(schema.read_text() + RULES)
        owner = (pd.read_csv("play/north-patients.csv"), pd.read_csv("play/north-visits.csv"))
        study = api.simulate([owner], "play/schema.toml", epsilon=100, person="patient")
        study.save("release")
    return folder


@pytest.fixture
def release(made, parley, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_the_demonstration_writes_patients_and_their_visits(release):
    owners = [pd.read_csv(f"play/{name}-patients.csv") for name in ("north", "east", "south")]
    visits = pd.read_csv("play/north-visits.csv")
    assert sum(map(len, owners)) == 60
    assert set(visits.patient) <= set(owners[0].patient)
    assert api.Schema.load("play/schema.toml").events.name == "visits"


def obeyed(people, visits, person):
    rows = visits.merge(people, on=person)
    assert len(rows) == len(visits)
    males = rows.diagnosis[rows.sex == "Male"]
    return males != "Pregnancy", rows.department[rows.emergency] == "Surgery"


def test_no_visit_breaks_a_rule_of_visits_or_of_their_people(parley, release):
    pairs = [("release/synthetic.csv", "release/synthetic-visits.csv")]
    for number, where in enumerate(["age >= 30", "sex = Male and any emergency = true"]):
        out = f"drawn-{number}.csv"
        words = ["--rows", "200", "--where", where, "--out", out]
        assert parley("draw", "release", *words).code == ExitCode.DONE
        pairs.append((out, out.replace(".csv", "-visits.csv")))
    for pair in pairs:
        people, visits = map(pd.read_csv, pair)
        assert not people.smoker[people.age < 20].any()
        males, emergencies = obeyed(people, visits, "person")
        assert males.all()
        assert emergencies.all()
    assert len(emergencies) >= 200


def test_what_rules_did_is_told_to_owners_and_readers(parley, release):
    people, visits = (f"play/north-{name}.csv" for name in ("patients", "visits"))
    words = ["play/schema.toml", people, "--events", visits, "--person", "patient"]
    males, emergencies = obeyed(pd.read_csv(people), pd.read_csv(visits), "patient")
    broken = [int((~males).sum()), int((~emergencies).sum())]
    assert parley("schema", "check", *words, "--json").json["events_that_break_each_rule"] == broken
    told = parley("schema", "check", *words).out
    assert "visits: rule 1: when sex = Male, then diagnosis != Pregnancy" in told
    assert f"visits: {broken[1]} events broke rule 2, counted as the nearest possible" in told
    described = parley("describe", "release").out
    for what in ("people", "visits"):
        assert f"rules about {what}: none is broken; without rules, " in described
    assert "of the model&#x27;s visits would break one" in Path("release/report.html").read_text()


def test_the_tables_need_no_folder(parley, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = parley("demo", "--rows", "60", "--tables", "--linked")
    assert outcome.code == ExitCode.DONE
    assert (tmp_path / "demo-tables" / "north-visits.csv").exists()


def test_the_demonstration_runs_no_linked_study(parley):
    outcome = parley("demo", "--linked")
    assert outcome.code == ExitCode.INPUT
    assert "--tables" in outcome.err


ONE_TABLE = """
simulate play/north-patients.csv --schema play/schema.toml --epsilon 1 --out out
synthesize play/north-patients.csv --schema play/schema.toml --epsilon 1 --out out
schema check play/schema.toml play/north-patients.csv
evaluate play/north-patients.csv release --schema play/schema.toml
verify release --unsigned --safe-for-spreadsheets copy.csv
"""


def test_commands_for_one_table_refuse_linked_schemas_by_name(parley, release):
    for words in ONE_TABLE.strip().split("\n"):
        outcome = parley(*words.split())
        assert outcome.code == ExitCode.INPUT, words
        assert "events" in outcome.err or "two tables" in outcome.err, words


def test_a_linked_release_is_verified_and_described(parley, release):
    assert parley("verify", "release", "--unsigned").code == 0
    told = parley("describe", "release")
    assert told.code == 0
    visits = len(pd.read_csv("release/synthetic-visits.csv"))
    assert f"visits: {visits} synthetic ones of 20 people; of a person, at most 8" in told.out
    assert "never counted together: two columns of a person; a column of a" in told.out
    events = parley("describe", "release", "--json").json["events"]
    assert (events["people"], events["events"], events["measured"]) == (20, visits, {})


CLOSE = ("--schema", "schema.toml", "--events", "visits.csv", "--person", "id")


@pytest.fixture
def close(parley):
    """Make the tables of 60 people, and what makes a release of them that is close to them."""
    people, visits = frames(60)
    people.to_csv("people.csv", index=False)
    visits.to_csv("visits.csv", index=False)
    Path("schema.toml").write_text(SCHEMA.to_toml())

    def make(*words):
        done = parley("synthesize", "people.csv", *CLOSE, "--epsilon", "100", *words)
        assert done.code == 0, done.err
        return visits.groupby("id").size().clip(upper=SCHEMA.events.most).sum()

    return make


def test_an_owner_compares_both_tables_with_her_own(parley, close):
    real = close("--out", "release")
    words = ("evaluate", "people.csv", "release", *CLOSE, "--html")
    told = parley(*words, "page.html")
    assert told.code == 0, told.err
    assert "60 synthetic people against 60 real people" in told.out
    synthetic = len(pd.read_csv("release/synthetic-visits.csv"))
    assert f"visits: {synthetic} synthetic against {real} real ones that count" in told.out
    assert "\nnext event: average distance 0." in told.out
    assert "NOT PRIVATE" in told.err
    page = Path("page.html").read_text()
    assert page.index("NOT FOR PUBLICATION") < page.index("People and their visits")
    refused = parley(*words, "release/page.html")
    assert refused.code == ExitCode.REFUSED  # not beside what is published
    assert "outside" in refused.err


@pytest.mark.parametrize(("form", "where"), [("csv", "release.zip"), ("parquet", "release")])
def test_every_form_of_a_linked_release_is_verified_and_evaluated(parley, close, form, where):
    close("--out", "release", "--format", form)
    assert parley("bundle", "release", "--out", "release.zip").code == 0
    assert parley("verify", where, "--unsigned").code == 0
    read = pd.read_csv if form == "csv" else pd.read_parquet
    for name, own in (("synthetic", "people"), ("synthetic-visits", "visits")):
        table = read(f"release/{name}.{form}").rename(columns={"person": "id"})
        table.assign(day=range(len(table))).to_csv(f"same-{own}.csv", index=False)
    for prefix in ("", "same-"):
        second = [f"{prefix}{word}" if word == "visits.csv" else word for word in CLOSE]
        done = parley("evaluate", f"{prefix}people.csv", where, *second, "--json")
        assert done.code == 0, done.err
        assert done.json["private"] is False
        kinds = done.json["linked"]["distances"]
        assert len(kinds) == 6
        assert (max(kind["worst"] for kind in kinds.values()) == 0) is bool(prefix)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("release --schema play/schema.toml", "--events: the schema has [events]"),
        ("release --schema play/schema.toml --events play/north-visits.csv", "--person"),
        ("release/synthetic.csv --schema play/schema.toml", "Name the release"),
        ("release --schema flat.toml --events play/north-visits.csv", "has no [events]"),
    ],
)
def test_an_evaluation_of_other_tables_than_the_schema_has_is_refused(
    parley, release, words, named
):
    flat = Path("play/schema.toml").read_text().partition("[events]")[0]
    Path("flat.toml").write_text(flat)
    outcome = parley("evaluate", "play/north-patients.csv", *words.split())
    assert outcome.code == ExitCode.INPUT
    assert named in outcome.err


TERMS = ("--schema", "play/schema.toml", "--epsilon", "1", "--out", "out")


def visits_of(folder):
    people = pd.read_csv(f"{folder}/synthetic.csv")
    visits = pd.read_csv(f"{folder}/synthetic-visits.csv")
    assert set(visits.person) <= set(people.person)
    return people


def test_owners_are_pairs_of_files(parley, release):
    pairs = [f"play/{name}-patients.csv:play/{name}-visits.csv" for name in ("north", "east")]
    outcome = parley("simulate", *pairs, *TERMS, "--person", "patient")
    assert outcome.code == 0, outcome.err
    assert len(visits_of("out")) == 40
    assert parley("verify", "out", "--unsigned").code == 0
    study = api.load("out").study
    assert [member.name for member in study.members] == ["north-patients", "east-patients"]


def test_the_people_of_one_pair_are_dealt_out_with_their_events(parley, release):
    pair = "play/north-patients.csv:play/north-visits.csv"
    outcome = parley("simulate", pair, *TERMS, "--person", "patient", "--parties", "2")
    assert outcome.code == 0, outcome.err
    assert [member.rows for member in api.load("out").study.members] == [10, 10]


def test_one_owner_names_the_second_table(parley, release):
    words = ("--events", "play/north-visits.csv", "--person", "patient")
    outcome = parley("synthesize", "play/north-patients.csv", *TERMS, *words)
    assert outcome.code == 0, outcome.err
    assert len(visits_of("out")) == 20
    words = (*words, "--method", "privbayes", "--overwrite")
    refused = parley("synthesize", "play/north-patients.csv", *TERMS, *words)
    assert "--method privbayes: it is for single tables" in refused.err


def test_two_sheets_of_a_workbook_are_two_tables(parley, release):
    with pd.ExcelWriter("book.xlsx") as book:
        pd.read_csv("play/north-patients.csv").to_excel(book, sheet_name="patients", index=False)
        pd.read_csv("play/north-visits.csv").to_excel(book, sheet_name="visits", index=False)
    words = ("--sheet", "patients", "--events-sheet", "visits", "--person", "patient")
    checked = parley(
        "schema", "check", "play/schema.toml", "book.xlsx", "--events", "book.xlsx", *words
    )
    assert checked.code == 0, checked.err
    assert "visits: of a person, at most 8 count, in the order of 'day'" in checked.out
    assert "book.xlsx: fits the schema, 20 people" in checked.out
    outcome = parley("simulate", "book.xlsx", *TERMS, *words)
    assert outcome.code == 0, outcome.err


def test_a_draft_of_two_tables_has_both_parts_and_counts_people(parley):
    people = pd.DataFrame({"id": range(40), "sex": ["F", "M"] * 20})
    visits = pd.DataFrame({"id": [*range(40), *[7] * 30], "ward": ["x"] * 40 + ["only 7"] * 30})
    visits["when"] = pd.date_range("2024-01-01", periods=70).strftime("%Y-%m-%d")
    people.to_csv("people.csv", index=False)
    visits.to_csv("ward visits.csv", index=False)
    words = ("people.csv", "--events", "ward visits.csv", "--person", "id")
    assert parley("schema", "infer", *words, "--out", "schema.toml").code == 0
    schema = api.Schema.load("schema.toml")
    assert schema.names == ("sex",)
    events = schema.events
    assert (events.name, events.most, events.order) == ("ward-visits", 8, "when")
    ward = schema.of_events.attributes[0]
    assert (ward.name, ward.domain.values, ward.other) == ("ward", ("x",), True)
    assert parley("schema", "check", "schema.toml", *words).code == 0
    refused = parley("schema", "infer", *words[:3], "--person", "nobody")
    assert "people.csv: there is no column 'nobody'" in refused.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("play/north-patients.csv:play/north-visits.csv", "--person"),
        ("play/north-patients.csv:play/nowhere.csv --person patient", "nowhere.csv: no such file"),
        ("play/north-patients.csv:play/north-visits.csv --person id", "no column 'id'"),
        ("play/north-patients.csv --person patient", "with a colon between them"),
    ],
)
def test_two_tables_that_cannot_be_meant_are_refused(parley, release, words, named):
    outcome = parley("simulate", *words.split(), *TERMS)
    assert outcome.code == ExitCode.INPUT
    assert named in outcome.err


def test_people_and_events_are_drawn_into_two_files(parley, release):
    assert "--out" in parley("draw", "release", "--rows", "5").err
    department = pd.read_csv("release/synthetic-visits.csv").department.mode()[0]
    words = f"age >= 0 and any department = {department}"
    outcome = parley("draw", "release", "--rows", "40", "--where", words, "--out", "people.csv")
    assert outcome.code == 0
    people, visits = pd.read_csv("people.csv"), pd.read_csv("people-visits.csv")
    assert len(people) == 40
    assert set(visits.person[visits.department == department]) == set(people.person)
    again = parley("draw", "release", "--rows", "40", "--out", "people.csv")
    assert again.code == ExitCode.INPUT  # neither file is written over
    parquet = parley("draw", "release", "--rows", "9", "--out", "drawn.parquet")
    assert parquet.code == 0
    assert len(pd.read_parquet("drawn-visits.parquet"))


def test_people_events_and_numbers_of_events_are_estimated(parley, release):
    def estimates(*words):
        outcome = parley("estimate", "release", *words, "--tables", "5", "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    (visits,) = estimates("--mean", "visits")
    assert visits["low"] <= visits["estimate"] <= visits["high"]
    (emergencies,) = estimates("--share", "emergency = true", "--of", "visits")
    assert 0 <= emergencies["low"] <= emergencies["high"] <= 1
    by_sex = estimates("--mean", "nights", "--by", "sex", "--of", "visits")
    assert [each["flagged"] for each in by_sex] == [True, True]  # too few people for pairs
    curves = estimates("--survival", "age", "chronic_illness", "--by", "sex",
                       "--picture", "curves.svg")  # fmt: skip
    assert {each["group"] for each in curves} == {"Female", "Male"}
    assert Path("curves.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--mean nights --of stays", "stays"),
        ("--mean nights", "--of visits"),
        ("--mean age --picture curves.svg", "--survival"),
        ("--mean age --survival age smoker", "--survival"),
        ("--survival day emergency", "order of visits"),
    ],
)
def test_estimates_that_a_release_does_not_tell_are_refused(parley, release, words, said):
    outcome = parley("estimate", "release", *words.split())
    assert outcome.code == ExitCode.INPUT
    assert said in outcome.err


SETTINGS = """
folder = "state"
keys = "keys"
policy = "policy.toml"
curator = "127.0.0.1:1"
[source]
kind = "csv"
path = "play/north-patients.csv"
person = "patient"
[source.events]
kind = "csv"
path = "play/north-visits.csv"
person = "patient"
"""


def test_an_owners_source_of_two_tables_is_checked(parley, release):
    Path("party.toml").write_text(SETTINGS)
    done = parley("schema", "check", "play/schema.toml", "--source", "party.toml")
    assert done.code == ExitCode.DONE, done.err
    assert "party.toml: fits the schema, 20 people" in done.out
    visits = len(pd.read_csv("play/north-visits.csv"))
    assert f"visits: {visits} of {visits} count; 0 are of people who are not in our" in done.out


def test_replicates_of_a_linked_release_are_pairs_of_tables(parley, release):
    done = parley("replicate", "release", "--tables", "5", "--out", "more")
    assert done.code == ExitCode.DONE, done.err
    assert "beside each, visits, joined by `person`: table-01-visits.csv" in done.out
    made = api.load("release").replicates(5)
    for number, (people, visits) in enumerate(made, start=1):
        assert people.equals(pd.read_csv(f"more/table-{number:02}.csv").astype(people.dtypes))
        assert len(visits) == len(pd.read_csv(f"more/table-{number:02}-visits.csv"))
        assert set(visits.person) <= set(people.person)
    (model, events), (apart, shuffled) = api.load("release").references()
    assert len(pd.read_csv("more/independent-visits.csv")) == len(shuffled) == len(events)
    assert sorted(apart.region) == sorted(model.region)
    assert len(pd.read_csv("more/model.csv")) == len(model)


def test_a_linked_study_is_planned_on_simulated_or_public_people(parley, release):
    assert parley("keys", "init", "party", "north", "--folder", "north").code == 0
    words = "curator study new --name s --schema play/schema.toml --epsilon 1 --method floor"
    member = "--party north:50:north/identity.pub --unsigned --aggregation clear --out study.toml"
    assert parley(*words.split(), *member.split()).code == ExitCode.DONE
    done = parley("plan", "study.toml")
    assert done.code == ExitCode.DONE, done.err
    assert "1 party, 50 people, 7 attributes; visits, 4 attributes" in done.out
    assert "A forecast on 50 simulated people" in done.out
    assert "floor next event" in done.out
    public = "--stand-in play/north-patients.csv --events play/north-visits.csv --person patient"
    told = parley("plan", "study.toml", *public.split(), "--json").json
    assert (told["rows"], told["stand_in_rows"]) == (50, 20)
    assert told["epsilons"][0]["tvd_next_event"] > 0
    alone = parley("plan", "study.toml", "--events", "play/north-visits.csv")
    assert alone.code == ExitCode.INPUT
    assert "belong to the people of --stand-in" in alone.err


@pytest.mark.parametrize(
    "words",
    ["estimate release --mean nights", "estimate release --share diagnosis=Cancer",
     "estimate release --mean age --by diagnosis", "query release diagnosis=Cancer"],
)  # fmt: skip
def test_a_question_about_events_says_how_to_ask_it(parley, release, words):
    outcome = parley(*words.split())
    assert outcome.code == ExitCode.INPUT
    assert "a row is a person here. Ask `parley estimate RELEASE --of visits`" in outcome.err


def test_a_question_about_no_column_is_refused_as_ever(parley, release):
    assert (
        "no attribute is called 'nightz'" in parley("estimate", "release", "--mean", "nightz").err
    )


def test_a_linked_release_is_no_prior(parley, release):
    words = "simulate play/north-patients.csv:play/north-visits.csv --schema play/schema.toml"
    more = "--person patient --epsilon 1 --parties 2 --prior release --out out"
    outcome = parley(*words.split(), *more.split())
    assert outcome.code == ExitCode.INPUT
    assert "it is of people and their visits, and only single tables can be built on" in outcome.err
