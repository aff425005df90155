"""Attacks convict a release that leaks, and no honest one."""

import json
from dataclasses import replace

import numpy as np
import pytest

import parley
from common.analysis.attacks import AttackVerdict, attack
from common.analysis.attacks_bounds import Guarantee
from common.errors import InputError
from common.schema import Schema
from common.schema.codes import concatenate
from parley.simulation.population import demo_schema_toml, make_population

ONE = Guarantee(epsilon=1.0)
ROWS = 1200


@pytest.fixture(scope="module")
def schema():
    return Schema.from_toml(demo_schema_toml())


@pytest.fixture(scope="module")
def people():
    return make_population(2 * ROWS, seed=4)


@pytest.fixture(scope="module")
def halves(schema, people):
    codes = schema.encode(people)
    return codes.take(slice(None, ROWS)), codes.take(slice(ROWS, None))


@pytest.fixture(scope="module")
def leaking(schema, halves):
    return attack(halves[0], *halves, schema, ONE)


def fresh(schema, seed):
    """Rows of the same people that follow from no row of the study."""
    return schema.encode(make_population(ROWS, seed=seed))


def test_a_copy_of_the_rows_is_convicted_by_every_attack_on_rows(leaking):
    assert leaking.verdict is AttackVerdict.BEYOND
    assert leaking.comparable
    verdicts = {each.name: each.verdict for each in (*leaking.attacks, leaking.face)}
    assert (
        verdicts.pop("singling out") is AttackVerdict.WITHIN
    )  # epsilon allows all of one row each
    assert set(verdicts.values()) == {AttackVerdict.BEYOND}
    assert leaking.epsilon_shown > 3
    assert leaking.face.members.hits == ROWS
    assert "MORE than epsilon 1 allows" in leaking.sentences()[0]


def test_a_fifth_of_the_rows_copied_is_enough(schema, halves):
    mixed = concatenate([halves[0].take(slice(0, ROWS // 5)), fresh(schema, 9)])
    found = attack(mixed, *halves, schema, ONE)
    assert found.attacks[0].name == "membership, closest synthetic row"
    assert found.attacks[0].verdict is found.face.verdict is AttackVerdict.BEYOND
    assert found.face.members.hits >= ROWS // 5


def test_the_same_copy_without_a_promise_is_no_breach_of_one(schema, halves):
    found = attack(halves[0], *halves, schema, Guarantee(epsilon=None))
    assert found.verdict is AttackVerdict.WITHIN
    assert "promises nothing" in found.sentences()[0]
    assert "no epsilon limits it" in found.summary()


@pytest.mark.parametrize("epsilon", [0.5, 8])
def test_an_honest_release_is_not_convicted(schema, people, halves, epsilon):
    fitted = parley.Subn(epsilon=epsilon).fit(people.iloc[:ROWS], schema)
    synthetic = schema.encode(fitted.sample(ROWS))
    found = attack(synthetic, *halves, schema, Guarantee(epsilon=float(epsilon)))
    assert found.verdict is not AttackVerdict.BEYOND
    assert found.epsilon_shown < epsilon


def test_attacks_on_rows_that_have_nothing_to_do_with_the_study_rarely_find_a_difference(
    schema, halves
):
    """Rows drawn afresh: all bounds hold together in 95 % of releases or more."""
    few = slice(None, ROWS // 3)
    tables = [half.take(few) for half in halves]
    verdicts = [
        attack(fresh(schema, seed).take(few), *tables, schema, ONE).verdict
        for seed in range(50, 58)
    ]
    assert AttackVerdict.BEYOND not in verdicts
    assert verdicts.count(AttackVerdict.WITHIN) <= 1


def test_held_back_rows_of_other_people_are_noticed_without_the_release(schema, halves):
    older = make_population(4 * ROWS, seed=7).query("age > 50").iloc[:ROWS]
    found = attack(fresh(schema, 9), halves[0], schema.encode(older), schema, ONE)
    assert not found.comparable
    assert "even without the release" in found.summary()
    assert found.sentences()[0].startswith("membership, the control")


def test_the_report_is_plain_values_and_repeats_itself(schema, halves, leaking):
    document = json.loads(json.dumps(leaking.as_json()))
    assert document["private"] is False
    assert document["advantage_allowed"] == pytest.approx((np.e - 1) / (np.e + 1))
    assert document["face_privacy"]["rows_of_the_study"]["hits"] == ROWS
    assert len(document["attacks"]) == 8
    assert attack(halves[0], *halves, schema, ONE) == leaking


def test_a_verdict_needs_more_than_the_point_estimate(leaking):
    """Few trials with the same rates convict nothing."""
    first = leaking.attacks[0]
    few = replace(first, members=replace(first.members, low=first.allowed - 0.001))
    assert few.verdict is AttackVerdict.WITHIN
    none = replace(first, members=replace(first.members, low=first.others.high - 0.001))
    assert none.verdict is AttackVerdict.NOTHING
    assert "can be ruled out" in none.words(ONE)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_too_few_rows_are_refused_by_name(schema, halves, which):
    tables = [halves[0], *halves]
    tables[which] = tables[which].take(slice(0, 99))
    names = ("the release", "--rows", "--held-back")
    with pytest.raises(InputError, match=f"{names[which]}: 99 rows"):
        attack(*tables, schema, ONE)
