"""Rules about events and their people: read, written, refused, and events that break them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.linked import LinkedCodes, breaking_events, encode_linked
from common.schema.schema import Proposal
from tests.harness.linked import SCHEMA

ACROSS = '[[events.rule]]\nwhen = "sex = M"\nthen = "diagnosis != a"\n'
BACKWARD = '[[events.rule]]\nwhen = "diagnosis = d"\nthen = "age >= 30"\n'
OWN = '[[events.rule]]\nimpossible = "diagnosis = b and ward = x"\n'
EVERY = ACROSS + BACKWARD + OWN


def schema_of(rules):
    return Schema.from_toml(f"{SCHEMA.to_toml()}\n{rules}")


def allowed(sex, age, diagnosis, ward):
    """What EVERY says, in Python."""
    return (
        not (sex == 1 and diagnosis == 0)
        and not (diagnosis == 3 and age < 2)
        and not (diagnosis == 1 and ward == 0)
    )


def every_event(schema):
    """One person for each combination of people's values, with each combination of an event's."""
    people = np.array(list(product(*map(range, schema.sizes)))).T
    own = np.array(list(product(*map(range, schema.of_events.sizes)))).T
    number, each = people.shape[1], own.shape[1]
    events = Codes.from_columns(list(np.tile(own, number)), schema.of_events.sizes)
    codes = Codes.from_columns(list(people), schema.sizes)
    numbers = np.full(number, each)
    return LinkedCodes(codes.columns, codes.sizes, events, numbers, each)


def rows_of(linked):
    people = np.stack(linked.columns, axis=1)[linked.of_person].tolist()
    events = np.stack(linked.events.columns, axis=1).tolist()
    return [(*person, *event) for person, event in zip(people, events, strict=True)]


def test_rules_hold_where_their_words_do():
    schema = schema_of(EVERY)
    linked = every_event(schema)
    rules = schema.possible_events
    expected = [allowed(*row) for row in rows_of(linked)]
    assert rules.holds(linked, linked.events, linked.of_person).tolist() == expected
    kinds = rules.kinds_of(linked)
    assert len(rules.cells) == 4  # by sex, and by whether someone is 30
    for person, kind in enumerate(kinds.tolist()):
        mine = linked.take(np.array([person])).events
        by_kind = np.ones(mine.rows, dtype=bool)
        for weights in rules.weights(kind):
            by_kind &= weights.of(mine) > 0
        assert by_kind.tolist() == expected[person * mine.rows : (person + 1) * mine.rows]


@pytest.mark.parametrize("rules", [ACROSS, BACKWARD, OWN, EVERY])
def test_rules_are_written_as_they_are_read_and_are_in_the_digest(rules):
    schema = schema_of(rules)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.without_rules().digest() == SCHEMA.digest() != schema.digest()
    assert schema.forgiven().digest() == schema.digest()
    table = {"when": "sex = M", "then": "diagnosis != a"}
    document = {"attribute": [{"name": "sex", "kind": "categorical", "values": ["F", "M"]}]}
    visits = {"name": "diagnosis", "kind": "categorical", "values": ["a", "b"]}
    events = {"name": "visits", "most": 4, "attribute": [visits], "rule": [table]}
    assert len(Schema.from_document({**document, "events": events}).possible_events.rules) == 1


def test_an_event_gives_way_to_its_person_and_takes_the_nearest_possible_value():
    schema = schema_of(EVERY)
    linked = every_event(schema)
    rules = schema.possible_events
    events = rules.repaired(linked, linked.events, linked.of_person)
    assert rules.holds(linked, events, linked.of_person).all()
    after = np.stack(events.columns, axis=1).tolist()
    for row, event in zip(rows_of(linked), after, strict=True):
        if allowed(*row):
            assert row[2:] == tuple(event)
        elif row[1] >= 2 and row[2] == 1:  # only the ward has to give way
            assert (event[0], event[1] != 0) == (1, True)
    old = rows_of(linked).index((1, 0, 3, 2))
    assert after[old] == [1, 2]  # the diagnosis, though `then` is about the person


FRAMES = (
    pd.DataFrame({"id": [1, 2], "sex": ["M", "F"], "age": [10, 80]}),
    pd.DataFrame({"id": [1, 1, 2], "day": 1, "diagnosis": ["a", "d", "b"], "ward": "x"}),
)


def test_real_events_are_counted_as_the_nearest_and_their_owner_is_told_how_many():
    schema = schema_of(EVERY)
    linked = encode_linked(schema, *FRAMES, person="id")
    assert schema.possible_events.holds(linked, linked.events, linked.of_person).all()
    plain = encode_linked(schema.without_rules(), *FRAMES, person="id")
    assert [own.tolist() for own in breaking_events(schema, plain)] == [
        [True, False, False], [False, True, False], [False, False, True],
    ]  # fmt: skip
    assert all(map(np.array_equal, linked.columns, plain.columns))


def random_rules(seed):
    """Rules about events of every form that takes columns of people, some of which contradict."""
    rng = np.random.default_rng(seed)
    of_people = ["sex = M", "sex = F", "age < 30", "age >= 60", "age in 15..44"]
    of_events = ["diagnosis = a", "diagnosis in (b, c)", "ward = x", "ward != z", "diagnosis != d"]
    text = ""
    for _ in range(rng.integers(1, 5)):
        who, (one, other) = rng.choice(of_people), rng.permutation(of_events)[:2]
        text += [
            f'[[events.rule]]\nwhen = "{who}"\nthen = "{one}"\n',
            f'[[events.rule]]\nwhen = "{one}"\nthen = "{who}"\n',
            f'[[events.rule]]\nimpossible = "{one} and {other}"\n',
            f'[[events.rule]]\nwhen = "{who} and {one}"\nthen = "{other}"\n',
        ][rng.integers(0, 4)]
    return text


def some_rules(seed):
    """A schema with random rules, or None if they leave some people no event."""
    try:
        return schema_of(random_rules(seed))
    except InputError:
        return None


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_repaired_events_are_possible_and_depend_on_their_person_alone(seed):
    schema = some_rules(seed)
    if schema is None:
        return
    linked, rules = every_event(schema), schema.possible_events
    events = rules.repaired(linked, linked.events, linked.of_person)
    assert rules.holds(linked, events, linked.of_person).all()
    some = linked.take(np.random.default_rng(seed).permutation(linked.rows)[:3])
    alone = rules.repaired(some, some.events, some.of_person)
    place = {row: at for at, row in enumerate(rows_of(linked))}
    for row, *own in zip(rows_of(some), *alone.columns, strict=True):
        assert [column[place[row]] for column in events.columns] == own


def test_a_schema_is_refused_if_and_only_if_a_person_could_have_no_event():
    attributes = SCHEMA.attributes + SCHEMA.events.attributes
    one_table = Schema(attributes).to_toml()
    linked, refused = every_event(SCHEMA), 0
    rows = Codes.from_columns(list(np.array(rows_of(linked)).T), Schema(attributes).sizes)
    for seed in range(80):
        text = random_rules(seed).replace("events.rule", "rule")
        try:
            possible = Schema.from_toml(f"{one_table}\n{text}").possible.holds(rows)
        except InputError:  # no row at all
            possible = np.zeros(rows.rows, dtype=bool)
        everyone = bool(possible.reshape(linked.rows, -1).any(axis=1).all())
        assert (some_rules(seed) is not None) == everyone
        refused += not everyone
    assert 3 < refused < 77


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('[[events.rule]]\nwhen = "sex = M"\nthen = "age < 30"', "Write it as \\[\\[rule\\]\\]"),
        ('[[rule]]\nwhen = "sex = M"\nthen = "ward = x"', "written as \\[\\[events.rule\\]\\]"),
        ('[[events.rule]]\nwhen = "sex = X"\nthen = "ward = x"', "events: rule 1: 'sex' has no"),
        ("[[events.rule]]\nwhen = 3", "events: rule 1: expected when and then"),
        (
            (
                '[[events.rule]]\nwhen = "sex = M"\nthen = "ward = x"\n'
                '[[events.rule]]\nwhen = "age < 30"\nthen = "ward = y"'
            ),
            "possible for a person with sex = M, age = 0..14",
        ),
        (
            (
                '[[events.rule]]\nimpossible = "ward = x"\n'
                '[[events.rule]]\nimpossible = "ward in (y, z)"'
            ),
            "possible for any person",
        ),
    ],
)
def test_rules_that_mean_nothing_or_leave_nothing_are_refused_by_name(rules, words):
    with pytest.raises(InputError, match=words):
        schema_of(rules)


def test_people_whom_no_rule_allows_need_no_event():
    contradiction = (
        '[[events.rule]]\nwhen = "sex = M"\nthen = "ward = x"\n'
        '[[events.rule]]\nwhen = "age < 30"\nthen = "ward = y"\n'
    )
    schema = schema_of('[[rule]]\nwhen = "sex = M"\nthen = "age >= 30"\n' + contradiction)
    assert len(schema.possible_events.cells) == 3


def test_an_order_across_the_tables_and_names_of_both_are_refused():
    text = SCHEMA.to_toml().replace('name = "ward"', 'name = "age"')
    with pytest.raises(InputError, match="the name 'age' is used 2 times"):
        Schema.from_toml(f'{text}\n[[events.rule]]\nimpossible = "diagnosis = a"')
    assert Schema.from_toml(text).possible_events.rules == ()
    later = '[[events.attribute]]\nname = "when"\nkind = "integer"\nmin = 0\nmax = 89\nbins = 6\n'
    with pytest.raises(InputError, match="an order is of two columns of an event"):
        schema_of(f'{later}[[events.rule]]\norder = "age <= when"')


def test_a_draft_of_events_keeps_the_rules_of_their_dictionary():
    people = Proposal(SCHEMA.people, ())
    rule = '[[rule]]\nimpossible = "diagnosis = b and ward = x"\n'
    events = Schema.from_toml(SCHEMA.of_events.to_toml() + rule)
    drafted = people.with_events(Proposal(events, ()), called="visits")
    assert drafted.schema.events.rules == events.rules
    same = Schema.from_toml(events.to_toml().replace("ward", "sex"))
    drafted = people.with_events(Proposal(same, ()), called="visits")
    assert drafted.schema.events.rules == ()
    assert 'visits: rules are left out: people have "sex"' in drafted.notes


def test_what_rules_tell_apart_is_limited(monkeypatch):
    monkeypatch.setattr("common.schema.event_rules.MOST_KINDS", 3)
    with pytest.raises(InputError, match="kinds of people that they tell apart: at most 3"):
        schema_of(EVERY)
    monkeypatch.setattr("common.schema.event_rules.MOST_KINDS", 4)
    monkeypatch.setattr("common.schema.event_rules.MOST_KIND_RULES", 11)
    with pytest.raises(InputError, match="kinds of people times rules: at most 11, not 12"):
        schema_of(EVERY)
    monkeypatch.setattr("common.schema.event_rules.MOST_PEOPLE_CELLS", 11)
    with pytest.raises(InputError, match="cells together: at most 11, not 12"):
        schema_of(EVERY)
