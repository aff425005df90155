"""Whole studies of subn+ audited by the exact likelihood ratio of all that they publish.

Rows and people, pure and with a delta, colluders and missing owners; and with power: seven tenths
of the noise, or shares for one owner too many, are convicted.
"""

from fractions import Fraction

import numpy as np
import pytest

from common.crypto.sums.plan import SumPlan
from common.privacy.promise import Promise
from tests.harness.audit import audit
from tests.harness.study_audit import CASES, ProductAudit, ScriptAudit, audited

SEVEN_TENTHS = Fraction(7, 10)
FEW, MANY = 12, 1_000  # runs on each of two inputs
BY_NAME = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
WITH_MISSING = [case for case in CASES if "may_miss" in case.terms]


@pytest.fixture
def too_little(monkeypatch):
    """Let every step be calibrated to seven tenths of its noise."""
    law_of = Promise.law
    monkeypatch.setattr(Promise, "law", lambda *words: law_of(*words).times(SEVEN_TENTHS))


@BY_NAME
@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_no_run_publishes_more_than_the_study_promises(case, runs):
    found = audited(ScriptAudit(case), runs=runs)
    assert found.keeps_the_claim
    assert found.has_the_noise
    assert all(("totals" in run.steps) == bool(case.binned) for run in found.runs)


@BY_NAME
def test_a_study_calibrated_to_seven_tenths_of_its_noise_is_convicted(case, too_little):
    found = audited(ScriptAudit(case), runs=FEW)
    assert not found.keeps_the_claim
    assert found.has_the_noise, "of the laws that are wrong, it has"


@BY_NAME
def test_seven_tenths_of_the_noise_drawn_is_convicted(case):
    found = audited(ScriptAudit(case, factor=SEVEN_TENTHS), runs=3 * FEW)
    assert not found.has_the_noise


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[0], *WITH_MISSING[:1]], ids=lambda case: case.name)
def test_how_often_ratios_are_seen_bears_them_out(case):
    """What the ratios claim of their own frequencies: a bound that needs no law."""
    for factor, convicted in ((Fraction(1), False), (SEVEN_TENTHS, True)):
        found = audited(ScriptAudit(case, factor=factor), runs=10 * MANY)
        ratios = [[run.ratio for run in runs] for runs in (found.first, found.second)]
        bound = audit(*map(np.array, ratios), confidence=0.999)
        assert bound.contradicts(case.terms["epsilon"]) is convicted
        assert bound.epsilon_lower_bound > 0.6 * case.terms["epsilon"]


@pytest.mark.parametrize("case", WITH_MISSING, ids=lambda case: case.name)
@pytest.mark.parametrize("runs", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_real_roles_publish_no_more_when_an_owner_goes_missing(case, runs, monkeypatch):
    found = audited(ProductAudit(case, monkeypatch), runs=runs)
    assert found.keeps_the_claim
    assert found.has_the_noise


def test_real_roles_whose_shares_are_for_one_owner_too_many_are_convicted(monkeypatch):
    makers = SumPlan.noise_makers.fget
    monkeypatch.setattr(SumPlan, "noise_makers", property(lambda plan: makers(plan) + 1))
    assert not audited(ProductAudit(WITH_MISSING[1], monkeypatch), runs=40).has_the_noise
