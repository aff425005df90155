"""Proposing a schema from a table: a draft for its owner to review, never to use as it is.

The values and ranges of the draft are read off the data, and a schema is published: until the
owner has replaced them by public knowledge (the values of the code book, a range that holds for
everybody), the draft tells of individual rows. The notes and the head of the file say so, loudly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.attribute import BOOLEANS, Attribute, Listed
from common.schema.binning import Binning, Numbers
from common.schema.columns import arrow_column, is_text, real_numbers, whole_numbers
from common.schema.round_bins import growing_numbers, round_dates, round_numbers
from common.schema.schema import Schema
from common.wording import many

if TYPE_CHECKING:
    import pandas as pd

WARNING = (
    "NOT PRIVATE YET: the values and ranges below were read off the data, and a schema is\n"
    "published. Replace them by what is public knowledge (a code book, a range that holds for\n"
    "everybody) before you share this file or use it in a study."
)
MAX_VALUES = 1_000  # a text column with more distinct values is not proposed
_RARE = 5  # a value that fewer rows have is pointed out
_LARGEST = 1 << 53
_MOST_IN_A_BIN = 0.5  # of the rows, before bins are made to grow
_COMMON = 0.05  # the quantile of the positive numbers at which growing bins begin
_HEAP = 0.1  # of the rows with the very same number
_MOST_DECIMALS = 4  # further ones are those of a measurement or a computation
_ID_ROWS = 20  # with fewer rows, all cells being different means nothing
_FORMS = (  # texts that a country writes for what is read in another form
    (
        r"^[+-]?[0-9]+(,[0-9]+)*$",
        "numbers with a comma ({}): write a decimal point, and nothing between thousands",
    ),
    (
        r"^[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{2}|[0-9]{4})$",
        "dates in a form that is not read ({}): write them like 2026-12-31",
    ),
)
_MARKERS = {"?", "na", "n/a", "nan", "null", "none", "-", "--", ".", "unknown", "missing"}


def is_draft(text: str) -> bool:
    """Whether the text of a schema still has the warning that a proposal begins with."""
    return text.lstrip("\ufeff# ").startswith(WARNING.partition(":")[0])


@dataclass(frozen=True)
class Proposal:
    """A draft and what its owner should look at, a sentence each."""

    schema: Schema
    notes: tuple[str, ...]

    def to_toml(self) -> str:
        """The draft as a file, with the warning and the notes as comments at its head."""
        head = [f"# {line}" for line in WARNING.splitlines()]
        for note in self.notes:  # names come from the table, and may hold line breaks
            printable = "".join(c if c.isprintable() else " " for c in note)
            head.append(f"# * {printable}")
        return "\n".join([*head, "", self.schema.to_toml()])


@dataclass(frozen=True)
class _Column:
    """The cells of a column that are not empty, and whether others are."""

    name: str
    array: pa.Array
    missing: bool


@dataclass(frozen=True)
class _Leave:
    """A column that is not proposed, and why."""

    reason: str


def infer(table: pd.DataFrame | pa.Table) -> Proposal:
    """A schema that the table fits, and notes on what to review.

    Raises:
        InputError: if not one column can be an attribute, or the table has no rows.
    """
    if len(table) == 0:
        raise InputError("the table has no rows: there is nothing to propose a schema from")
    attributes: list[Attribute] = []
    ignore: list[str] = []
    notes: list[str] = []
    arrow = isinstance(table, pa.Table)
    names = [str(name) for name in (table.column_names if arrow else table.columns)]
    for position, name in enumerate(names):
        column = table[position] if isinstance(table, pa.Table) else table.iloc[:, position]
        remarks: list[str] = []
        proposed = _propose(name, _typed(column), remarks)
        if isinstance(proposed, Attribute):
            attributes.append(proposed)
        else:
            ignore.append(name)
            remarks = [f"left out, {proposed.reason}"]
        notes += [f"{name}: {remark}" for remark in remarks]
    if not attributes:
        raise InputError(f"no column can be an attribute: {'; '.join(notes)}")
    return Proposal(Schema(tuple(attributes), tuple(ignore)), tuple(notes))


def _typed(column: object) -> pa.Array:
    """The column in the type that all its cells are of: a draft may look at all of them."""
    if not isinstance(column, pa.ChunkedArray | pa.Array):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            column = pa.array(column, from_pandas=True)
    return arrow_column(column)


def _propose(name: str, array: pa.Array, notes: list[str]) -> Attribute | _Leave:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):  # NaN is pandas' empty cell
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    missing = array.null_count > 0
    array = array.drop_null()
    if len(array) == 0:
        return _Leave("every cell is empty")
    if is_text(array.type):
        array = _dates_of(array)
    propose = next((propose for accepts, propose in _PROPOSERS if accepts(array.type)), None)
    if propose is None:
        return _Leave(f"columns of type {array.type} are not supported")
    if len(array.unique()) == 1 and not missing:
        return _Leave("every row has the same value")
    try:
        return propose(_Column(name, array, missing), notes)
    except UnicodeDecodeError:
        return _Leave("its texts are not UTF-8")
    except InputError as error:
        return _Leave(str(error))


def _dates_of(array: pa.Array) -> pa.Array:
    """A text column of ISO dates as dates; any other as it is."""
    for target in (pa.date32(), pa.timestamp("us")):
        try:
            return pc.cast(array, target)
        except pa.ArrowInvalid:
            continue
    return array


def _boolean(column: _Column, notes: list[str]) -> Attribute:
    return Attribute(column.name, "boolean", BOOLEANS, missing=column.missing)


def _words(column: _Column, notes: list[str]) -> Attribute | _Leave:
    counted = column.array.value_counts().to_pylist()
    foreign = _foreign(pa.array([entry["values"] for entry in counted], pa.string()))
    if foreign is not None:
        return _Leave(foreign)
    variety = f"{many(len(counted), 'different text')} in {many(len(column.array), 'row')}"
    if len(counted) == len(column.array) >= _ID_ROWS:
        return _Leave(f"{variety}: free text or names")
    if len(counted) > MAX_VALUES:
        return _Leave(
            f"{variety}, more than {MAX_VALUES:,}: free text, or a long list; "
            "write it in by hand if its values are those of a public list"
        )
    values = sorted(entry["values"] for entry in counted if entry["values"] != "")
    column = replace(column, missing=column.missing or len(values) < len(counted))
    if {value.lower() for value in values} == {"false", "true"}:
        return _boolean(column, notes)
    rare = sum(entry["counts"] < _RARE for entry in counted)
    if rare:
        notes.append(
            f"values in fewer than {_RARE} rows: {rare} of {len(values)}; they would name those "
            "rows: keep them only if a public list has them, else use other = true"
        )
    markers = [repr(value) for value in values if value.strip().lower() in _MARKERS]
    if markers:
        notes.append(_marked(markers, [v for v in values if v.strip().lower() not in _MARKERS]))
    return Attribute(column.name, "categorical", Listed(tuple(values)), missing=column.missing)


def _foreign(texts: pa.Array) -> str | None:
    """What the texts are in the notation of a country, with one of them; None for just texts."""
    texts = texts.filter(pc.not_equal(texts, ""))
    for form, meaning in _FORMS:
        telling = texts.filter(pc.match_substring_regex(texts, "[,./-]"))
        if len(telling) > 0 and pc.all(pc.match_substring_regex(texts, form)).as_py():
            return meaning.format(telling[0])
    return None


def _marked(markers: list[str], others: list[str]) -> str:
    """On texts that may stand for empty cells, and what they may hide."""
    note = f"{', '.join(markers)} may stand for an empty cell; it is listed as a value"
    try:
        pc.cast(pa.array(others, pa.string()), pa.float64())
    except pa.ArrowInvalid:
        return note
    return f"{note}. All others are numbers: empty those cells to have it proposed as a range"


def _integers(column: _Column, notes: list[str]) -> Attribute | _Leave:
    numbers, _, _ = whole_numbers("integer", column.array, None)
    low, high = int(numbers.min()), int(numbers.max())
    if max(abs(low), abs(high)) > _LARGEST:
        return _Leave("numbers beyond 2^53: identifiers")
    if len(numbers) >= _ID_ROWS and np.all(np.diff(numbers) == 1):
        return _Leave("the numbers count the rows: an identifier")
    values = np.unique(numbers)
    if len(values) <= 2:
        listed = Listed(tuple(values.tolist()))
        return Attribute(column.name, "categorical", listed, missing=column.missing)
    binning = _cut(numbers, notes, whole=True)
    return Attribute(column.name, "integer", binning, missing=column.missing)


def _reals(column: _Column, notes: list[str]) -> Attribute | _Leave:
    numbers, _, _ = real_numbers(column.array, None)
    if not np.isfinite(numbers).all():
        return _Leave("some numbers are infinite")
    if np.array_equal(numbers, np.floor(numbers)):
        return _integers(column, notes)
    if numbers.min() == numbers.max():
        return _Leave("all numbers are the same")
    binning = _cut(numbers, notes, whole=False)
    return Attribute(column.name, "real", binning, missing=column.missing)


def _cut(numbers: Numbers, notes: list[str], *, whole: bool) -> Binning:
    """Bins for a column of numbers; growing ones where equal ones leave most rows in one bin."""
    low, high = numbers.min().item(), numbers.max().item()
    decimals = None if whole else _decimals(numbers)
    binning = _with(decimals, round_numbers(low, high, whole=whole))
    if low >= 0 and _fullest(binning, numbers) > _MOST_IN_A_BIN:
        common = np.quantile(numbers[numbers > 0], _COMMON).item()
        growing = _with(decimals, growing_numbers(low, common, high, 0 if whole else decimals))
        if _fullest(growing, numbers) < _fullest(binning, numbers):
            binning = growing
            notes.append("most numbers are small: the bins grow, as equal ones would hide them")
    notes.append(_read_off(f"{binning.low}..{binning.high}"))
    heap = _heap(binning, numbers)
    if heap is not None:
        notes.append(heap)
    return binning


def _heap(binning: Binning, numbers: Numbers) -> str | None:
    """On a number that many rows have and that drawing evenly within its bin would spread out."""
    values, counts = np.unique(numbers, return_counts=True)
    heap = values[[counts.argmax()]]
    place = int(binning.assign(heap)[0][0])
    first, last = binning.first[place], binning.last[place]
    if counts.max() <= _HEAP * len(numbers) or _single(binning)[place]:
        return None
    remedy = (
        "list edges that give it a bin of its own"
        if binning.whole or binning.decimals is not None
        else "empty these cells (missing = true), or say it in a column of its own"
    )
    return (
        f"more than a tenth are exactly {heap[0]:.10g}, in the bin {first:.10g}..{last:.10g}, "
        f"within which numbers are drawn evenly; {remedy}"
    )


def _fullest(binning: Binning, numbers: Numbers) -> float:
    """The largest share of the numbers in a bin that holds different ones."""
    counts = np.bincount(binning.assign(numbers)[0], minlength=binning.count)
    return float(counts[~_single(binning)].max(initial=0)) / len(numbers)


def _single(binning: Binning) -> NDArray[np.bool_]:
    """Which bins hold one number only."""
    known = binning.whole or binning.decimals is not None
    return binning.steps == 1 if known else np.zeros(binning.count, np.bool_)


def _decimals(numbers: Numbers) -> int | None:
    """How many the numbers are written with; None if they are measured, not counted in cents."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.array_equal(np.round(numbers, decimals), numbers):
            return decimals
    return None


