"""Phase 3 on trial: what the releases give away about one row of the first party, measured."""

from fractions import Fraction

import numpy as np
import pytest

from common.exchanges.replacement import Replacement
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.study.accounting import account
from tests.harness.audit import audit, laplace_log_likelihood_ratio
from tests.harness.run_script import Driver, study_of

PARTIES, ROWS = 10, 20
FEW, MANY = 150, 600  # runs of the mechanism: MANY convict the paper's
EPSILON = Fraction(8)
UPDATE = EPSILON / 4  # what the paper's Theorem 5 says that phase 3 costs everybody
PAIR = (0, 1)


def tables_with(row):
    """Ten tables of zeros, the first party's with one row that differs."""
    tables = {}
    for place in range(PARTIES):
        columns = [np.zeros(ROWS, dtype=np.uint8) for _ in PAIR]
        for column, value in zip(columns, row, strict=True):
            column[0] = value if place == 0 else 0
        tables[f"p{place}"] = Codes(tuple(columns), (2, 2))
    return tables


def releases_of(driven):
    """What the curator knows after each release of phase 3: S_1, ..., S_K."""
    running = np.zeros(4, dtype=np.int64)
    seen = []
    for step, result in zip(driven.steps, driven.results, strict=True):
        if isinstance(step.exchange, Replacement):
            assert step.exchange.group.marginals == (PAIR,)
            running = running + result
            seen.append((running, step.law.scale))
        elif step.counts_all and step.phase == "structure update":
            assert step.request.sets == (PAIR,)
            running = running + result  # the curator's total, and what it is made of
            seen.append((result, step.law.scale))
    assert len(seen) == PARTIES
    return seen


def likelihood_ratios(tables, study, source, runs):
    """For each run the log-likelihood of zeros against ones, all other rows known."""
    with_zero, with_one = np.array([ROWS, 0, 0, 0]), np.array([ROWS - 1, 0, 0, 1])
    replaced = study.profile == "paper"
    ratios = np.zeros(runs)
    for run in range(runs):
        driven = Driver(study, tables, source).run(run_of(study))
        for place, (vector, scale) in enumerate(releases_of(driven)):
            if place and not replaced:
                continue  # a sum of other parties' rows says nothing about the first
            known = np.array([place * ROWS, 0, 0, 0])
            ratios[run] += laplace_log_likelihood_ratio(
                (vector - known)[None, :], with_zero, with_one, scale
            )[0]
    return ratios


def audited(profile, runs):
    zero, one = tables_with((0, 0)), tables_with((1, 1))
    study = study_of(zero, epsilon=EPSILON, profile=profile, cohorts=PARTIES)
    assert study_of(one, epsilon=EPSILON, profile=profile, cohorts=PARTIES) == study
    source = SeededRandomSource(f"audit {profile}")
    return audit(*(likelihood_ratios(rows, study, source, runs) for rows in (zero, one)))


@pytest.mark.slow
def test_the_papers_updates_leak_more_than_its_theorem_says():
    result = audited("paper", MANY)
    assert result.contradicts(UPDATE)
    # ... and not more than what the accountant charges.
    assert not result.contradicts(PARTIES * UPDATE)


@pytest.mark.parametrize("runs", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_sound_updates_do_not(runs):
    assert not audited("sound", runs).contradicts(UPDATE)


@pytest.mark.parametrize(("profile", "factor"), [("paper", PARTIES), ("sound", 1)])
def test_the_accountant_charges_what_the_audit_sees(profile, factor):
    tables = tables_with((0, 0))
    study = study_of(tables, epsilon=EPSILON, profile=profile, cohorts=PARTIES)
    driven = Driver(study, tables, SeededRandomSource(1)).run(run_of(study))
    update = [step for step in driven.steps if step.phase == "structure update"]
    accountant = account(study, update)
    assert accountant.spent("p0") == factor * UPDATE
    assert accountant.claimed("p0") == UPDATE
