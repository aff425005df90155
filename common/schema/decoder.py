"""From codes back to values: the columns of a table that people read.

Numbers and dates come from inside their bin, along the slope of the bins around it. A missing cell
is empty (NA, NaT or None). A cell coded `other` is "(other)" in a text column and empty in a column
that cannot hold text. The type of a column depends on the schema alone, never on the rows: integers
that may be empty are nullable integers in every table.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.schema.attribute import OTHER_LABEL, Attribute, Listed
from common.schema.binning import Binning
from common.schema.codes import CodeColumn


class WordSource(Protocol):
    """What decoding needs of a random source."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` uniform 64-bit words."""


def decode_column(attribute: Attribute, codes: CodeColumn, source: WordSource) -> pd.Series[Any]:
    """The values of a column of codes."""
    domain = attribute.domain
    if isinstance(domain, Binning):
        values = _numbers(attribute, domain, codes, source)
    else:
        values = _listed(attribute, domain, codes)
    return pd.Series(values, name=attribute.name)


def _listed(attribute: Attribute, domain: Listed, codes: CodeColumn) -> Any:  # noqa: ANN401
    if domain.textual:
        words: list[str | None] = [str(value) for value in domain.values]
        words += [OTHER_LABEL] if attribute.other else []
        words += [None] if attribute.missing else []
        return pd.array(words, dtype="str").take(codes.astype(np.intp))
    plain = np.array([*domain.values, *[0] * (attribute.size - domain.count)])
    if attribute.kind == "boolean":
        plain = plain.astype(np.bool_)
    return _with_gaps(attribute, plain[codes], codes)


def _numbers(
    attribute: Attribute,
    domain: Binning,
    codes: CodeColumn,
    source: WordSource,
) -> Any:  # noqa: ANN401  (an array or an extension array)
    bins = np.minimum(codes, domain.count - 1)
    # 53 random bits per cell; the words of special cells are drawn and not used.
    fractions = (source.words(len(codes)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    plain = domain.draw(bins, domain.along_slope(codes, fractions))
    if attribute.kind == "date":
        plain = (plain * 86_400).view("datetime64[s]")
    elif attribute.kind == "datetime":
        plain = plain.view("datetime64[s]")
    return _with_gaps(attribute, plain, codes)


def _with_gaps(attribute: Attribute, plain: NDArray[Any], codes: CodeColumn) -> Any:  # noqa: ANN401
    """The values, with an empty cell wherever the code is a special one."""
    if attribute.size == attribute.value_count:
        return plain
    gaps = codes >= attribute.value_count
    if plain.dtype.kind == "f":
        return np.where(gaps, np.nan, plain)
    if plain.dtype.kind == "M":
        return np.where(gaps, np.datetime64("NaT"), plain)
    array = pd.array(plain, dtype="boolean" if plain.dtype.kind == "b" else "Int64")
    array[gaps] = pd.NA
    return array
