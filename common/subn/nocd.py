"""NOCD: few views, every pair of attributes in exactly one [Su16, VI-C and VI-D].

The attributes fill a matrix of l rows and n columns, n a prime or a prime power. The n^2 lines
"row i, column j + i*m" are views; every row is then split again the same way, or is a view itself.
Two attributes in different rows lie on exactly one line, two in the same row meet in that row, so
every pair is in exactly one view (Theorem 4).

What a design costs: publishing V views together has sensitivity 2V, so every cell has noise of
variance proportional to V^2, and a pair read off a view sums up all of the view's cells. The total
squared error of the pair marginals is V^2 * sum over views of (pairs in it) * (cells of it), in
units of the squared noise unit. The paper's Eq. 6 has other exponents and counts (it multiplies by
V once, and counts n*d - n*l + 2n^2 cells where 2^(l-1) * (n*d - n^2*l + 2n^2) are meant), and its
recursion cannot minimise any objective with a global V in it: the best part for the whole is not
the best part for itself. `optimal_design` keeps, per part, every (views, cost) that no other beats.

    >>> from common.subn.nocd import optimal_design
    >>> optimal_design([2] * 52).error_per_pair     # 71 views
    607657.1945701358
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, isqrt, prod
from typing import Literal, TypeVar

from common.errors import LocalError
from common.subn.galois import field, is_prime, prime_power

View = tuple[int, ...]
Orders = Literal["primes", "prime-powers"]
_Tree = TypeVar("_Tree")

DEFAULT_CELL_LIMIT = 1 << 16
_ORDERS_TRIED_ON_MIXED_DOMAINS = 4
_EXACT_UP_TO_ATTRIBUTES = 64
_FRONT_LIMIT = 40  # per front beyond that: minutes become seconds, the error grows by some 2 %


@dataclass(frozen=True, slots=True)
class Design:
    """Views over attributes of the given domain sizes."""

    views: tuple[View, ...]
    sizes: tuple[int, ...]

    def cells(self, view: View) -> int:
        """The number of cells of a view."""
        return prod(self.sizes[a] for a in view)

    @property
    def total_cells(self) -> int:
        """What one party sends: the cells of all views."""
        return sum(self.cells(view) for view in self.views)

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


def lines(block: Sequence[int], columns: int) -> list[View]:
    """The views across the rows of a matrix filled with `block`, row by row.

    Cells missing from the short last row are skipped, and views of fewer than 2 attributes dropped.
    The paper's index is 1-based, and its "mod n" yields 0 where it means n.
    """
    rows = -(-len(block) // columns)
    if rows > columns:
        raise LocalError(f"{rows} rows need at least as many columns, not {columns}")
    arithmetic = field(columns)
    views = []
    for slope in range(columns):
        for start in range(columns):
            cells = (
                row * columns + int(arithmetic.add[start, arithmetic.multiply[row, slope]])
                for row in range(rows)
            )
            view = tuple(block[cell] for cell in cells if cell < len(block))
            if len(view) > 1:
                views.append(view)
    return views


def _rows(block: Sequence[int], columns: int) -> list[Sequence[int]]:
    return [block[start : start + columns] for start in range(0, len(block), columns)]


def _expand(block: Sequence[int], split: _Split) -> Iterator[View]:
    """The views a parameter tree describes."""
    if len(block) < 2:
        return
    if split.pairwise:
        yield from combinations(block, 2)
    elif not split.columns:
        yield tuple(block)
    else:
        yield from lines(block, split.columns)
        for row, below in zip(_rows(block, split.columns), split.rows, strict=True):
            yield from _expand(row, below)


def printed_design(attributes: int) -> Design:
    """Algorithm 2 as printed, for binary attributes: the comparator, not what we use.

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


def pairs_design(sizes: Sequence[int]) -> Design:
    """Every pair is its own view: the comparator, and the last resort."""
    return Design(tuple(combinations(range(len(sizes)), 2)), tuple(sizes))


# Per number of views: the least cost (sum of pairs * cells) and the tree that has it.
_Front = dict[int, tuple[int, _Split]]