def _with(decimals: int | None, binning: Binning) -> Binning:
    """The bins with these decimals, where they have room for them."""
    if decimals is None:
        return binning
    with contextlib.suppress(InputError):
        return binning.with_decimals(decimals)
    return binning


def _dates(column: _Column, notes: list[str]) -> Attribute | _Leave:
    zone = getattr(column.array.type, "tz", None)
    if zone is not None:
        return _Leave(f"its times have the zone {zone}; convert them and drop the zone")
    seconds, _, _ = whole_numbers("datetime", column.array, None)
    by_day = not (seconds % 86_400).any()
    binning = round_dates(int(seconds.min()), int(seconds.max()), by_day=by_day)
    attribute = Attribute(
        column.name, "date" if by_day else "datetime", binning, missing=column.missing
    )
    first, last = attribute.labels[0], attribute.labels[attribute.value_count - 1]
    span = f"{first.partition('..')[0]}..{last.rpartition('..')[2]}"
    notes.append(_read_off(span))
    return attribute


def _read_off(span: str) -> str:
    return f"the range {span} was read off the data, if rounded; write the public one"


_Proposer = Callable[[_Column, list[str]], Attribute | _Leave]
_PROPOSERS: tuple[tuple[Callable[[Any], bool], _Proposer], ...] = (
    (pa.types.is_boolean, _boolean),
    (is_text, _words),
    (pa.types.is_integer, _integers),
    (lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind), _reals),
    (lambda kind: pa.types.is_date(kind) or pa.types.is_timestamp(kind), _dates),
)
