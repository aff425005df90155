"""From codes to Arrow columns: the decoder for many rows, without pandas and without text per row.

The values are those of `common.schema.decoder`. Text stays a dictionary and the places in it, which
is how Parquet files store it; numbers and dates are drawn from inside their bin.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.schema.attribute import OTHER_LABEL, Attribute, Listed
from common.schema.binning import Binning
from common.schema.codes import CodeColumn, Codes
from common.schema.compilation import compiled
from common.schema.decoder import WordSource
from common.schema.kernels import draw_real, draw_whole
from common.schema.schema import Schema

_WORD_RANGE = 1 << 32


def decode_to_arrow(schema: Schema, codes: Codes, source: WordSource) -> pa.Table:
    """The codes as a table of values that `Schema.encode` would give the same codes.

    Dates are `date32`, datetimes `timestamp[s]`, text a dictionary; a missing cell is null, and so
    is one coded `other` where the type cannot hold "(other)".
    """
    columns = [
        _column(attribute, column, source)
        for attribute, column in zip(schema.attributes, codes.columns, strict=True)
    ]
    for first, second, together in schema.possible.swaps(codes):
        one, other = columns[first], columns[second]
        wrong = pc.and_(pa.array(together), pc.fill_null(pc.greater(one, other), fill_value=False))
        columns[first] = pc.if_else(wrong, other, one)
        columns[second] = pc.if_else(wrong, one, other)
    return pa.table(columns, names=list(schema.names))


def _column(attribute: Attribute, codes: CodeColumn, source: WordSource) -> pa.Array:
    domain = attribute.domain
    if isinstance(domain, Listed) and domain.textual:
        words = [str(value) for value in domain.values] + [OTHER_LABEL] * attribute.other
        places = pa.array(codes, mask=_gaps(codes, len(words), attribute.size))
        return pa.DictionaryArray.from_arrays(places, pa.array(words, type=pa.string()))
    gaps = _gaps(codes, attribute.value_count, attribute.size)
    if isinstance(domain, Listed):
        fillers = [domain.values[0]] * (attribute.size - domain.count)
        return pa.array(np.array([*domain.values, *fillers]).take(codes), mask=gaps)
    bins = codes if gaps is None else np.minimum(codes, domain.count - 1)
    numbers = _inside(domain, codes, bins, source)
    if attribute.kind == "date":
        return pa.array(numbers.astype(np.int32), mask=gaps).view(pa.date32())
    array = pa.array(numbers, mask=gaps)
    return array.view(pa.timestamp("s")) if attribute.kind == "datetime" else array


def _gaps(codes: CodeColumn, values: int, size: int) -> NDArray[np.bool_] | None:
    """The cells that are empty, None where there can be none."""
    return None if values == size else codes >= values


def _inside(
    domain: Binning, codes: CodeColumn, bins: CodeColumn, source: WordSource
) -> NDArray[np.int64] | NDArray[np.float64]:
    """A number inside each bin, along the slope of the bins around it."""
    if domain.per_unit == 0:
        real = np.empty(len(bins), dtype=np.float64)
        places = domain.along_slope(codes, _fractions(source.words(len(bins))))
        words = (places * 2.0**53).astype(np.uint64) << np.uint64(11)
        compiled(draw_real)(bins, words, domain.first, domain.last, real)
        return real
    if int(domain.steps.max()) > _WORD_RANGE:
        places = domain.along_slope(codes, _fractions(source.words(len(bins))))
        return domain.draw(bins, places)
    # The upper half of a 32-bit word times a width is below the width, exactly.
    halves = source.words((len(bins) + 1) // 2).view(np.uint32)[: len(bins)]
    places = domain.along_slope(codes, halves.astype(np.float64) * 2.0**-32)
    drawn = np.empty(len(bins), dtype=np.int64)
    widths = domain.steps.astype(np.uint64)
    compiled(draw_whole)(
        bins, (places * 2.0**32).astype(np.uint32), domain.first_step, widths, drawn
    )
    return drawn if domain.whole else drawn / domain.per_unit


def _fractions(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
