"""Fields of prime powers, and the lines of planes over them."""

import numpy as np
import pytest

from common.errors import LocalError
from common.methods.designs.planes import affine_lines, field, prime_power


@pytest.mark.parametrize("order", [q for q in range(2, 129) if prime_power(q)])
def test_prime_powers_give_fields(order):
    arithmetic = field(order)
    everything = np.arange(order)
    for table, start in ((arithmetic.add, 0), (arithmetic.multiply[1:, 1:], 1)):
        assert (table == table.T).all()
        assert (np.sort(table, axis=1) == everything[start:]).all()
    a, b, c = np.random.default_rng(order).integers(0, order, (3, 500))
    add, multiply = arithmetic.add, arithmetic.multiply
    assert (multiply[a, add[b, c]] == add[multiply[a, b], multiply[a, c]]).all()
    assert (multiply[a, multiply[b, c]] == multiply[multiply[a, b], c]).all()


def test_there_is_no_field_of_six_elements():
    with pytest.raises(LocalError, match="not a prime power"):
        field(6)


def test_a_matrix_with_more_rows_than_columns_is_refused():
    with pytest.raises(LocalError, match="at least as many columns"):
        affine_lines(range(7), 2)
