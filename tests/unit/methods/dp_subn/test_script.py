import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

from common.bayes.postprocessing import consistent_tables
from common.crypto.sums.plan import Aggregation, Noise
from common.errors import LocalError, RemoteProtocolError
from common.exchanges.replacement import Replacement
from common.marginals import count
from common.methods.dp_subn.script import in_cohorts
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.accounting import account
from tests.harness.run_script import (
    Driver,
    chain_tables,
    drive,
    random_tables,
    study_of,
    with_settings,
)

EPSILON = Fraction(8)
MIXED = (2, 3, 4, 2, 5)
HUGE = Fraction(10**7)


def finished(tables, seed="run", **changes):
    study = study_of(tables, **changes)
    return study, drive(run_of(study), study, tables, seed=seed)


@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize(
    ("rows", "cohorts"),
    [([600], 1), ([300, 300], 2), ([200] * 3, 2), ([60] * 10, 1), ([60] * 10, 10), ([600, 5], 2)],
)
def test_the_sound_profile_costs_the_printed_epsilon(rows, cohorts, encoding):
    tables = random_tables(MIXED, rows)
    study, driven = finished(tables, epsilon=EPSILON, cohorts=cohorts, encoding=encoding)
    accountant = account(study, driven.steps)
    choosers = {step.exchange.chooser for step in driven.steps if step.choices}
    assert choosers
    for name in tables:
        # A party that had no attribute left to choose for keeps that quarter.
        expected = EPSILON if name in choosers else EPSILON * 3 / 4
        assert accountant.spent(name) == expected
        assert accountant.claimed(name) == expected


@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("parties", [1, 2, 3, 10])
def test_the_papers_profile_costs_what_its_releases_can_cover(parties, encoding):
    tables = random_tables(MIXED, [600 // parties] * parties, seed=parties)
    study, driven = finished(tables, epsilon=EPSILON, profile="paper", encoding=encoding)
    accountant = account(study, driven.steps)
    quarter = EPSILON / 4
    chooses = {step.exchange.chooser for step in driven.steps if step.choices and step.epsilon}
    turns = []
    for step in driven.steps:
        own = step.exchange
        if isinstance(own, Replacement) and own.turn not in turns:
            turns.append(own.turn)
    assert len(turns) == parties
    for place, name in enumerate(tables):
        choice = (name in chooses) * quarter
        update = sum((2 * r.marginals_covering(name) / r.law.scale for r in turns), Fraction(0))
        assert accountant.realised(name) == quarter + choice + update + quarter
        assert accountant.claimed(name) == quarter + choice + quarter + quarter
        assert quarter <= update <= (parties - place) * quarter
        assert accountant.spent(name) == quarter + choice + (parties - place) * quarter + quarter
    if parties > 1:
        assert accountant.spent("p0") > accountant.claimed("p0")


def test_on_two_attributes_the_first_party_pays_for_every_turn():
    tables = random_tables((2, 2), [50] * 10)
    study, driven = finished(tables, epsilon=EPSILON, profile="paper")
    accountant = account(study, driven.steps)
    for place, name in enumerate(tables):
        chosen = 1 if place == 9 else 0  # as printed, floor(2 / 10) leaves all to the last
        assert accountant.spent(name) == (2 + chosen + 10 - place) * EPSILON / 4


@pytest.mark.parametrize("profile", ["sound", "paper"])
@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("rows", [[2000], [1000, 1000], [700] * 3, [200] * 10, [2000, 5]])
def test_a_planted_chain_is_found_at_a_huge_budget(rows, encoding, profile):
    tables = chain_tables(6, rows, seed=len(rows))
    _, driven = finished(tables, epsilon=HUGE, encoding=encoding, profile=profile)
    everything = concatenate(list(tables.values()))
    synthetic = driven.model.sample(20_000, SeededRandomSource("rows"))
    pairs = [(i, j) for i in range(6) for j in range(i)]
    for truth, drawn in zip(count(everything, pairs), count(synthetic, pairs), strict=True):
        distance = np.abs(truth / everything.rows - drawn / synthetic.rows).sum() / 2
        assert distance < 0.05


@pytest.mark.parametrize("profile", ["sound", "paper"])
@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1, 100), Fraction(3)])
def test_any_budget_gives_rows_in_the_domains(epsilon, encoding, profile):
    tables = random_tables(MIXED, [300, 5, 100])
    _, driven = finished(tables, epsilon=epsilon, encoding=encoding, profile=profile)
    for table in driven.model.conditionals:
        assert np.isfinite(table).all()
        assert np.allclose(table.sum(axis=1), 1)
    synthetic = driven.model.sample(500, SeededRandomSource("rows"))
    assert synthetic.rows == 500
    assert synthetic.sizes == MIXED


