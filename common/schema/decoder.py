"""From codes back to values: the columns of a table that people read.

Numbers and dates come from inside their bin, along the slope of the bins around it. A missing cell
is empty (NA, NaT or None). A cell coded `other` is "(other)" in a text column and empty in a column
that cannot hold text. The type of a column depends on the schema alone, never on the rows: integers
that may be empty are nullable integers in every table. `shape_like` gives a column another type.
"""

from __future__ import annotations

import datetime as dt
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


def shape_like(column: pd.Series[Any], template: pd.Series[Any]) -> pd.Series[Any]:
    """The column in the type of the template, as far as that type can hold its values."""
    target = template.dtype
    if isinstance(target, pd.CategoricalDtype):
        return _as_categorical(column, target)
    if target == np.dtype(object):
        return _as_objects(column, template)
    if column.dtype == target:
        return column
    if isinstance(target, pd.StringDtype) or str(target) in (
        "string[pyarrow]",
        "large_string[pyarrow]",
    ):
        return _as_words(column).astype(target)
    if isinstance(target, np.dtype) and target.kind in "iub" and column.isna().any():
        # The template had no empty cell; its nullable sibling does what it cannot.
        name = str(target)
        target = pd.api.types.pandas_dtype(
            {"bool": "boolean"}.get(name, name.replace("i", "I", 1).replace("u", "U", 1))
        )
    try:
        shaped = column.astype(target)
    except (TypeError, ValueError, OverflowError):
        return column
    if pd.api.types.is_integer_dtype(column.dtype) and not (shaped == column).all():
        return column  # too narrow: it wrapped around
    return shaped


def _as_categorical(column: pd.Series[Any], target: pd.CategoricalDtype) -> pd.Series[Any]:
    """The template's categories, and after them whatever else occurs ("(other)")."""
    categories = target.categories
    values = column
    if pd.api.types.is_string_dtype(categories.dtype) and not pd.api.types.is_string_dtype(column):
        values = _as_words(column)
    extra = [value for value in values.dropna().unique() if value not in categories]
    if extra:
        categories = categories.append(pd.Index(extra))
    return values.astype(pd.CategoricalDtype(categories, ordered=target.ordered))


def _as_objects(column: pd.Series[Any], template: pd.Series[Any]) -> pd.Series[Any]:
    """Plain Python objects of the class the template holds; None for an empty cell."""
    samples = template.dropna()
    sample = samples.iloc[0] if len(samples) else None
    if isinstance(sample, str):
        column = _as_words(column)
    objects = column.astype(object)
    if type(sample) is dt.date:
        objects = pd.Series(column.dt.date, index=column.index, dtype=object)
    return objects.where(column.notna(), None)


def _as_words(column: pd.Series[Any]) -> pd.Series[Any]:
    """The text a file would hold."""
    if column.dtype.kind == "M":
        moments = column.dropna()
        midnight = bool((moments == moments.dt.normalize()).all())
        words = column.dt.strftime("%Y-%m-%d" if midnight else "%Y-%m-%dT%H:%M:%S")
    else:
        words = column.astype("str")
    filled: pd.Series[Any] = words.where(column.notna(), None)
    return filled
