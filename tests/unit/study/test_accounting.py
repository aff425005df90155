"""What steps cost is charged to the parties that pay, and who is protected from whom is said."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError, PolicyError
from common.methods.registry import method_of, methods, run_of
from common.study.accounting import account, charge_of, missing_in, protections_of, statement_of
from tests.harness.run_script import chain_tables, drive, random_tables, study_of

TABLES = random_tables((2, 3, 2), [60, 50, 40, 30])


def run(**changes):
    study = study_of(TABLES, **({"method": "floor"} | changes))
    return study, drive(run_of(study), study, TABLES).steps


def stated(study, steps, **more):
    return statement_of(
        study, method_of(study), account(study, steps), **({"source_private": True} | more)
    )


def test_every_party_pays_what_the_steps_say_and_no_more_than_the_budget():
    study, steps = run(epsilon=Fraction(3, 7))
    accountant = account(study, steps)
    for name in TABLES:
        assert accountant.spent(name) == sum(step.costs[name] for step in steps) == Fraction(3, 7)
    with pytest.raises(PolicyError):
        account(study, [*steps, steps[0]])


def test_a_charge_says_how_far_a_row_moves_in_the_norm_of_its_noise():
    _, (step, *_) = run()
    charge = charge_of(step)
    assert charge.step == step.name
    assert charge.norm == step.law.norm == 1
    assert charge.scale == step.law.scale
    assert set(charge.sensitivities) == set(TABLES)
    # Three histograms, and a replaced row leaves one cell of each and enters another.
    assert set(charge.sensitivities.values()) == {6}
    assert charge.costs["p0"] == Fraction(6) / charge.scale


def test_a_choice_has_no_noise_law_and_costs_the_party_that_chooses():
    tables = chain_tables(5, [400, 400])
    study = study_of(tables, method="dp-subn", epsilon=Fraction(8))
    steps = drive(run_of(study), study, tables).steps
    chosen = next(charge_of(step) for step in steps if step.law is None)
    assert list(chosen.costs) == ["p0"]
    assert not chosen.sensitivities


def test_the_first_step_without_a_party_is_where_it_went_missing():
    study = study_of(TABLES, method="floor", may_miss=1)
    sums = [["p0", "p1", "p2", "p3"], ["p0", "p2", "p3"], ["p0", "p2", "p3"]]
    assert missing_in(study, sums) == {"p1": 1}
    assert missing_in(study, [["p1", "p2", "p3"]]) == {"p0": 0}
    assert missing_in(replace(study, may_miss=0), sums) == {}


def test_a_statement_says_which_party_went_missing_and_what_that_costs():
    study = study_of(TABLES, method="floor", may_miss=1)
    _, (step,) = run()
    without = replace(step, parties=("p0", "p1", "p3"))
    statement = stated(study, [without])
    assert statement.missing == {"p2": 0}
    allowed, gone = (note for note in statement.notes if "missing" in note)
    assert "any 2 shares make up the whole noise" in allowed
    assert "carries 2 times its variance" in allowed
    assert gone.startswith("Party p2 went missing: its 40 rows are in no sum.")


def test_a_statement_names_who_left_only_where_someone_did():
    """A statement without them has the keys of 0.2.0, so that its releases still follow."""
    study = study_of(TABLES, method="floor", may_miss=1)
    _, (step,) = run()
    nothing = stated(study, [step]).as_dict()
    assert {"left", "disputes"}.isdisjoint(nothing)
    statement = stated(study, [step], left=["p2"])
    assert statement.as_dict()["left"] == {"p2": 1}
    assert statement.as_dict()["missing"] == {}
    assert any(note.startswith("Party p2 left after sum 1, the last") for note in statement.notes)
    without = [replace(step, parties=("p0", "p1", "p3"))]
    assert stated(study, without, left=["p2"]).as_dict() == stated(study, without).as_dict()


def test_profile_sound_claims_what_it_delivers_and_paper_says_its_true_cost():
    study, steps = run()
    assert stated(study, steps).notes == [
        "Profile sound: the epsilon printed is the epsilon delivered."
    ]
    tables = chain_tables(5, [400, 400])
    paper = study_of(tables, method="dp-subn", epsilon=Fraction(8), profile="paper")
    statement = stated(paper, drive(run_of(paper), paper, tables).steps)
    first, *others = statement.notes
    assert first.startswith("Profile paper:")
    # p0 is under fresh noise in two releases: 8 + 2. p1 pays what the paper claims.
    assert [note.partition(",")[0] for note in others] == ["Party p0: the paper claims 8"]
    assert "bound is 10," in others[0]
    assert statement.delivered == 10


def test_a_prior_is_said_with_its_manifest():
    study, steps = run()
    (note,) = stated(replace(study, prior="ab" * 32), steps).notes[1:]
    assert "ab" * 32 in note
    assert "rows that are in both have paid both" in note


@pytest.mark.parametrize(
    ("more", "private"),
    [({}, True), ({"source_private": False}, False), ({"rows_agreed": False}, False)],
)
def test_a_run_is_private_only_if_its_source_and_its_row_counts_are(more, private):
    assert stated(*run(), **more).private == private


EPSILON = Fraction(3, 2)
FIVE = random_tables((2, 2), [9] * 5)


def held_off(parties=5, **changes):
    """Each adversary, and whether it is held off."""
    tables = dict(list(FIVE.items())[:parties])
    study = study_of(tables, method=changes.pop("method", "floor"), **changes)
    found = protections_of(study, method_of(study), EPSILON)
    assert {each.epsilon for each in found} <= {None, EPSILON}
    return {each.against: each.epsilon is not None for each in found}


PUBLIC = {"the public": True}
CURATOR = {"the curator": True}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"parties": 1}, PUBLIC | CURATOR),
        (
            {"parties": 2},
            PUBLIC | CURATOR | {"another party, with or without the curator": True},
        ),
        (
            {"colluders": 0},
            PUBLIC | CURATOR | {"another party": False},
        ),
        (
            {"colluders": 2},
            PUBLIC
            | CURATOR
            | {
                "up to 2 other parties together, with or without the curator": True,
                "3 or more other parties together": False,
            },
        ),
        (
            {"aggregation": Aggregation.CLEAR},
            PUBLIC
            | {
                "the curator": False,
                "another party, without the curator": True,
                "2 or more other parties together": False,
            },
        ),
        (
            {"method": "independent"},
            PUBLIC | CURATOR | {"all other parties together, and the curator": True},
        ),
        (
            {
                "method": "dp-subn",
                "profile": "paper",
                "aggregation": Aggregation.PAILLIER,
                "noise": Noise.ONE_SHARE,
            },
            PUBLIC | CURATOR | {"another party": False},
        ),
        (
            {"method": "dp-subn", "profile": "paper", "aggregation": Aggregation.PAILLIER},
            PUBLIC
            | CURATOR
            | {"another party": False, "the curator and another party together": False},
        ),
        (
            {"profile": "paper", "aggregation": Aggregation.PAILLIER},
            PUBLIC
            | CURATOR
            | {
                "another party, without the curator": True,
                "2 or more other parties together": False,
                "the curator and another party together": False,
            },
        ),
    ],
)
def test_every_adversary_is_named_and_the_right_ones_are_held_off(changes, expected):
    assert held_off(**changes) == expected


def test_no_study_claims_more_than_its_noise_and_its_sums_can_keep():
    """Every combination that a study may have, against rules that need no study."""
    seen = 0
    for name, profile, noise, aggregation, colluders in product(
        methods(), ("sound", "paper"), Noise, Aggregation, range(5)
    ):
        try:
            found = held_off(
                method=name,
                profile=profile,
                noise=noise,
                aggregation=aggregation,
                colluders=colluders,
            )
        except InputError:
            continue
        seen += 1
        sums = methods()[name].sums
        clear, one_share = aggregation is Aggregation.CLEAR, noise is Noise.ONE_SHARE
        assert found["the public"]
        assert found["the curator"] == (not clear or not sums)
        with_curator = [who for who in found if "with or without the curator" in who and found[who]]
        assert not with_curator or (profile == "sound" and not clear and not one_share)
        if sums and (one_share or colluders == 0):
            assert not any(own for who, own in found.items() if "part" in who)
        assert "4 or more other parties together" not in found or colluders == 3
    assert seen > 50


def test_what_protection_rests_on_is_said():
    study = study_of(FIVE, method="floor", colluders=2, may_miss=1)
    found = {
        each.against: each.assumes for each in protections_of(study, method_of(study), EPSILON)
    }
    assert "up to 2 of them may tell it all they know" in found["the curator"]
    tolerated = found["up to 2 other parties together, with or without the curator"]
    assert "even if another one is missing" in tolerated
    two = study_of(dict(list(FIVE.items())[:2]), method="distdiffgen", settings=(("target", "a0"),))
    *_, other = protections_of(two, method_of(two), EPSILON)
    assert other.assumes.endswith('with choices = "in turn" nothing rests on that')