def test_without_a_useful_parent_the_whole_budget_buys_histograms():
    tables = random_tables(MIXED, [30, 30])
    _, driven = finished(tables, epsilon=Fraction(1, 10))
    (step,) = driven.steps
    assert step.costs == {"p0": Fraction(1, 10), "p1": Fraction(1, 10)}
    assert step.request.sets == ((0,), (1,), (2,), (3,), (4,))


def test_a_single_attribute_is_a_histogram():
    tables = random_tables((7,), [100, 100])
    _, driven = finished(tables, epsilon=HUGE)
    assert len(driven.steps) == 1
    assert driven.model.sample(10, SeededRandomSource(1)).sizes == (7,)


@pytest.mark.parametrize("parties", [4, 10])
def test_more_parties_than_attributes(parties):
    tables = random_tables((2, 3, 2), [100] * parties)
    study, driven = finished(tables, epsilon=EPSILON)
    choosers = [step.exchange.chooser for step in driven.steps if step.choices]
    assert choosers == ["p0", "p1"]
    assert account(study, driven.steps).most_spent == EPSILON


@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn", "independent", "floor"])
@pytest.mark.parametrize("profile", ["sound", "paper"])
@pytest.mark.parametrize("encoding", ["own", "binary"])
def test_two_copies_that_see_the_same_results_ask_for_the_same_steps(method, profile, encoding):
    tables = random_tables(MIXED, [300, 200, 100])
    study, driven = finished(
        tables, epsilon=EPSILON, method=method, profile=profile, encoding=encoding
    )
    assert driven.fed_to(run_of(study)).as_json() == driven.model.as_json()
    assert len(set(driven.digests)) == len(driven.digests)
    names = [step.name for step in driven.steps]
    assert len(set(names)) == len(names)


def test_a_refused_choice_changes_nothing():
    tables = random_tables(MIXED, [300, 300])
    study = study_of(tables, epsilon=EPSILON)
    plan = run_of(study)
    driver = Driver(study, tables, SeededRandomSource(3))
    while not plan.step().choices:
        plan.advance(driver.answer(plan.step()))
    before = plan.step()
    with pytest.raises(RemoteProtocolError):
        plan.advance(b"[[0,[]]]")
    assert plan.step() is before
    plan.advance(driver.answer(before))
    assert plan.step() is not before


def test_results_of_another_step_are_refused():
    tables = random_tables(MIXED, [300, 300])
    plan = run_of(study_of(tables, epsilon=EPSILON))
    with pytest.raises(LocalError):
        plan.advance(b"a choice")
    with pytest.raises(LocalError):
        plan.advance(np.zeros(3, dtype=np.int64))
    with pytest.raises(LocalError):
        plan.model()


def test_steps_state_the_sensitivity_of_what_they_ask():
    tables = random_tables(MIXED, [300, 300])
    _, driven = finished(tables, epsilon=EPSILON)
    for step in driven.steps:
        if step.counts_all:
            assert step.sensitivity.l1 == 2 * len(step.request.sets)
            assert step.law.scale == step.sensitivity.l1 / (EPSILON / 4)


def test_cohorts_keep_the_order_and_differ_by_one_at_most():
    parties = [(f"p{i}", 1) for i in range(10)]
    for cohorts in range(1, 11):
        parts = in_cohorts(parties, cohorts)
        assert [party for part in parts for party in part] == parties
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        assert len(parts) == cohorts


