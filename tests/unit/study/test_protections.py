"""Who is protected from whom, for every kind of study: against a table written by hand."""

from fractions import Fraction
from itertools import product

import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError
from common.methods.registry import method_of, methods
from common.study.protections import protections_of
from tests.harness.run_script import random_tables, study_of

EPSILON = Fraction(3, 2)
TABLES = random_tables((2, 2), [9] * 5)


def told(parties=5, **changes):
    """Each adversary, and whether it is held off."""
    tables = dict(list(TABLES.items())[:parties])
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
    assert told(**changes) == expected


def test_no_study_claims_more_than_its_noise_and_its_sums_can_keep():
    """Every combination that a study may have, against rules that need no study."""
    seen = 0
    for name, profile, noise, aggregation, colluders in product(
        methods(), ("sound", "paper"), Noise, Aggregation, range(5)
    ):
        try:
            found = told(
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
    study = study_of(TABLES, method="floor", colluders=2, may_miss=1)
    found = {
        each.against: each.assumes for each in protections_of(study, method_of(study), EPSILON)
    }
    assert "up to 2 of them may tell it all they know" in found["the curator"]
    tolerated = found["up to 2 other parties together, with or without the curator"]
    assert "even if 1 others are missing" in tolerated
    two = study_of(
        dict(list(TABLES.items())[:2]), method="distdiffgen", settings=(("target", "a0"),)
    )
    *_, other = protections_of(two, method_of(two), EPSILON)
    assert other.assumes.endswith('with choices = "in turn" nothing rests on that')
