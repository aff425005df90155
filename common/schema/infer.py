"""Proposing a schema from a table: a draft for its owner to review, never to use as it is.

The values and ranges of the draft are read off the data, and a schema is published: until the
owner has replaced them by public knowledge (the values of the code book, a range that holds for
everybody), the draft tells of individual rows. The notes and the head of the file say so, loudly.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.attribute import BOOLEANS, Attribute, Kind, Listed
from common.schema.binning import Binning, Numbers
from common.schema.columns import (
    arrow_column,
    as_bytes,
    is_text,
    real_numbers,
    whole_numbers,
)
from common.schema.encoder import emptied
from common.schema.round_bins import (
    growing_bins,
    round_dates,
    round_numbers,
)
from common.schema.schema import Schema
from common.schema.words import number, word_of
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
_HEAP = 0.1  # of the rows with the very same number
_MOST_DECIMALS = 4  # further ones are those of a measurement or a computation
_MOST_CODES = 5  # different texts among numbers that are taken for codes
_LEAST_NUMBERS = 3  # different numbers beside which texts are taken for codes
_MANY = 100  # values of a column, each of which gets noise
_FEW = 0.001  # of the rows in a bin; noise outweighs them
_SENTINELS = re.compile(r"-?9{2,}|-[1-9]")  # numbers that surveys write for "no answer"
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
    """A draft, what its owner should look at, and whether no row had a part in it."""

    schema: Schema
    notes: tuple[str, ...]
    public: bool = False

    def to_toml(self) -> str:
        """The draft as a file, with the warning and the notes as comments at its head."""
        head = [] if self.public else [f"# {line}" for line in WARNING.splitlines()]
        for note in self.notes:  # names come from the table, and may hold line breaks
            printable = "".join(c if c.isprintable() else " " for c in note)
            head.append(f"# * {printable}")
        return "\n".join([*head, "", self.schema.to_toml()])


@dataclass(frozen=True)
class _Column:
    """The cells of a column that are not empty, whether others are, and codes for empty ones."""

    name: str
    array: pa.Array
    missing: bool
    codes: tuple[str, ...] = ()

    def attribute(self, kind: Kind, domain: Listed | Binning) -> Attribute:
        missing = self.missing or bool(self.codes)
        return Attribute(self.name, kind, domain, missing=missing, missing_codes=self.codes)


@dataclass(frozen=True)
class _Leave:
    """A column that is not proposed, and why."""

    reason: str


def infer(
    table: pd.DataFrame | pa.Table,
    *,
    missing: Sequence[str] = (),
    labels: Mapping[str, Mapping[bytes, str]] | None = None,
) -> Proposal:
    """A schema that the table fits, and notes on what to review.

    Args:
        table: whose columns become attributes.
        missing: codes that stand for empty cells, in whichever column they are.
        labels: of values, by column, where the table's file has such.
    """
    if len(table) == 0:
        raise InputError("the table has no rows: there is nothing to propose a schema from")
    attributes: list[Attribute] = []
    notes: list[str] = []
    arrow = isinstance(table, pa.Table)
    names = [str(name) for name in (table.column_names if arrow else table.columns)]
    for position, name in enumerate(names):
        column = table[position] if isinstance(table, pa.Table) else table.iloc[:, position]
        remarks: list[str] = []
        proposed = _propose(name, _typed(column), remarks, missing, (labels or {}).get(name, {}))
        if isinstance(proposed, Attribute):
            attributes.append(proposed)
        else:
            remarks = [f"left out, {proposed.reason}"]
        notes += [f"{name}: {remark}" for remark in remarks]
    if not attributes:
        raise InputError(f"no column can be an attribute: {'; '.join(notes)}")
    return Proposal(Schema(tuple(attributes)), tuple(notes))


def _typed(column: object) -> pa.Array:
    """The column in the type that all its cells are of: a draft may look at all of them."""
    if not isinstance(column, pa.ChunkedArray | pa.Array):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            column = pa.array(column, from_pandas=True)
    return arrow_column(column)


def _propose(
    name: str,
    array: pa.Array,
    notes: list[str],
    codes: Sequence[str] = (),
    labels: Mapping[bytes, str] | None = None,
) -> Attribute | _Leave:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):  # NaN is pandas' empty cell
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    missing = array.null_count > 0
    array, codes = _without(array.drop_null(), codes)
    if len(array) == 0:
        return _Leave("every cell is empty")
    listed = _labelled(array, labels or {})
    if listed is not None:
        notes.append(
            "the values are the value labels of the file; write the codes if other owners have them"
        )
        return _Column(name, array, missing, codes).attribute("categorical", Listed(listed))
    if is_text(array.type):
        array, further = _numbers_of(array, known=bool(codes))
        if further:
            codes = (*codes, *further)
            notes.append(_coded(further))
        array = _dates_of(array) if is_text(array.type) else array
    propose = next((propose for accepts, propose in _PROPOSERS if accepts(array.type)), None)
    if propose is None:
        return _Leave(f"columns of type {array.type} are not supported")
    if len(array.unique()) == 1 and not missing and not codes:
        return _Leave("every row has the same value")
    try:
        return propose(_Column(name, array, missing, codes), notes)
    except UnicodeDecodeError:
        return _Leave("its texts are not UTF-8")
    except InputError as error:
        return _Leave(str(error))


def _without(array: pa.Array, codes: Sequence[str]) -> tuple[pa.Array, tuple[str, ...]]:
    """The cells that hold no code for a missing value, and the codes that some hold."""
    held = tuple(code for code in codes if len(_emptied(array, (code,))) < len(array))
    return _emptied(array, held), held


def _emptied(array: pa.Array, codes: tuple[str, ...]) -> pa.Array:
    if not codes:
        return array
    probe = Attribute("cells", "boolean", BOOLEANS, missing=True, missing_codes=codes)
    return emptied(probe, array).drop_null()


def _labelled(array: pa.Array, labels: Mapping[bytes, str]) -> tuple[str, ...] | None:
    """The labels of a column all of whose cells have one, in the order of the file."""
    texts = tuple(dict.fromkeys(labels.values()))
    cells = {word_of(cell) for cell in array.unique().to_pylist()} if labels else set()
    return texts if cells and cells <= set(labels) and len(texts) > 1 else None


def _numbers_of(array: pa.Array, *, known: bool) -> tuple[pa.Array, tuple[str, ...]]:
    """A text column of numbers and a few codes as numbers, and the codes; any other as it is.

    Where codes are `known`, because they were taken from it already, numbers alone are numbers.
    """
    texts = array.dictionary_encode()
    values = [number(word) for word in as_bytes(texts.dictionary)]
    words = texts.dictionary.to_pylist()
    codes = [w for w, n in zip(words, values, strict=True) if n is None or n != n]
    numbers = len(words) - len(codes)
    padded = any(re.match("[+-]?0[0-9]", word.strip()) for word in words)
    few = known if not codes else len(codes) <= min(_MOST_CODES, numbers // 3)
    if padded or not few or numbers < (1 if known else _LEAST_NUMBERS) or "" in codes:
        return array, ()
    kept = [None if w in codes else n for w, n in zip(words, values, strict=True)]
    whole = all(n is None or (isinstance(n, int) and abs(n) <= _LARGEST) for n in kept)
    if not whole:
        kept = [None if n is None else float(n) for n in kept]
    found = pa.array(kept, pa.int64() if whole else pa.float64()).take(texts.indices)
    return found.drop_null(), tuple(sorted(codes))


def _coded(codes: Sequence[str]) -> str:
    shown = ", ".join(map(repr, codes))
    return (
        f"all cells are numbers but {shown}, read as a code for a missing value (missing = [...]); "
        "list the values instead if it is an answer of its own"
    )


def _dates_of(array: pa.Array) -> pa.Array:
    """A text column of ISO dates as dates; any other as it is."""
    for target in (pa.date32(), pa.timestamp("us")):
        try:
            return pc.cast(array, target)
        except pa.ArrowInvalid:
            continue
    return array


def _boolean(column: _Column, notes: list[str]) -> Attribute:
    return column.attribute("boolean", BOOLEANS)


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
    values = sorted((e["values"] for e in counted if e["values"] != ""), key=_as_numbers)
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
    if len(values) > _MANY:
        notes.append(
            f"{len(values):,} values, and noise is added to every one: a coarser code, or a "
            "hierarchy, loses less"
        )
    return column.attribute("categorical", Listed(tuple(values)))


def _as_numbers(value: str) -> tuple[bool, float, str]:
    """Codes that are numbers in the order of the numbers, before all others."""
    read = number(value.encode())
    known = read is not None and read == read
    return not known, read if known and read is not None else 0, value


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
        return column.attribute("categorical", listed)
    _note_sentinels(values, notes)
    return column.attribute("integer", _cut(numbers, notes, whole=True))


def _reals(column: _Column, notes: list[str]) -> Attribute | _Leave:
    numbers, _, _ = real_numbers(column.array, None)
    if not np.isfinite(numbers).all():
        return _Leave("some numbers are infinite")
    if np.array_equal(numbers, np.floor(numbers)):
        return _integers(column, notes)
    if numbers.min() == numbers.max():
        return _Leave("all numbers are the same")
    _note_sentinels(np.unique(numbers), notes)
    return column.attribute("real", _cut(numbers, notes, whole=False))


def _note_sentinels(values: Numbers, notes: list[str]) -> None:
    """On a number far from all others that looks like a code for "no answer"."""
    for end, rest in ((values[0], values[1:]), (values[-1], values[:-1])):
        text = f"{end:.15g}"
        gap = min(abs(end - rest[0]), abs(end - rest[-1]))
        if _SENTINELS.fullmatch(text) and gap > rest[-1] - rest[0]:
            notes.append(
                f"{text} is far from all other numbers: if it stands for a missing value, run "
                f"again with --missing {text}, or the bins are wasted on it"
            )


def _cut(numbers: Numbers, notes: list[str], *, whole: bool) -> Binning:
    """Bins for a column of numbers; growing ones where equal ones leave most rows in one bin."""
    low, high = numbers.min().item(), numbers.max().item()
    decimals = None if whole else _decimals(numbers)
    binning = _with(decimals, round_numbers(low, high, whole=whole))
    full = _fullest(binning, numbers)
    if full > _MOST_IN_A_BIN:
        growing = growing_bins(numbers, 0 if whole else decimals)
        if growing is not None and _fullest(growing, numbers) < full:
            binning = _with(decimals, growing)
            notes.append("most numbers are small: the bins grow, as equal ones would hide them")
        else:
            notes.append(
                f"{full:.0%} of the rows are in one of {binning.count} equal bins, and what is "
                "inside of it is lost; list edges that cut it"
            )
    _note_tail(binning, numbers, notes)
    notes.append(_read_off(f"{binning.low}..{binning.high}"))
    heap = _heap(binning, numbers)
    if heap is not None:
        notes.append(heap)
    return binning


def _note_tail(binning: Binning, numbers: Numbers, notes: list[str]) -> None:
    """On bins at the upper end that hold hardly any rows."""
    counts = np.bincount(binning.assign(numbers)[0], minlength=binning.count)
    above = counts[::-1].cumsum()[::-1]
    nearly_empty = np.flatnonzero(above < _FEW * len(numbers))
    if len(nearly_empty) >= max(2, binning.count // 3):
        start = binning.first[nearly_empty[0]]
        notes.append(
            f"fewer than {_FEW:.1%} of the rows are at {start:.10g} or more, in "
            f"{len(nearly_empty)} of {binning.count} bins that noise will fill; end the range "
            "earlier, with clip = true"
        )


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
    attribute = column.attribute("date" if by_day else "datetime", binning)
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
