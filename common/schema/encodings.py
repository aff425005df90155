"""Codes as bits: the binary and Gray encodings of PrivBayes' binary path [Zhang17, Sec. 5.1].

An attribute of size l becomes ceil(log2 l) binary attributes, the most significant bit first. The
natural code of i is i; the Gray code is i xor (i >> 1), whose neighbours differ in a single bit.
Where l is not a power of two some bit patterns stand for no value: `debinarise` says which rows
have one, and those rows must be drawn again.

The other two encodings need no code of their own: vanilla is the codes as they are, hierarchical is
the codes with `Attribute.hierarchy.levels`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.codes import CodeColumn, Codes, code_dtype


def bit_count(size: int) -> int:
    """The bits that an attribute of this size becomes: ceil(log2 size), and 1 for a constant."""
    return max(1, (size - 1).bit_length())


def bit_positions(sizes: Sequence[int]) -> list[range]:
    """Which binary attributes each attribute becomes."""
    starts = np.cumsum([0, *(bit_count(size) for size in sizes)]).tolist()
    return [range(start, end) for start, end in itertools.pairwise(starts)]


def binarise(codes: Codes, gray: bool = False) -> Codes:  # noqa: FBT001, FBT002
    """Every attribute as bits, most significant first; `gray` chooses the Gray code."""
    bits: list[NDArray[np.uint8]] = []
    for column, size in zip(codes.columns, codes.sizes, strict=True):
        word = column ^ (column >> 1) if gray else column
        shifts = reversed(range(bit_count(size)))
        bits.extend(((word >> shift) & 1).astype(np.uint8) for shift in shifts)
    return Codes(tuple(bits), (2,) * len(bits))


def debinarise(
    bits: Codes,
    sizes: Sequence[int],
    gray: bool = False,  # noqa: FBT001, FBT002
) -> tuple[tuple[CodeColumn, ...], NDArray[np.bool_]]:
    """The codes that the bits stand for, and which rows stand for a row at all.

    Returns:
        One column per attribute, each holding only codes below its size (0 in place of a pattern
        that stands for no value), and a mask of the rows in which every pattern stands for one.
    """
    spans = bit_positions(sizes)
    if bits.width != sum(len(span) for span in spans) or set(bits.sizes) - {2}:
        raise LocalError(f"{bits.width} bits do not make attributes of sizes {tuple(sizes)}")
    valid = np.ones(bits.rows, dtype=np.bool_)
    columns: list[CodeColumn] = []
    one = np.uint16(1)
    for size, span in zip(sizes, spans, strict=True):
        word = np.zeros(bits.rows, dtype=np.uint16)
        for position in span:
            bit = bits.columns[position].astype(np.uint16)
            # Gray: each bit says whether the bit of the number changes, seen from the one above.
            word = (word << one) | (bit ^ (word & one) if gray else bit)
        known = word < size
        valid &= known
        columns.append(np.where(known, word, 0).astype(code_dtype(size)))
    return tuple(columns), valid
