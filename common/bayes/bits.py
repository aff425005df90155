"""From sampled bits back to attributes: rows that stand for no row are drawn again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from common.privacy.randomness import RandomSource, uniforms
from common.schema.codes import Codes, concatenate
from common.schema.encodings import bit_positions, debinarise

_MOST_REDRAWS = 50


def attributes_from_bits(
    bits: Codes,
    sizes: Sequence[int],
    *,
    redraw: Callable[[int], Codes],
    source: RandomSource,
    gray: bool = False,
) -> Codes:
    """Attributes from bits. A row with a pattern that stands for no value is drawn again.

    After 50 redraws in a row only the values that do not exist are replaced, uniformly: with
    hostile noise every redraw could fail.

    Args:
        bits: sampled rows of bits.
        sizes: the domain sizes of the attributes.
        redraw: so many further rows of bits of the same distribution.
        source: for the values that are replaced.
        gray: whether the bits are a Gray code.
    """
    domains = tuple(sizes)
    columns, valid = debinarise(bits, domains, gray)
    parts = [Codes(columns, domains).take(np.flatnonzero(valid))]
    missing = bits.rows - parts[0].rows
    for _ in range(_MOST_REDRAWS):
        if not missing:
            break
        bits = redraw(missing)
        columns, valid = debinarise(bits, domains, gray)
        parts.append(Codes(columns, domains).take(np.flatnonzero(valid)))
        missing -= parts[-1].rows
    if missing:
        parts.append(_repaired(bits.take(np.flatnonzero(~valid)), domains, source, gray=gray))
    return concatenate(parts)


def _repaired(bits: Codes, sizes: tuple[int, ...], source: RandomSource, *, gray: bool) -> Codes:
    columns = []
    for size, span in zip(sizes, bit_positions(sizes), strict=True):
        (column,), valid = debinarise(bits.select(span), [size], gray)
        instead = (uniforms(bits.rows, source) * size).astype(column.dtype)
        columns.append(np.where(valid, column, instead))
    return Codes.from_columns(columns, sizes)
