from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.marginals import count
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.accounting import account
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import fitted
from tests.harness.run_script import chain_tables, drive, random_tables, study_of

MIXED = (2, 3, 4, 2, 5)


@pytest.mark.parametrize("encoding", ["own", "binary"])
@pytest.mark.parametrize("rows", [[500], [300, 5], [50] * 10])
def test_one_sum_buys_every_histogram(rows, encoding):
    tables = random_tables(MIXED, rows)
    study = study_of(tables, method="floor", encoding=encoding)
    driven = drive(run_of(study), study, tables)
    (step,) = driven.steps
    assert step.request.sets == ((0,), (1,), (2,), (3,), (4,))
    assert not step.request.in_bits
    accountant = account(study, driven.steps)
    assert {accountant.spent(name) for name in tables} == {study.epsilon}
    for table in driven.model.tables.values():
        assert table.sum() == pytest.approx(sum(rows))
        assert (table >= 0).all()


def test_columns_keep_their_histograms_and_lose_their_dependence():
    tables = chain_tables(3, [4000, 4000])
    study = study_of(tables, method="floor", epsilon=Fraction(10**6))
    model = drive(run_of(study), study, tables).model
    synthetic = model.sample(40_000, SeededRandomSource("rows"))
    truth = count(concatenate(list(tables.values())), [(0,), (1,), (2,)])
    drawn = count(synthetic, [(0,), (1,), (2,), (0, 1)])
    for want, got in zip(truth, drawn, strict=False):
        assert np.abs(want / 8000 - got / 40_000).max() < 0.02
    independent = np.outer(drawn[0], drawn[1]) / 40_000
    assert np.abs(drawn[3] - independent).max() < 0.02 * 40_000


def test_a_tiny_budget_gives_rows_all_the_same():
    tables = random_tables(MIXED, [10, 5])
    study = study_of(tables, method="floor", epsilon=Fraction(1, 10**9))
    model = drive(run_of(study), study, tables).model
    assert model.sample(20, SeededRandomSource(1)).rows == 20
    assert all(np.isfinite(table).all() for table in model.conditionals)


def test_a_setting_of_subn_plus_is_refused_by_name():
    settings = (("dependence", "expected"),)
    study = study_of(random_tables(MIXED, [10]), method="floor", settings=settings)
    with pytest.raises(InputError, match=r"\[floor\]: .* no settings, .* gives dependence\. Leave"):
        run_of(study)


def test_people_and_events_keep_their_columns_and_the_number_of_events():
    linked = linked_codes(3000)
    outcome = fitted(linked, method="floor", epsilon=Fraction(10**6))
    assert [step.name for step in outcome.steps] == [
        "margins", "number of events", "margins of events",
    ]  # fmt: skip
    people = outcome.model.people.sample(20_000, SeededRandomSource("rows"))
    drawn = outcome.model.with_events(people, SeededRandomSource("events"))
    for one, other in ((linked.with_number, drawn.with_number), (linked.events, drawn.events)):
        for column, synthetic, size in zip(one.columns, other.columns, one.sizes, strict=True):
            shares = [np.bincount(c, minlength=size) / len(c) for c in (column, synthetic)]
            assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.05
    with_ward = count(drawn.events, [(0, 1)])[0] / drawn.events.rows
    independent = np.outer(with_ward.sum(axis=1), with_ward.sum(axis=0))
    assert np.abs(with_ward - independent).max() < 0.02
