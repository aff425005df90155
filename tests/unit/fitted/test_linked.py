"""A study of people and their events, from two tables an owner to a release that is verified."""

import json
import shutil

import pandas as pd
import pytest

import parley
from common.errors import InputError
from common.fitted.linked import LinkedFit
from common.release.archive import finish
from common.release.verify import verify
from tests.harness.linked import SCHEMA, frames, shared_out

PEOPLE, EVENTS = frames(900)
OWNERS = shared_out(PEOPLE, EVENTS, 4)


def simulated(**changes):
    terms = {"epsilon": 60, "aggregation": "masked", "seed": 1, **changes}
    with pytest.warns(parley.PrivacyWarning):
        return parley.simulate(OWNERS, SCHEMA, person="id", **terms)


@pytest.fixture(scope="module")
def study():
    return simulated()


@pytest.fixture(scope="module")
def release(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked") / "release"
    study.save(folder)
    return folder


def test_two_tables_are_drawn_that_a_number_joins(study):
    people, events = study.sample(400)
    assert people.columns.tolist() == ["person", "sex", "age"]
    assert events.columns.tolist() == ["person", "diagnosis", "ward"]
    assert people.person.tolist() == list(range(1, 401))
    assert set(events.person) <= set(people.person)
    assert events.person.is_monotonic_increasing
    assert events.groupby("person").size().max() <= 4
    assert 0 < (~people.person.isin(events.person)).sum() < 400


def test_a_condition_on_people_holds_and_shapes_their_events(study):
    people, events = study.sample(600, where="age < 30")
    assert people.age.max() < 30
    others = study.sample(600, where="age >= 60")[1]
    assert (events.diagnosis == "a").mean() > (others.diagnosis == "a").mean() + 0.2


@pytest.mark.parametrize(
    ("where", "words"), [("diagnosis = a", "about events"), ("weight = 3", "weight")]
)
def test_a_condition_on_events_is_refused_by_name(study, where, words):
    with pytest.raises(InputError, match=words):
        study.sample(10, where=where)


def test_a_release_is_saved_verified_and_loaded(study, release):
    files = {file.name for file in release.iterdir()}
    assert {"synthetic.csv", "synthetic-visits.csv"} <= files
    found = verify(release, unsigned=True)
    assert (found.verified, found.problems, found.not_checked) == (True, (), ())
    again = parley.load(release)
    assert isinstance(again, LinkedFit)
    assert again.model.as_json() == study.model.as_json()
    events = pd.read_csv(release / "synthetic-visits.csv")
    assert again.released.events.rows == len(events)
    people, _ = again.sample(50)
    assert len(people) == 50


def test_the_statement_is_about_a_person_with_all_of_her_events(release):
    stated = json.loads((release / "privacy.json").read_text())
    assert stated["unit_of_privacy"] == "one person of one party's table, with all of her visits"
    assert "the number of visits is not" in stated["neighbours"]
    assert stated["epsilon_delivered"] == 60


def changed(release, tmp_path, change):
    """Verify a copy of a release in which its maker changed something."""
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    change(copy)
    (copy / "manifest.json").unlink()
    fitted = parley.load(release)
    finish(
        copy,
        study=fitted.study.digest,
        date="2026-01-01",
        signer=None,
        method=fitted.made_with,
    )
    return verify(copy, unsigned=True)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("synthetic-visits.csv", lambda text: text + "901,a,x\n"),
        ("synthetic-visits.csv", lambda text: text + "1,a,x\n"),
        ("synthetic-visits.csv", lambda text: text + "900,a,x\n" * 5),
        ("synthetic-visits.csv", lambda text: text.replace(",a,", ",q,", 1)),
        ("synthetic-visits.csv", lambda text: text.replace("person", "who", 1)),
        ("synthetic.csv", lambda text: text.replace("\n1,", "\n2,", 1)),
        ("model.json", lambda text: text.replace('"returns": [', '"returns": [0.5, ', 1)),
    ],
)
def test_tables_that_do_not_belong_together_are_not_verified(release, tmp_path, name, change):
    def rewrite(copy):
        (copy / name).write_text(change((copy / name).read_text()))

    found = changed(release, tmp_path, rewrite)
    assert not found.verified
    assert [each.file for each in found.problems] == [name]


def test_a_release_without_its_events_is_not_verified(release, tmp_path):
    def rename(copy):
        (copy / "synthetic-visits.csv").rename(copy / "synthetic-stays.csv")

    found = changed(release, tmp_path, rename)
    assert not found.verified
    assert "synthetic-" in found.problems[0].file


@pytest.mark.parametrize("aggregation", ["paillier", "clear"])
def test_however_sums_are_added_up_the_study_is_the_same(aggregation):
    study = simulated(aggregation=aggregation, key_bits=2048, delta="1e-9")
    people, events = study.sample(30)
    assert len(people) == 30
    assert study.privacy["epsilon_delivered"] <= 60
    assert set(events.diagnosis) <= set("abcd")


def test_a_study_goes_on_without_an_owner():
    study = simulated(may_miss=1, drop={"party 2": 1})
    assert study.privacy["missing"] == {"party 2": 1}
    assert len(study.sample(10)[0]) == 10


@pytest.mark.parametrize(
    ("tables", "person", "words"),
    [
        (OWNERS, "", "person="),
        ([PEOPLE], "id", "two tables"),
        ([(PEOPLE, "visits.csv")], "id", "two tables"),
        (OWNERS, "patient", "no column 'patient'"),
    ],
)
def test_what_is_not_two_tables_is_refused_by_name(tables, person, words):
    with pytest.raises(InputError, match=words):
        parley.simulate(tables, SCHEMA, epsilon=1, person=person)


def test_a_column_that_joins_is_refused_for_a_single_table():
    with pytest.raises(InputError, match="person"):
        parley.simulate([PEOPLE], SCHEMA.people, epsilon=1, person="id")


def test_intervals_and_streams_are_refused_by_name(study, tmp_path):
    from common.fitted.drawing import write_stream

    with pytest.raises(InputError, match="intervals are not there"):
        study.estimate(lambda table: table["age"].mean())
    with pytest.raises(InputError, match="single table"):
        write_stream(tmp_path / "rows.csv", study, 10)


def test_people_are_counted(study):
    assert study.count("age < 30").value == pytest.approx(300, rel=0.3)


def test_a_notebook_is_told_of_both_tables(study):
    words = repr(study)
    assert "900 people, epsilon 60, NOT PRIVATE" in words  # it has a seed
    assert "people: sex, age" in words
    assert "events: diagnosis, ward" in words
