"""A study of people and their events, from two tables an owner to a release that is verified."""

import json
import shutil
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest

import parley
from common.errors import InputError
from common.fitted.linked import LinkedFit, having, split_any
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.linked.model import LinkedModel, Walk
from common.privacy.randomness import SeededRandomSource
from common.release.archive import finish
from common.release.verify import verify
from common.schema import Schema
from common.schema.conditions import parse
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
    ("where", "words"), [("diagnosis = a", "Write any diagnosis = a"), ("weight = 3", "weight")]
)
def test_a_condition_that_is_not_on_people_is_refused_by_name(study, where, words):
    with pytest.raises(InputError, match=words):
        study.sample(10, where=where)


def test_people_are_drawn_who_have_events_of_some_kinds(study):
    people, events = study.sample(300, where="sex = F and any diagnosis = d and any ward in (x, y)")
    assert set(people.sex) == {"F"}
    assert len(people) == 300
    for mask in (events.diagnosis == "d", events.ward.isin(["x", "y"])):
        assert set(events.person[mask]) == set(people.person)
    assert len(study.sample(0, where="any diagnosis = d")[0]) == 0


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("", [""]),
        ("age < 30", ["age < 30"]),
        ("any ward = x", ["", "ward = x"]),
        ("age < 30 and any ward = x", ["age < 30", "ward = x"]),
        ("a = 1 AND any b = 2 and c = 3 and any d = 4", ["a = 1", "b = 2 and c = 3", "d = 4"]),
        ("any = 3", ["any = 3"]),
        ("name = 'x and any y'", ["name = 'x and any y'"]),
        ("(any ward = x)", ["(any ward = x)"]),
    ],
)
def test_conditions_on_people_and_on_events_are_told_apart(where, parts):
    assert split_any(where) == parts


def tiny_model():
    """A model of one binary column of people and one of events, at most two events."""
    rng = np.random.default_rng(5)
    rows = lambda *shape: rng.dirichlet(np.ones(shape[-1]), shape[:-1])  # noqa: E731
    walk = Walk(rows(2, 2), rows(2, 2), rows(2, 2), rng.random(2))
    return LinkedModel(LatentModel(rows(2), (rows(2, 2),)), rows(2, 3), walk, (rows(2, 2),))


def enumerated(model):
    """The probability of every person with every history, by all paths through the model."""
    odds = {}
    walk, (events,) = model.walk, model.columns
    for z, x, number in product(range(2), range(2), range(3)):
        person = model.people.weights[z] * model.people.columns[0][z, x] * model.numbers[z, number]
        for path in product(range(2), repeat=number):
            chance = person
            for place, w in enumerate(path):
                if place == 0:
                    chance = chance * walk.first[z, w]
                    continue
                before = path[place - 1]
                back = walk.returns[before]
                chance = chance * (back * walk.back[z, w] + (1 - back) * walk.step[before, w])
            for codes in product(range(2), repeat=number):
                each = chance * np.prod([events[w, c] for w, c in zip(path, codes, strict=True)])
                odds[x, codes] = odds.get((x, codes), 0.0) + each
    return odds


def test_people_with_an_event_have_the_models_distribution_given_it():
    model = tiny_model()
    odds = enumerated(model)
    assert sum(odds.values()) == pytest.approx(1)
    kinds = Schema.from_document({"attribute": [{"name": "e", "kind": "boolean"}]})
    draw = having(model.sample, [parse("e = true", kinds)])
    people = draw(20_000, SeededRandomSource("given"))
    assert people.rows == 20_000
    given = {key: own for key, own in odds.items() if 1 in key[1]}
    total = sum(given.values())
    events = np.split(people.events.columns[0], people.starts[1:])
    seen = Counter(
        (int(x), tuple(map(int, own))) for x, own in zip(people.columns[0], events, strict=True)
    )
    assert set(seen) <= set(given)
    for key, chance in given.items():
        p = chance / total
        assert seen[key] / 20_000 == pytest.approx(p, abs=5 * (p / 20_000) ** 0.5 + 1e-3)


def test_a_kind_of_event_that_nobody_has_is_refused(monkeypatch):
    monkeypatch.setattr("common.fitted.linked._MOST_TRIED", 1 << 12)
    kinds = Schema.from_document({"attribute": [{"name": "e", "kind": "boolean"}]})
    with pytest.raises(InputError, match="less rare"):
        having(tiny_model().sample, [parse("e = true and e = false", kinds)])(
            5, SeededRandomSource("never")
        )


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


def test_streams_are_refused_by_name(study, tmp_path):
    from common.fitted.drawing import write_stream

    with pytest.raises(InputError, match="single table"):
        write_stream(tmp_path / "rows.csv", study, 10)


def test_people_are_counted(study):
    assert study.count("age < 30").value == pytest.approx(300, rel=0.3)


def test_a_notebook_is_told_of_both_tables(study):
    words = repr(study)
    assert "900 people, epsilon 60, NOT PRIVATE" in words  # it has a seed
    assert "people: sex, age" in words
    assert "events: diagnosis, ward" in words


def test_a_release_tells_how_many_pairs_of_each_kind_were_counted(study):
    told = study.events_told
    assert (told.name, told.most, told.people) == ("visits", 4, 900)
    assert list(told.measured.values()) == [3, 2 * 2, 1, 2 * 2]
    assert sum(told.measured.values()) == sum(
        len(step.request.sets) if hasattr(step.request, "sets") else 4
        for step in study.steps
        if "margins" not in step.name and step.name not in ("number of events", "totals")
    )
    assert told.not_measured == ()
    assert list(told.lines())[1].startswith("counted together: two columns of a person (3 pairs); ")
