"""NOCD: few views, every pair of attributes in exactly one [Su16, VI-C and VI-D].

A view is a set of attributes. The attributes fill a matrix of l rows and n columns, n a prime or a
prime power. The n^2 lines across the rows are views; every row is then split again in this way, or
is a view itself. Two attributes in different rows lie on exactly one line, two in one row meet in
that row, so every pair is in exactly one view (Theorem 4).

Matrices reach the affine planes only. In the projective plane over GF(q) there are q^2 + q + 1
points and as many lines, and every line has q + 1 points: 13 attributes need 19 views in NOCD and
13 in a plane, which is two thirds of the noise.

What a design costs: publishing V views together has sensitivity 2V, so every cell has noise of
variance proportional to V^2, and a pair read off a view sums up all of the view's cells. The total
squared error of the pair marginals is V^2 * sum over views of (pairs in it) * (cells of it), in
units of the squared noise unit. The paper's Eq. 6 has other exponents and counts (it multiplies by
V once, and counts n*d - n*l + 2n^2 cells where 2^(l-1) * (n*d - n^2*l + 2n^2) are meant), and its
recursion cannot minimise any objective with a global V in it: the best part for the whole is not
the best part for itself. `optimal_design` keeps, per part, every (views, cost) that no other beats.

    >>> from common.methods.designs.nocd import optimal_design
    >>> optimal_design([2] * 52).error_per_pair     # 71 views
    607657.1945701358
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, count, islice
from math import comb, isqrt, prod
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.methods.designs.planes import affine_lines, is_prime, prime_power, projective_lines

View = tuple[int, ...]
Pair = tuple[int, int]  # two attributes, ascending
Orders = Literal["primes", "prime-powers"]
Counts = NDArray[np.int64]
_Tree = TypeVar("_Tree")

DEFAULT_CELL_LIMIT = 1 << 16
_ORDERS_TRIED_ON_MIXED_DOMAINS = 4
_EXACT_UP_TO_ATTRIBUTES = 64
_FRONT_LIMIT = 40  # per front beyond that: minutes become seconds, the error grows by some 2 %
_ROUNDING = 1 + 2.0**-40
# Every role of subn+ asks for up to 62 designs before the margins and as many after them, in the
# same order each time. A cache that holds fewer than all of those never hits.
_KEPT_DESIGNS = 256


def pairs_of(view: View) -> Iterator[tuple[Pair, Pair]]:
    """Yield every pair of a view's attributes, and the axes of the two in the view's table."""
    for axes in combinations(range(len(view)), 2):
        i, j = sorted(axes, key=view.__getitem__)
        yield (view[i], view[j]), (i, j)


@dataclass(frozen=True, slots=True)
class Design:
    """Views over attributes of the given domain sizes."""

    views: tuple[View, ...]
    sizes: tuple[int, ...]

    def cells(self, view: View) -> int:
        return prod(self.sizes[a] for a in view)

    @property
    def squared_error(self) -> int:
        """V^2 * sum of pairs * cells, for designs that hold each pair once."""
        return len(self.views) ** 2 * sum(comb(len(v), 2) * self.cells(v) for v in self.views)

    @property
    def error_per_pair(self) -> float:
        """The expected squared error of one pair marginal, in squared noise units."""
        return self.squared_error / max(comb(len(self.sizes), 2), 1)


@dataclass(frozen=True, slots=True)
class _Split:
    """A node of the paper's parameter tree: n columns; no columns means the block is one view."""

    columns: int = 0
    rows: tuple[_Split, ...] = ()
    pairwise: bool = False


def _ceil_sqrt(number: int) -> int:
    return isqrt(number - 1) + 1 if number > 0 else 0


def _rows(block: Sequence[int], columns: int) -> list[Sequence[int]]:
    return [block[start : start + columns] for start in range(0, len(block), columns)]


def _expand(block: Sequence[int], split: _Split) -> Iterator[View]:
    """Yield the views that a parameter tree describes."""
    if len(block) < 2:
        return
    if split.pairwise:
        yield from combinations(block, 2)
    elif not split.columns:
        yield tuple(block)
    else:
        yield from affine_lines(block, split.columns)
        for row, below in zip(_rows(block, split.columns), split.rows, strict=True):
            yield from _expand(row, below)