def _direct_cost(sizes: Sequence[int]) -> int:
    """The cost of all pairs as views of their own."""
    return (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2


class _Search:
    """Pareto fronts of (number of views, cost) per block of attributes, memoised by the sizes.

    Entries that cannot be part of the best design are dropped: direct pairs have the least cost any
    design can have, so v views of cost c on a block end at v^2 * (c + direct cost outside) or more.
    """

    def __init__(self, sizes: tuple[int, ...], orders: Orders, cell_limit: int) -> None:
        self._is_order = is_prime if orders == "primes" else lambda n: prime_power(n) is not None
        self._cell_limit = cell_limit
        self._fronts: dict[tuple[int, ...], _Front] = {}
        self._total_direct = _direct_cost(sizes)
        self._bound = self._first_bound(sizes)
        self._limit = None if len(sizes) <= _EXACT_UP_TO_ATTRIBUTES else _FRONT_LIMIT

    def _first_bound(self, sizes: tuple[int, ...]) -> int:
        """The error of the best design with one matrix and undivided rows, or of direct pairs."""
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

    def front(self, sizes: tuple[int, ...]) -> _Front:
        if len(sizes) < 2:
            return {0: (0, _Split())}
        known = self._fronts.get(sizes)
        if known is None:
            known = self._fronts[sizes] = self._compute(sizes)
        return known

    def _compute(self, sizes: tuple[int, ...]) -> _Front:
        candidates: list[tuple[int, int, _Split]] = []
        if prod(sizes) <= self._cell_limit:
            candidates.append((1, comb(len(sizes), 2) * prod(sizes), _Split()))
        direct = _direct_cost(sizes)
        candidates.append((comb(len(sizes), 2), direct, _Split(pairwise=True)))
        for n in self._orders(sizes):
            crossing = self._crossing(sizes, n)
            if crossing is None:
                continue
            views, cost = crossing
            candidates += [
                (views + below_views, cost + below_cost, _Split(n, trees))
                for below_views, below_cost, trees in self._rows_front(sizes, n)
            ]
        kept = self._keep(candidates, self._total_direct - direct)
        return {views: (cost, split) for views, cost, split in kept}

    def _keep(
        self, entries: Iterable[tuple[int, int, _Tree]], direct_outside: int
    ) -> list[tuple[int, int, _Tree]]:
        """The undominated entries that can still be part of the best design."""
        kept = [
            entry
            for entry in _undominated(entries)
            if entry[0] ** 2 * (entry[1] + direct_outside) <= self._bound
        ]
        if self._limit is None or len(kept) <= self._limit:
            return kept
        last = self._limit - 1
        return [kept[i * i * (len(kept) - 1) // (last * last)] for i in range(self._limit)]

    def _crossing(self, sizes: tuple[int, ...], n: int) -> tuple[int, int] | None:
        """Number and cost of the lines through the matrix; None above the cell limit."""
        if sizes[0] == sizes[-1]:
            full_rows = -(-len(sizes) // n) - 1
            long = n * (len(sizes) - full_rows * n)  # lines that meet the short last row
            short = n * n - long if full_rows > 1 else 0
            groups = [(long, full_rows + 1), (short, full_rows)]
            if sizes[0] ** (full_rows + 1) > self._cell_limit:
                return None
            return long + short, sum(c * comb(r, 2) * sizes[0] ** r for c, r in groups)
        views = lines(range(len(sizes)), n)
        cells = [prod(sizes[a] for a in view) for view in views]
        if max(cells) > self._cell_limit:
            return None
        return len(views), sum(comb(len(v), 2) * c for v, c in zip(views, cells, strict=True))

    def _rows_front(
        self, sizes: tuple[int, ...], n: int
    ) -> list[tuple[int, int, tuple[_Split, ...]]]:
        """Every undominated way to split all rows."""
        sums: dict[int, tuple[int, tuple[_Split, ...]]] = {0: (0, ())}
        outside = self._total_direct
        for row in _rows(sizes, n):
            joined: dict[int, tuple[int, tuple[_Split, ...]]] = {}
            below = self.front(tuple(row))
            outside -= _direct_cost(row)
            for views, (cost, trees) in sums.items():
                for more_views, (more_cost, tree) in below.items():
                    total = views + more_views
                    if total not in joined or cost + more_cost < joined[total][0]:
                        joined[total] = (cost + more_cost, (*trees, tree))
            kept = self._keep(((v, *entry) for v, entry in joined.items()), outside)
            sums = {views: (cost, trees) for views, cost, trees in kept}
        return [(views, cost, trees) for views, (cost, trees) in sums.items()]


def _undominated(entries: Iterable[tuple[int, int, _Tree]]) -> list[tuple[int, int, _Tree]]:
    """The entries that no other beats in both the number of views and the cost."""
    kept: list[tuple[int, int, _Tree]] = []
    for entry in sorted(entries, key=lambda e: e[:2]):
        if not kept or entry[1] < kept[-1][1]:
            kept.append(entry)
    return kept


def optimal_design(
    sizes: Sequence[int],
    *,
    orders: Orders = "prime-powers",
    cell_limit: int = DEFAULT_CELL_LIMIT,
) -> Design:
    """The design of least total squared error over all parameter trees.

    Exact for up to 64 attributes of equal domains. For mixed domains the matrix is filled from the
    largest domain to the smallest, so that large domains share a row and no line holds two of them;
    the few smallest matrices are tried, and rows fall back to direct pairs where that is better or
    where a larger view would pass the cell limit.

    Args:
        sizes: the domain size of each attribute.
        orders: which matrices: prime numbers of columns (the paper), or prime powers too.
        cell_limit: no view of more than two attributes has more cells than this.
    """
    descending = sorted(range(len(sizes)), key=lambda a: (-sizes[a], a))
    ordered = tuple(sizes[a] for a in descending)
    front = _Search(ordered, orders, cell_limit).front(ordered)
    _, split = min(
        ((views**2 * cost, split) for views, (cost, split) in front.items()), key=lambda e: e[0]
    )
    return Design(tuple(_expand(descending, split)), tuple(sizes))
