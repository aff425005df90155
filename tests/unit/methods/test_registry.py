"""Plans by name, run by the roles; what is charged, and what the statement says."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError, PolicyError
from common.methods.registry import method_of, methods, run_of, with_version
from common.privacy.randomness import SeededRandomSource
from common.study import script
from common.study.accounting import account, statement_of
from common.study.document import Study
from common.study.dry_run import costs_without_rows
from parley.simulation.in_process import run_study
from party.owner.dry_run import dry_run
from tests.harness.run_script import chain_tables, drive, identities_of, random_tables, study_of

MIXED = (2, 3, 4, 2)
# subn+ and answers keep own domains, and a method for so many parties is not for others.
LEARNT = [name for name, each in methods().items() if len(each.encodings) > 1 and not each.parties]


@pytest.mark.parametrize("profile", ["sound", "paper"])
@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("method", LEARNT)
@pytest.mark.parametrize(
    ("rows", "aggregation"),
    [
        ([300], Aggregation.CLEAR),
        ([150, 5], Aggregation.MASKED),
        ([100] * 3, Aggregation.CLEAR),
        ([40] * 6, Aggregation.MASKED),
    ],
)
def test_roles_run_every_method_and_charge_what_the_accountant_says(
    rows, aggregation, method, encoding, profile
):
    tables = random_tables(MIXED, rows)
    study = study_of(
        tables,
        method=method,
        encoding=encoding,
        profile=profile,
        aggregation=aggregation,
        epsilon=Fraction(8),
        colluders=0,
    )
    run = run_study(study, run_of, tables, identities_of(tables), source=SeededRandomSource(method))
    assert run.model.sample(30, SeededRandomSource("rows")).sizes == MIXED
    check_one_number(study, run)


def check_one_number(study, run):
    """Expect the number in ledger, statement, review and forecast to be one and the same."""
    statement = statement_of(
        study, method_of(study), account(study, run.steps), source_private=True
    ).as_dict()
    expected = costs_without_rows(study, run_of(study))
    for name in study.parties:
        charged = sum((charge.epsilon + charge.rho for charge in run.charges[name]), Fraction(0))
        reviewed = sum(step.cost for step in dry_run(study, name, begin=run_of))
        assert statement["exact"]["parties_paid"][name] == str(charged)
        assert reviewed == expected[name]
        if study.delta:  # the variance of the noise is rounded up, by which tables there are
            assert float(charged) == pytest.approx(float(reviewed), rel=1e-12)
        else:
            assert charged == reviewed


# Terms under which a method's steps, and what they cost, could depend on what was published.
@pytest.mark.parametrize(
    ("method", "terms"),
    [
        *((name, {}) for name in methods()),
        *((name, {"delta": Fraction(1, 10**6)}) for name, m in methods().items() if m.only_sums),
        *((name, {"may_miss": 1}) for name, m in methods().items() if not m.single_turns),
        ("dp-subn", {"cohorts": 3}),
        ("dp-subn", {"profile": "paper"}),
    ],
)
def test_what_a_method_costs_depends_on_nothing_published(method, terms):
    parties = methods()[method].parties or 4
    if method == "distdiffgen":
        terms = terms | {"settings": (("divisions", 2), ("target", "a0"))}
    for seed in range(2):
        tables = random_tables(MIXED, [100 + seed] * parties, seed=seed)
        study = study_of(tables, method=method, epsilon=Fraction(3), colluders=0, **terms)
        source = SeededRandomSource(seed)
        check_one_number(
            study, run_study(study, run_of, tables, identities_of(tables), source=source)
        )


@pytest.mark.parametrize("method", LEARNT)
def test_ten_parties(method):
    tables = random_tables(MIXED, [40] * 10)
    study = study_of(tables, method=method, epsilon=Fraction(8), cohorts=5, colluders=3)
    run = run_study(study, run_of, tables, identities_of(tables), source=SeededRandomSource(method))
    assert run.model.sample(30, SeededRandomSource("rows")).rows == 30


def test_a_method_that_cannot_take_attributes_apart_says_so():
    study = study_of(random_tables(MIXED, [10]), method="subn+", encoding="binary")
    with pytest.raises(InputError, match=r"encoding.*subn\+"):
        run_of(study)


def test_a_study_that_costs_more_than_it_says_is_refused_in_the_sound_profile():
    tables = random_tables(MIXED, [100, 100])
    study = study_of(tables, method="floor")
    driven = drive(run_of(study), study, tables)
    with pytest.raises(PolicyError):
        account(study, driven.steps * 2)


def stated(rows=(200, 200, 200), *, source_private=True, **changes):
    tables = random_tables(MIXED, rows)
    study = study_of(tables, epsilon=Fraction(8), **changes)
    driven = drive(run_of(study), study, tables)
    accountant = account(study, driven.steps)
    return statement_of(study, method_of(study), accountant, source_private=source_private)


def epsilons(statement):
    return {p.against: p.epsilon for p in statement.protections}


def test_the_sound_statement_names_public_curator_and_colluders():
    statement = stated(colluders=2)
    assert statement.private
    assert epsilons(statement) == {
        "the public": 8,
        "the curator": 8,
        "up to 2 other parties together, with or without the curator": 8,
    }
    assert statement.as_dict()["epsilon_delivered"] == statement.as_dict()["epsilon_requested"]


def test_a_single_party_has_nobody_else_to_fear():
    assert list(epsilons(stated(rows=(300,)))) == ["the public", "the curator"]


def test_without_tolerated_colluders_another_party_is_not_held_off():
    assert epsilons(stated(colluders=0))["another party"] is None


def test_the_papers_statement_prints_claim_and_truth():
    statement = stated(profile="paper")
    document = statement.as_dict()
    assert document["epsilon_delivered"] > document["epsilon_requested"]
    assert document["epsilon_claimed_by_paper"] == document["epsilon_requested"] == 8
    assert epsilons(statement)["another party"] is None
    assert any("p0" in note and "claims 8" in note for note in statement.notes)


def test_one_share_of_noise_can_be_subtracted():
    statement = stated(
        profile="paper", noise=Noise.ONE_SHARE, aggregation=Aggregation.PAILLIER, method="floor"
    )
    (party,) = [p for p in statement.protections if p.against == "another party"]
    assert party.epsilon is None
    assert "probability 1/3" in party.assumes


def test_the_papers_ring_does_not_withstand_a_party_that_helps_the_curator():
    statement = stated(profile="paper", method="floor", aggregation=Aggregation.PAILLIER)
    assert epsilons(statement)["another party, without the curator"] == 8
    assert epsilons(statement)["the curator and another party together"] is None
    (curator,) = [p for p in statement.protections if p.against == "the curator"]
    assert curator.assumes == "no party tells it anything"


def test_seeds_and_sums_in_the_clear_are_not_private():
    statement = stated(source_private=False, aggregation=Aggregation.CLEAR)
    assert not statement.private
    assert len(statement.not_private_because) == 2
    assert epsilons(statement) == {
        "the public": 8,
        "the curator": None,
        "another party, without the curator": 8,
        "2 or more other parties together": None,
    }


def test_models_made_alone_are_private_however_sums_are_made():
    statement = stated(method="independent", aggregation=Aggregation.CLEAR)
    assert statement.private
    assert epsilons(statement)["all other parties together, and the curator"] == 8


def test_an_unknown_method_is_refused_by_name():
    study = study_of(random_tables(MIXED, [10]), method="magic")
    with pytest.raises(InputError, match=r"method: 'magic' is not one of subn\+, dp-subn"):
        run_of(study)


def test_a_study_of_another_version_of_its_method_is_refused_by_name():
    study = with_version(study_of(random_tables(MIXED, [100] * 3), method="subn+"))
    assert study.method_version == method_of(study).version
    assert run_of(study).step() is not None
    assert Study.from_toml(study.to_toml()).digest == study.digest
    with pytest.raises(InputError, match=r"method_version: .*version 99 of subn\+"):
        run_of(replace(study, method_version=99))
    unstated = replace(study, method_version=0)  # as parley 0.2 wrote it
    assert "method_version" not in unstated.to_toml()
    assert run_of(unstated).step() is not None


def test_every_method_says_what_it_is():
    assert list(methods()) == ["subn+", "dp-subn", "dp-ccbn", "independent", "floor", "distdiffgen",
                               "answers"]  # fmt: skip
    assert all(method.summary and method.name == name for name, method in methods().items())


@pytest.mark.parametrize("method", [m.name for m in methods().values() if not m.only_sums])
def test_a_method_that_also_chooses_refuses_a_delta_by_name(method):
    study = study_of(chain_tables(3, [200, 200]), method=method, delta=Fraction(1, 10**6))
    with pytest.raises(InputError, match=f"delta: {method} also chooses.*subn\\+, dp-ccbn, floor"):
        run_of(study)


@pytest.mark.parametrize("method", [m.name for m in methods().values() if m.only_sums])
def test_a_method_that_only_asks_for_sums_spends_what_a_delta_buys(method):
    study = study_of(chain_tables(3, [200, 200]), method=method, delta=Fraction(1, 10**6))
    steps = script.drive(run_of(study), lambda step: np.zeros(step.cells, np.int64)).steps
    assert {(step.law.name, step.law.norm) for step in steps} == {("Skellam", 2)}
    spent, budget = sum(step.costs[study.members[0].name] for step in steps), study.promise.budget
    assert budget * (1 - Fraction(1, 10**9)) <= spent <= budget
