"""Direct intervals: bounds of what groups hide, rows that agree with sums, noise that counts."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import parley
from common.analysis import statistics as kinds
from common.analysis.direct import (
    DirectIntervals,
    KnownTable,
    arranged,
    possible,
    weighted,
)
from common.analysis.estimates import estimate
from common.analysis.replicates import Replicates
from common.analysis.statistics import CodedTable, Statistic
from common.privacy.noise_law import DiscreteLaplace
from common.release.measured import MeasuredTable
from common.schema import Codes

VALUES = 6
SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "x", kind = "integer", min = 0, max = 5, bins = 6 },
  { name = "y", kind = "integer", min = 0, max = 5, bins = 6 },
  { name = "letter", kind = "categorical", values = ["a", "b", "c"] },
]
"""
)
ORDER = np.arange(VALUES, dtype=np.float64)
LAW = DiscreteLaplace(Fraction(30))


def rows_of(seed, rows=400, slope=0.0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, VALUES, rows)
    y = np.where(rng.random(rows) < slope, x, rng.integers(0, VALUES, rows))
    return Codes.from_columns([x, y, rng.integers(0, 3, rows)], SCHEMA.sizes)


def pair_table(groups, pair=(0, 1)):
    of_x, of_y = (np.array(own, np.intp) for own in groups)
    return KnownTable(pair, (of_x, of_y), np.ones((of_x.max() + 1, of_y.max() + 1)))


def by_linear_program(rows, groups, weights, sign):
    """The least or greatest sum of weights over all tables with these cells and single columns."""
    x, y = (np.asarray(column, np.intp) for column in rows.columns[:2])
    of_x, of_y = (np.array(own) for own in groups)
    cells = list(product(range(VALUES), repeat=2))
    limits, totals = [], []
    for value in range(VALUES):
        limits += [[a == value for a, _ in cells], [b == value for _, b in cells]]
        totals += [np.sum(x == value), np.sum(y == value)]
    for one, other in product(set(of_x), set(of_y)):
        limits.append([of_x[a] == one and of_y[b] == other for a, b in cells])
        totals.append(np.sum((of_x[x] == one) & (of_y[y] == other)))
    costs = [-sign * weights[a, b] for a, b in cells]
    found = linprog(costs, A_eq=np.array(limits, float), b_eq=totals, bounds=(0, None))
    return -sign * found.fun


@pytest.mark.parametrize("groups", [
    ([0] * 6, [0] * 6), ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]),
    ([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]), ([0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 1]),
])  # fmt: skip
@pytest.mark.parametrize("slope", [0.0, 0.6])
def test_no_table_with_these_cells_and_columns_has_a_larger_mean_product(groups, slope):
    rows = rows_of(3, slope=slope)
    for sign in (1, -1):
        dealt = arranged(rows, pair_table(groups), (ORDER, sign * ORDER))
        x, y = (column.astype(np.int64) for column in dealt.columns[:2])
        best = by_linear_program(rows, groups, np.outer(ORDER, ORDER), sign)
        assert float(x @ y) == pytest.approx(best, rel=2e-3)
        assert sign * float(x @ y) <= sign * best + 1e-6


def test_an_arrangement_keeps_every_cell_and_every_column():
    groups = ([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1])
    rows = rows_of(4)
    dealt = arranged(rows, pair_table(groups), (ORDER, -ORDER))
    for before, after in zip(rows.columns, dealt.columns, strict=True):
        np.testing.assert_array_equal(np.sort(before), np.sort(after))

    def cells(codes):
        one, other = (np.array(g)[c] for g, c in zip(groups, codes.columns[:2], strict=True))
        return np.bincount(one * 2 + other)

    np.testing.assert_array_equal(cells(rows), cells(dealt))