# Of version 0.2: the beginning of a SHA-256 of steps, model and rows, by profile.
AS_BEFORE = (
    ("dp-subn", "chain", "1/50", "8b0857661d01af27", "5d1d21343e9dbf4c"),
    ("dp-subn", "chain", "4", "f8ef655b04792b98", "f041f9b6f9cfda84"),
    ("dp-subn", "mixed", "1/50", "52b0017f8d3d265f", "b3f8ee3939b1498a"),
    ("dp-subn", "mixed", "4", "3a25a4bdc9c247da", "69509402e0b5d77b"),
    ("dp-ccbn", "chain", "1/50", "5a23e4ed86551aad", "1531cc383cd7d629"),
    ("dp-ccbn", "chain", "4", "aa5b5a99c90f7e79", "3959e19333d6beae"),
    ("dp-ccbn", "mixed", "1/50", "f8bef2f1ef9cedaa", "84bfa40eb9fa6f05"),
    ("dp-ccbn", "mixed", "4", "7840fdac3661b837", "b77234eef0f6aacd"),
)


def fingerprint(tables, **changes):
    _, driven = finished(tables, seed="drive", **changes)
    digest = hashlib.sha256(b"".join(driven.digests))
    digest.update(json.dumps(driven.model.as_json(), sort_keys=True).encode())
    for column in driven.model.sample(200, SeededRandomSource("rows")).columns:
        digest.update(bytes(int(value) for value in column))
    return digest.hexdigest()[:16]


@pytest.mark.parametrize(("method", "table", "epsilon", "paper", "sound"), AS_BEFORE)
def test_studies_without_new_settings_are_what_they_were(method, table, epsilon, paper, sound):
    tables = (
        chain_tables(6, [3000, 2000, 1000])
        if table == "chain"
        else random_tables(MIXED, [1500, 1500])
    )
    terms = {"method": method, "epsilon": Fraction(epsilon)}
    printed = {"noise": Noise.ONE_SHARE, "aggregation": Aggregation.PAILLIER, "profile": "paper"}
    assert fingerprint(tables, **terms, **printed) == paper
    assert fingerprint(tables, **terms) == sound


@pytest.mark.parametrize("cohorts", [1, 3])
@pytest.mark.parametrize("method", ["dp-subn", "dp-ccbn"])
def test_consistent_tables_are_the_projection_of_the_measured_ones(method, cohorts):
    tables = chain_tables(6, [3000, 2000, 1000])
    plain = study_of(tables, method=method, cohorts=cohorts)
    consistent = with_settings(plain, consistency="on")
    if method == "dp-subn":  # dp-ccbn draws its root by the study's digest: other steps
        measured = drive(run_of(plain), plain, tables)
        expected = consistent_tables(measured.model.tables, measured.model.domain, rows=6000)
        found = measured.fed_to(run_of(consistent)).tables
        assert list(found) == list(expected)
        assert all((found[family] == expected[family]).all() for family in found)
    model = drive(run_of(consistent), consistent, tables).model
    for table in model.tables.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(6000)


@pytest.mark.parametrize("profile", ["sound", "paper"])
def test_estimates_change_no_step_and_so_no_sensitivity(profile):
    tables = chain_tables(6, [3000, 2000, 1000])
    plain = study_of(tables, profile=profile, epsilon=EPSILON)
    free = with_settings(plain, consistency="on", reuse="on")
    measured = drive(run_of(plain), plain, tables)
    together = measured.fed_to(run_of(free))
    assert together.network == measured.model.network
    for family, table in together.tables.items():
        assert (table != measured.model.tables[family]).any()


def test_sums_of_some_owners_are_not_reused():
    """In cohorts a table that is new with the last covers its rows only."""
    tables = chain_tables(6, [2000, 2000, 2000])
    study = with_settings(study_of(tables, epsilon=HUGE, cohorts=3), reuse="on")
    driven = drive(run_of(study), study, tables)
    codes = concatenate(list(tables.values()))
    sets = [tuple(view.attribute for view in family) for family in driven.model.tables]
    for table, exact in zip(driven.model.tables.values(), count(codes, sets), strict=True):
        assert table == pytest.approx(exact, abs=1)
