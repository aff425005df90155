"""What a method counts: attributes as they are or as bits, and what tables of them cost."""

from fractions import Fraction

import pytest

from common.methods.variables import Variables
from common.privacy import sensitivity
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import random_tables, study_of


def test_variables_are_attributes_or_their_bits():
    assert Variables((3, 5)).sizes == (3, 5)
    assert Variables((3, 5, 2), in_bits=True).sizes == (2,) * (2 + 3 + 1)


def test_bits_are_counted_as_the_bits_of_the_rows():
    (table,) = random_tables((3, 5), [300]).values()
    variables = Variables(table.sizes, in_bits=True)
    counted = variables.request([(0, 4)]).answer(variables.rows(RowsInMemory(table)))
    high, low = table.columns[0] >> 1, table.columns[1] & 1
    expected = [int(((high == h) & (low == b)).sum()) for h in (0, 1) for b in (0, 1)]
    assert counted.tolist() == expected


def test_tables_of_some_parties_cost_them_what_is_said_and_no_other():
    tables = random_tables((2, 3), [50, 40])
    study = study_of(tables, method="floor", epsilon=Fraction(2))
    script = Variables.of(study).sum_tables(
        [(0,), (0, 1)],
        name="tables",
        phase="counts",
        parties=("p1",),
        promise=study.promise,
        cost=Fraction(3, 4),
    )
    step = next(script)
    assert step.costs == {"p1": Fraction(3, 4)}
    assert step.sensitivity == sensitivity.histograms(2)
    assert (step.name, step.phase, step.cells) == ("tables", "counts", 2 + 6)
    exact = step.request.answer(RowsInMemory(tables["p1"]))
    with pytest.raises(StopIteration) as ended:
        script.send(exact)
    one, two = ended.value.value
    assert (one == two.sum(axis=1)).all()
    assert two.sum() == 40
