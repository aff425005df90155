import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import RemoteProtocolError
from common.marginals import count
from common.methods.independent import in_proportion
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.accounting import account
from tests.harness.run_script import chain_tables, drive, random_tables, study_of

MIXED = (2, 3, 4, 2, 5)


def finished(tables, **changes):
    study = study_of(tables, method="independent", **changes)
    return study, drive(run_of(study), study, tables)


@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("rows", [[300], [300, 5], [60] * 10])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(2)])
def test_every_party_makes_a_model_at_the_printed_epsilon(rows, encoding, epsilon):
    tables = random_tables(MIXED, rows)
    study, driven = finished(tables, epsilon=epsilon, encoding=encoding)
    assert [step.choices for step in driven.steps] == [1] * len(rows)
    accountant = account(study, driven.steps)
    assert {accountant.spent(name) for name in tables} == {epsilon}
    synthetic = driven.model.sample(101, SeededRandomSource("rows"))
    assert synthetic.rows == 101
    assert synthetic.sizes == MIXED


def test_rows_come_from_each_model_in_proportion():
    tables = {**random_tables((2,), [900])}
    tables["p1"] = random_tables((2,), [100])["p0"]
    ones, zeros = tables["p0"].take(slice(0, 900)), tables["p1"]
    ones.columns[0][:] = 1
    zeros.columns[0][:] = 0
    _, driven = finished({"p0": ones, "p1": zeros}, epsilon=Fraction(10**6))
    (share,) = count(driven.model.sample(1000, SeededRandomSource(1)), [(0,)])
    assert share.tolist() == [100, 900]


@given(st.integers(0, 10**6), st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_parts_add_up_and_are_within_one_of_their_share(total, weights):
    parts = in_proportion(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - Fraction(total * weight, sum(weights))) < 1


def test_a_planted_chain_is_found_at_a_huge_budget():
    tables = chain_tables(5, [1500, 1500])
    _, driven = finished(tables, epsilon=Fraction(10**6))
    everything = concatenate(list(tables.values()))
    synthetic = driven.model.sample(20_000, SeededRandomSource("rows"))
    pairs = [(i, j) for i in range(5) for j in range(i)]
    for truth, drawn in zip(count(everything, pairs), count(synthetic, pairs), strict=True):
        assert np.abs(truth / everything.rows - drawn / 20_000).sum() / 2 < 0.05


def changed(document, path, value):
    *way, last = path
    part = document
    for key in way:
        part = part[key]
    part[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["private"], 1),
        (["private"], None),
        (["network"], []),
        (["network"], None),
        (["network", 0, "child"], 99),
        (["network", 0, "child"], True),
        (["network", 0, "parents"], [[1, 0]]),
        (["network", 4, "parents"], [[0, 7]]),
        (["network", 4, "parents"], [[0, 0], [1, 0], [2, 0], [3, 0]]),
        (["tables"], []),
        (["tables"], 3),
        (["tables", 0], [1]),
        (["tables", 0, 0], 1.5),
        (["tables", 0, 0], 2**63),
        (["tables", 0, 0], "1"),
    ],
)
def test_what_is_no_model_of_the_agreed_plan_is_refused(path, value):
    tables = random_tables(MIXED, [60])
    study = study_of(tables, method="independent", epsilon=Fraction(20))
    driven = drive(run_of(study), study, tables)
    choice, payload = driven.steps[0].exchange.choice, driven.results[0]
    choice.check(payload)
    document = changed(json.loads(payload), path, value)
    with pytest.raises(RemoteProtocolError):
        choice.check(json.dumps(document, separators=(",", ":")).encode())


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b"[" * 10_000, b"\xff", b"null"])
def test_what_is_no_document_is_refused(payload):
    tables = random_tables(MIXED, [60])
    plan = run_of(study_of(tables, method="independent"))
    step = plan.step()
    with pytest.raises(RemoteProtocolError):
        plan.advance(payload)
    assert plan.step() is step