def printed_design(attributes: int) -> Design:
    """Return Algorithm 2 as printed, for binary attributes: the comparator, not what we use.

    Kept as printed: the cost 2^l (n*d - n*l + 2n^2) of Eq. 6, 2^d' without the variance factor 2
    for one view, and no |V| in the recursion. Repaired, because it would not run otherwise: line 12
    stores l = ceil(d'/n) instead of ceil(sqrt(d')), line 6 indexes d', n starts at ceil(sqrt(d'))
    so that n >= l.
    """
    cost: list[int] = [0]
    tree: list[_Split] = [_Split()]
    for size in range(1, attributes + 1):
        best, split = 2**size, _Split()
        for n in filter(is_prime, range(_ceil_sqrt(size), size)):
            full_rows = -(-size // n) - 1
            rest = size - full_rows * n
            crossing = 2 ** (full_rows + 1) * (n * size - n * (full_rows + 1) + 2 * n * n)
            candidate = cost[rest] + full_rows * cost[n] + crossing
            if candidate < best:
                best, split = candidate, _Split(n, (tree[n],) * full_rows + (tree[rest],))
        cost.append(best)
        tree.append(split)
    views = tuple(_expand(range(attributes), tree[attributes]))
    return Design(views, (2,) * attributes)


@dataclass(frozen=True, slots=True)
class _Front(Generic[_Tree]):
    """Ways to cover a block that no other way beats: more views and less cost from one to the next.

    `views` and `costs` (sums of pairs * cells) are int64, `trees` say which way it is.
    """

    views: Counts
    costs: Counts
    trees: list[_Tree]


def _direct_cost(sizes: Sequence[int]) -> int:
    """Return the cost of all pairs as views of their own."""
    return (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2


class _Search:
    """Pareto fronts of (number of views, cost) per block of attributes, memoised by the sizes.

    Entries that cannot be part of the best design are dropped: direct pairs have the least cost any
    design can have, so v views of cost c on a block end at v^2 * (c + direct cost outside) or more.
    """

    def __init__(self, sizes: tuple[int, ...], orders: Orders, cell_limit: int) -> None:
        self._is_order = is_prime if orders == "primes" else lambda n: prime_power(n) is not None
        self._cell_limit = cell_limit
        self._fronts: dict[tuple[int, ...], _Front[_Split]] = {}
        self._row_fronts: dict[tuple[tuple[int, ...], int], _Front[tuple[_Split, ...]]] = {}
        self._total_direct = _direct_cost(sizes)
        self._bound = self._first_bound(sizes)
        self._limit = None if len(sizes) <= _EXACT_UP_TO_ATTRIBUTES else _FRONT_LIMIT

    def _first_bound(self, sizes: tuple[int, ...]) -> int:
        """Return the least error of one matrix with undivided rows, or of direct pairs."""
        best = comb(len(sizes), 2) ** 2 * self._total_direct
        for n in self._orders(sizes):
            crossing = self._crossing(sizes, n)
            if crossing is not None:
                views, cost = crossing
                for row in filter(lambda r: len(r) > 1, _rows(sizes, n)):
                    whole = prod(row) <= self._cell_limit
                    views += 1 if whole else comb(len(row), 2)
                    cost += comb(len(row), 2) * prod(row) if whole else _direct_cost(row)
                best = min(best, views**2 * cost)
        return best

    def _orders(self, sizes: tuple[int, ...]) -> list[int]:
        orders = list(filter(self._is_order, range(_ceil_sqrt(len(sizes)), len(sizes))))
        mixed = bool(sizes) and sizes[0] != sizes[-1]
        return orders[:_ORDERS_TRIED_ON_MIXED_DOMAINS] if mixed else orders

    def front(self, sizes: tuple[int, ...]) -> _Front[_Split]:
        if len(sizes) < 2:
            return _Front(np.zeros(1, np.int64), np.zeros(1, np.int64), [_Split()])
        known = self._fronts.get(sizes)
        if known is None:
            known = self._fronts[sizes] = self._compute(sizes)
        return known

    def _compute(self, sizes: tuple[int, ...]) -> _Front[_Split]:
        pairs, direct = comb(len(sizes), 2), _direct_cost(sizes)
        views, costs, splits = [pairs], [direct], [_Split(pairwise=True)]
        if prod(sizes) <= self._cell_limit:
            views, costs, splits = [1, *views], [pairs * prod(sizes), *costs], [_Split(), *splits]
        for n in self._orders(sizes):
            crossing = self._crossing(sizes, n)
            if crossing is None:
                continue
            below = self._rows_front(sizes, n)
            views += (crossing[0] + below.views).tolist()
            costs += (crossing[1] + below.costs).tolist()
            splits += [_Split(n, trees) for trees in below.trees]
        return self._keep(
            np.array(views), np.array(costs), splits.__getitem__, self._total_direct - direct
        )

    def _keep(
        self,
        views: Counts,
        costs: Counts,
        tree_of: Callable[[int], _Tree],
        direct_outside: int,
    ) -> _Front[_Tree]:
        """Return the undominated entries that can still be part of the best design."""
        entries = _undominated(views, costs)
        # In floating point, with room for its rounding: the products may pass 64 bits.
        errors = views[entries].astype(np.float64) ** 2 * (costs[entries] + direct_outside)
        entries = entries[errors <= self._bound * _ROUNDING]
        if self._limit is not None and len(entries) > self._limit:
            steps = np.arange(self._limit)
            entries = entries[steps * steps * (len(entries) - 1) // (self._limit - 1) ** 2]
        return _Front(views[entries], costs[entries], [tree_of(int(entry)) for entry in entries])

    def _crossing(self, sizes: tuple[int, ...], n: int) -> tuple[int, int] | None:
        """Return number and cost of the lines across a matrix; None above the cell limit."""
        if sizes[0] == sizes[-1]:
            full_rows = -(-len(sizes) // n) - 1
            long = n * (len(sizes) - full_rows * n)  # lines that meet the short last row
            short = n * n - long if full_rows > 1 else 0
            groups = [(long, full_rows + 1), (short, full_rows)]
            if sizes[0] ** (full_rows + 1) > self._cell_limit:
                return None
            return long + short, sum(c * comb(r, 2) * sizes[0] ** r for c, r in groups)
        views = affine_lines(range(len(sizes)), n)
        cells = [prod(sizes[a] for a in view) for view in views]
        if max(cells) > self._cell_limit:
            return None
        return len(views), sum(comb(len(v), 2) * c for v, c in zip(views, cells, strict=True))

    def _rows_front(self, sizes: tuple[int, ...], n: int) -> _Front[tuple[_Split, ...]]:
        """Return every undominated way to split all rows of n columns, the last row last.

        Memoised, because matrices of different heights have their first rows in common.
        """
        if not sizes:
            return _Front(np.zeros(1, np.int64), np.zeros(1, np.int64), [()])
        if (sizes, n) not in self._row_fronts:
            cut = (len(sizes) - 1) // n * n
            above, below = self._rows_front(sizes[:cut], n), self.front(sizes[cut:])
            self._row_fronts[sizes, n] = self._keep(
                np.add.outer(above.views, below.views).ravel(),
                np.add.outer(above.costs, below.costs).ravel(),
                lambda entry: (
                    *above.trees[entry // len(below.trees)],
                    below.trees[entry % len(below.trees)],
                ),
                self._total_direct - sum(_direct_cost(row) for row in _rows(sizes, n)),
            )
        return self._row_fronts[sizes, n]


def _undominated(views: Counts, costs: Counts) -> NDArray[np.intp]:
    """Return the entries that no other beats in views and cost, fewest views first."""
    order = np.lexsort((costs, views))
    least = np.minimum.accumulate(costs[order])
    better = np.concatenate([[True], least[1:] < least[:-1]])
    entries: NDArray[np.intp] = order[better]
    return entries


def optimal_design(
    sizes: Sequence[int],
    *,
    orders: Orders = "prime-powers",
    cell_limit: int = DEFAULT_CELL_LIMIT,
) -> Design:
    """Return the design of least total squared error over all parameter trees.

    Exact for up to 64 attributes of equal domains. For mixed domains the matrix is filled from the
    largest domain to the smallest, so that large domains share a row and no line holds two of them;
    the few smallest matrices are tried, and rows fall back to direct pairs where that is better or
    where a larger view would pass the cell limit. No view of more than two attributes has more
    cells than `cell_limit`. The paper has matrices of a prime number of columns only.
    """
    descending = sorted(range(len(sizes)), key=lambda a: (-sizes[a], a))
    split = _best_split(tuple(sizes[a] for a in descending), orders, cell_limit)
    return Design(tuple(_expand(descending, split)), tuple(sizes))


@lru_cache(maxsize=_KEPT_DESIGNS)
def _best_split(sizes: tuple[int, ...], orders: Orders, cell_limit: int) -> _Split:
    front = _Search(sizes, orders, cell_limit).front(sizes)
    errors = [
        views**2 * cost
        for views, cost in zip(front.views.tolist(), front.costs.tolist(), strict=True)
    ]
    return front.trees[errors.index(min(errors))]


_PLANES = 2  # how many planes that are large enough are tried
_LARGEST = 12  # orders 2 to 19, for up to 381 attributes


@lru_cache(maxsize=_KEPT_DESIGNS)
def best_design(sizes: tuple[int, ...], *, cell_limit: int) -> Design:
    """Return NOCD's best design or a projective plane, whichever has less squared error."""
    designs = [optimal_design(sizes, cell_limit=cell_limit)]
    for order in islice(filter(prime_power, count(2)), _LARGEST):
        if order * order + order + 1 >= len(sizes):
            design = projective_design(sizes, order)
            if all(design.cells(view) <= cell_limit for view in design.views if len(view) > 2):
                designs.append(design)
            if len(designs) > _PLANES:
                break
    return min(designs, key=lambda design: design.squared_error)


def projective_design(sizes: Sequence[int], order: int) -> Design:
    """Return the lines of a plane whose points are the attributes; some points stay empty.

    From the largest domain to the smallest, every attribute takes the point that makes its lines'
    tables grow least: large domains come to lie on different lines.
    """
    through = projective_lines(order)
    cells, members = [1] * len(through), [0] * len(through)
    lines: list[list[int]] = [[] for _ in through]
    free = list(range(len(through)))
    for attribute in sorted(range(len(sizes)), key=lambda a: (-sizes[a], a)):
        size = sizes[attribute]
        costs = {
            point: sum(
                cells[line] * ((members[line] + 1) * size - members[line] + 1) * members[line]
                for line in through[point]
            )
            for point in free
        }
        place = min(free, key=lambda point: (costs[point], point))
        free.remove(place)
        for line in through[place]:
            lines[line].append(attribute)
            cells[line] *= size
            members[line] += 1
    return Design(tuple(tuple(line) for line in lines if len(line) > 1), tuple(sizes))
