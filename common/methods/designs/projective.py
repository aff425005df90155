"""Views from projective planes: every pair in exactly one, and fewer views than in NOCD.

In the plane over GF(q) there are q^2 + q + 1 points and as many lines, every line has q + 1 points,
and two points lie on exactly one line. NOCD fills matrices, so it reaches the affine planes only:
13 attributes need 19 views there and 13 here, which is two thirds of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count, islice, product

from common.methods.designs.galois import field, prime_power
from common.methods.designs.nocd import Design, optimal_design

_PLANES = 2  # how many planes that are large enough are tried
_LARGEST = 12  # orders 2 to 19, for up to 381 attributes


@lru_cache(maxsize=32)  # every role of a study asks again
def best_design(sizes: tuple[int, ...], *, cell_limit: int) -> Design:
    """NOCD's best design or a projective plane, whichever has less squared error.

    Args:
        sizes: the domain size of each attribute.
        cell_limit: no view of more than two attributes has more cells than this.
    """
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
    """The lines of a plane whose points are the attributes; points that are left over are empty.

    From the largest domain to the smallest, every attribute takes the point that makes its lines'
    tables grow least: large domains come to lie on different lines.
    """
    through = _lines_through(order)
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


@lru_cache(maxsize=16)
def _lines_through(order: int) -> tuple[tuple[int, ...], ...]:
    """For every point, the lines that it lies on; points and lines have the same coordinates."""
    arithmetic = field(order)
    places = [
        triple
        for triple in product(range(order), repeat=3)
        if next((value for value in triple if value), 0) == 1  # one of each class of multiples
    ]

    def meet(point: tuple[int, ...], line: tuple[int, ...]) -> bool:
        total = 0
        for one, other in zip(point, line, strict=True):
            total = int(arithmetic.add[total, arithmetic.multiply[one, other]])
        return total == 0

    return tuple(
        tuple(number for number, line in enumerate(places) if meet(point, line)) for point in places
    )
