"""Disjoint blocks of attributes whose tables give better margins than histograms do.

One histogram per attribute has sensitivity 2d. A table over a block of attributes costs as much as
one histogram and gives the margins of all of them: with V blocks the noise scale falls from 2d to
2V, while summing out the rest of the block multiplies a margin's variance by the rest's cells.
Three binary attributes in a block: a third of the scale, four cells summed, 0.44 of the variance.
Large domains stay alone. The choice depends on the public domain sizes only.

A table of a large domain has more cells for noise to spoil. Where domains differ much, small and
large tables are counted in a sum each, and the large ones get more of the budget for a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations
from math import inf, isqrt, prod, sqrt

Block = tuple[int, ...]

_UNIT = 1 << 20  # errors are integers in steps of this fraction: peers compare what follows
_PARTS = 40  # a sum's fraction of the cost is a multiple of one part in so many
_WORTH_A_SUM = 0.95  # of the error that one sum of all blocks has
_WORTH_AMONG_MANY = 0.98  # with a delta, where most of the budget is for margins
_MANY = 32  # tables


def margin_error(sizes: Sequence[int], blocks: Sequence[Block]) -> float:
    """Return the sum over attributes of the L1 noise in their margins, in units of 2 / epsilon.

    A margin of s values in a block of c cells has s cells with noise of standard deviation
    proportional to the number of blocks and to sqrt(c / s).
    """
    return len(blocks) * sum(_block_error(sizes, block) for block in blocks) / _UNIT


def _block_error(sizes: Sequence[int], block: Block) -> int:
    cells = prod(sizes[a] for a in block)
    return sum(isqrt(sizes[a] * cells * _UNIT * _UNIT) for a in block)


def margin_sums(
    sizes: Sequence[int], blocks: Sequence[Block], norm: int
) -> tuple[tuple[tuple[Block, ...], Fraction], ...]:
    """Return the blocks of one sum or of two, with their fractions of the margins' cost.

    V blocks at a fraction x of the cost have noise of a deviation proportional to V / x if it is
    calibrated to the L1 norm, and to sqrt(V / x) if to the L2 norm. Of all cuts into small and
    large tables, and of all fractions, those of the least error over all margins.
    """
    return _cut(tuple(sizes), tuple(blocks), norm)


@lru_cache(maxsize=64)  # every role of a simulation asks for the same few
def _cut(
    sizes: tuple[int, ...], blocks: tuple[Block, ...], norm: int
) -> tuple[tuple[tuple[Block, ...], Fraction], ...]:
    ranked = sorted(blocks, key=lambda block: (_block_error(sizes, block), block))
    errors = [_block_error(sizes, block) / _UNIT for block in ranked]
    cuts = range(1, len(ranked))
    of_small = {cut: sum(errors[:cut]) for cut in cuts}
    of_large = {cut: sum(errors[cut:]) for cut in cuts}

    def error(cut: int, part: int) -> float:
        small, large = cut * _PARTS / part, (len(ranked) - cut) * _PARTS / (_PARTS - part)
        if norm != 1:
            small, large = sqrt(small), sqrt(large)
        return small * of_small[cut] + large * of_large[cut]

    alone = len(ranked) if norm == 1 else sqrt(len(ranked))
    choices = ((error(cut, part), cut, part) for cut in cuts for part in range(1, _PARTS))
    least, cut, part = min(choices, default=(inf, 0, 0))
    worth = _WORTH_A_SUM if norm == 1 or len(blocks) <= _MANY else _WORTH_AMONG_MANY
    if least > worth * alone * sum(errors):
        return ((blocks, Fraction(1)),)
    fraction = Fraction(part, _PARTS)
    return (tuple(sorted(ranked[:cut])), fraction), (tuple(sorted(ranked[cut:])), 1 - fraction)


def disjoint_blocks(sizes: Sequence[int], cell_limit: int) -> tuple[Block, ...]:
    """Return a partition of the attributes with a small `margin_error`, greedily.

    Blocks are merged two by two, always the pair that hurts least, down to one block; the best
    partition on the way wins. The number of blocks is a factor of every block's error, so a merge
    may pay only after further merges: the search goes on after a merge that does not pay.
    """
    return _merged(tuple(sizes), cell_limit)


@lru_cache(maxsize=16)  # a simulation has a plan for every role, and all ask for the same blocks
def _merged(sizes: tuple[int, ...], cell_limit: int) -> tuple[Block, ...]:
    errors: dict[Block, int] = {(a,): _block_error(sizes, (a,)) for a in range(len(sizes))}
    merges: list[tuple[int, Block, Block]] = []

    def offer(a: Block, b: Block) -> None:
        if prod(sizes[x] for x in a + b) <= cell_limit:
            heappush(merges, (_block_error(sizes, a + b) - errors[a] - errors[b], a, b))

    for a, b in combinations(list(errors), 2):
        offer(a, b)
    best, least = tuple(errors), len(errors) * sum(errors.values())
    while merges:
        _, a, b = heappop(merges)
        if a not in errors or b not in errors:
            continue
        del errors[a], errors[b]
        block = tuple(sorted(a + b))
        others = list(errors)
        errors[block] = _block_error(sizes, block)
        for other in others:
            offer(other, block)
        error = len(errors) * sum(errors.values())
        if error < least:
            best, least = tuple(errors), error
    return tuple(sorted(best))