@pytest.mark.parametrize("groups", [2, 3, 5, 8])
@pytest.mark.parametrize("strength", [0.0, -0.5, 0.7, 0.95])
@pytest.mark.parametrize("tail", [0.0, 1.0])
def test_what_is_allowed_for_holds_the_correlation_of_a_normal_pair(groups, strength, tail):
    """The rows agree with the groups of the pair, and are independent inside them.

    With a tail the columns are lognormal, and what is strong lies in the last group.
    """
    values = 48
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000)
    y = strength * x + math.sqrt(1 - strength**2) * rng.normal(size=x.size)
    codes = [np.argsort(np.argsort(own)) * values // x.size for own in (x, y)]
    middle = np.sort(x)[(np.arange(values) * 2 + 1) * x.size // (2 * values)]
    number = np.exp(tail * middle) if tail else middle

    def found(codes):
        return np.corrcoef(*(number[column] for column in codes.columns))[0, 1]

    real = found(Codes.from_columns(codes, (values, values)))
    of_value = np.arange(values) * groups // values
    counts = np.zeros((groups, groups))
    np.add.at(counts, tuple(of_value[own] for own in codes), 1 / x.size)
    for own in codes:
        for group in range(groups):
            inside = of_value[own] == group
            own[inside] = rng.permutation(own[inside])
    rows = Codes.from_columns(codes, (values, values))
    table = replace(pair_table((of_value, of_value)), table=counts)
    order = np.arange(values, dtype=np.float64)
    low, high = (
        found(rows)
        + table.hides_along(s) * (found(arranged(rows, table, (order, s * order))) - found(rows))
        for s in (-1, 1)
    )
    assert low - 0.03 <= real <= high + 0.03
    if strength < 0.5:
        assert table.hides_along(1.0) == table.hides  # weak relations hide no more than before


def repeated(seed=0, replicates=12, slope=0.0):
    made = tuple(rows_of(seed + 10 + number, 4_000, slope) for number in range(replicates))
    return Replicates(SCHEMA, rows_of(seed, 40_000, slope), rows_of(seed, 40_000, slope), made)


def margins():
    return [
        MeasuredTable(
            name="margins", attributes=(a,), shape=(size,), deviation=1.0, rows=400,
            grouped=(False,), law=LAW, residuals=np.zeros(size), deviations=np.ones(size),
        )
        for a, size in enumerate(SCHEMA.sizes)
    ]  # fmt: skip


def test_a_pair_that_was_never_counted_has_the_whole_range_of_its_columns():
    """The bounds of Frechet: both, at most as often as the rarer, at least what must overlap."""
    made = repeated()
    (found,) = (
        DirectIntervals(tuple(margins()), made)
        .of(kinds.share(SCHEMA, "x >= 2 and y >= 3"))
        .values()
    )
    x, y = made.reference.columns[:2]
    one, other = np.mean(x >= 2), np.mean(y >= 3)
    assert found.least == pytest.approx(max(0.0, one + other - 1), abs=0.01)
    assert found.greatest == pytest.approx(min(one, other), abs=0.01)
    (printed,) = estimate(kinds.share(SCHEMA, "x >= 2 and y >= 3"), made, measured=margins())
    assert printed.low <= found.least
    assert printed.high >= found.greatest


def test_a_column_without_an_order_has_the_range_of_each_of_its_values():
    made = repeated()
    found = DirectIntervals(tuple(margins()), made).of(kinds.mean(SCHEMA, "x", by="letter"))
    x, letter = made.reference.columns[0], made.reference.columns[2]
    for code, label in enumerate("abc"):
        rows = int(np.sum(letter == code))
        lowest, highest = np.sort(x)[:rows].mean(), np.sort(x)[-rows:].mean()
        own = found["mean of x", label]
        assert (own.least, own.greatest) == pytest.approx((lowest, highest), abs=0.05)


def table_of(rows, noise):
    """A published table of x and y, with every value, against rows without a relation."""
    drawn = np.histogram2d(*rows[0].columns[:2], bins=VALUES, range=[(0, VALUES)] * 2)[0]
    real = np.histogram2d(*rows[1].columns[:2], bins=VALUES, range=[(0, VALUES)] * 2)[0]
    residuals = (real * 4_000 / rows[1].rows + noise - drawn * 4_000 / rows[0].rows).ravel()
    return MeasuredTable(
        name="pairs", attributes=(0, 1), shape=(VALUES, VALUES),
        deviation=math.sqrt(LAW.variance()), rows=4_000, grouped=(False, False), law=LAW,
        residuals=residuals, deviations=np.ones(residuals.size),
    )  # fmt: skip


def correlation():
    def of(table):
        return {("r", None): float(np.corrcoef(table.numbers("x"), table.numbers("y"))[0, 1])}

    return Statistic(frozenset({"x", "y"}), of)


def scores(scale, studies=60):
    """Errors of direct estimates in units of their spread; the model has no relation at all."""
    made, truth = repeated(), rows_of(99, 40_000, slope=0.5)
    (value,) = correlation().of(CodedTable(SCHEMA, truth, "")).values()
    rng, found = np.random.default_rng(7), []
    for _ in range(studies):
        noise = rng.laplace(0, scale * math.sqrt(LAW.variance() / 2), (VALUES, VALUES))
        table = table_of((made.released, truth), noise)
        (own,) = DirectIntervals((table, *margins()), made).of(correlation()).values()
        found.append((own.centre - value) / own.spread)
    return np.array(found)


def test_the_spread_of_a_direct_estimate_is_that_of_the_noise():
    """Seeds are fixed. The noise of 60 studies is accepted; 1.4 or 0.7 times as much is not.

    The spread also allows for the sampling of the real rows, which is not repeated here.
    """
    squares = {scale: float(np.mean(scores(scale) ** 2)) for scale in (0.7, 1.0, 1.4)}
    assert 0.7 < squares[1.0] < 1.4
    assert squares[0.7] < 0.7
    assert squares[1.4] > 1.4


def test_an_estimate_follows_the_published_table_where_the_model_contradicts_it():
    made = repeated()
    truth = rows_of(99, 40_000, slope=0.5)
    table = table_of((made.released, truth), 0.0)
    (value,) = correlation().of(CodedTable(SCHEMA, truth, "")).values()
    (alone,) = estimate(correlation(), made)
    (both,) = estimate(correlation(), made, measured=[table, *margins()])
    assert alone.high < value - 0.2
    assert both.low > alone.high
    assert both.low <= value <= both.high
    assert both.estimate == pytest.approx(value, abs=0.1)


def test_rows_are_weighted_until_they_agree_with_every_table():
    base = rows_of(5, 5_000)
    tables = [pair_table(([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1])),
              pair_table(([0, 0, 0, 1, 1, 1], [0, 1, 1]), (0, 2))]  # fmt: skip
    targets = [np.array([[0.45, 0.05], [0.05, 0.45]]), np.array([[0.25, 0.25], [0.1, 0.4]])]
    rows = weighted(base, tables, targets)
    for own, target in zip(tables, targets, strict=True):
        a, b = own.attributes
        one, other = own.groups[0][base.columns[a]], own.groups[1][base.columns[b]]
        near = np.bincount(one * 2 + other, minlength=4).reshape(2, 2) / base.rows
        goal = possible(target, near)
        one, other = own.groups[0][rows.columns[a]], own.groups[1][rows.columns[b]]
        now = np.bincount(one * 2 + other, minlength=4).reshape(2, 2) / rows.rows
        np.testing.assert_allclose(now, goal, atol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_a_possible_table_has_no_cell_below_zero_and_the_margins_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    near = rng.dirichlet(np.ones(12)).reshape(3, 4)
    found = possible(near + rng.normal(0, 0.1, (3, 4)), near)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=0), near.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), near.sum(axis=1), atol=0.02)


@pytest.mark.parametrize("seed", range(8))
def test_estimates_and_intervals_stay_in_what_is_possible(seed):
    """Of a function, too, of which nothing is known but its columns."""
    made = repeated(seed, slope=0.3)
    rng = np.random.default_rng(seed)
    table = table_of((made.released, rows_of(seed)), rng.laplace(0, 400, (VALUES, VALUES)))
    (found,) = estimate(correlation(), made, measured=[table, *margins()])
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    (share,) = estimate(
        kinds.share(SCHEMA, "x >= 4 and y <= 1"), made, measured=[table, *margins()]
    )
    assert 0 <= share.low <= share.estimate <= share.high <= 1
