"""Proposing a schema from a table: a draft for its owner to review, never to use unreviewed.

The values and ranges of the draft are read off the data, and a schema is published: until the
owner has replaced them by public knowledge (the values of the code book, a range that holds for
every person), the draft tells of individual rows. The notes and the head of the file warn of it.

What identifies people is not proposed at all (`common.schema.identifying`), and no value is listed
that fewer than `LEAST_ROWS` rows have, unless a public list of the values is named. The values of
yes-or-no questions (true and false, 0 and 1) are listed always.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from common.errors import InputError
from common.schema import identifying
from common.schema.attribute import BOOLEANS, Attribute, Domain, Kind, Listed
from common.schema.binning import Numbers
from common.schema.columns import (
    arrow_column,
    as_bytes,
    is_text,
    named_columns,
    real_numbers,
    whole_numbers,
)
from common.schema.encoder import emptied
from common.schema.ordered import in_order
from common.schema.round_bins import propose_bins, read_off, round_dates
from common.schema.words import member_of, number
from common.wording import many

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 1_000  # a text column with more distinct values is not proposed
LEAST_ROWS = 5  # a value that fewer rows have is not listed
_LARGEST = 1 << 53
_MOST_CODES_OF_KIND = 12  # different numbers that are taken for the codes of a category
_CODED = """
sex gender race ethnicity religion region state province country county code type kind class
category industry occupation sector marital status relationship diagnosis cause
"""  # words of headers whose numbers are codes
_MOST_ORDERED = 50  # answers that are looked at for an order
_MANY_NUMBERS = 100
_ID_DIGITS = 6  # of numbers of one length that may be identifiers
_UNIQUE = 0.99  # of the rows have a number of their own
_MOST_CODES = 5  # different texts among numbers that are taken for codes
_LEAST_NUMBERS = 3  # different numbers beside which texts are taken for codes
_MANY = 100  # values of a column, each of which gets noise
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
_BY_HAND = (
    "write it in by hand, or name the list (--public COLUMN=FILE), if its values are those of a "
    "public list"
)
_MARKERS = {"?", "na", "n/a", "nan", "null", "none", "-", "--", ".", "unknown", "missing"}


@dataclass(frozen=True)
class _Column:
    """The cells of a column that are not empty, whether others are, and codes for empty ones."""

    name: str
    array: pa.Array
    missing: bool
    codes: tuple[str, ...] = ()

    def attribute(self, kind: Kind, domain: Domain, *, other: bool = False) -> Attribute:
        missing = self.missing or bool(self.codes)
        return Attribute(
            self.name, kind, domain, missing=missing, missing_codes=self.codes, other=other
        )


def _of_people(columns: list[tuple[str, object]], person: str) -> Iterator[tuple[str, object]]:
    """Yield columns; with a column of people, each cell of a person once, and not that column."""
    owners = dict(columns).get(person) if person else None
    if owners is None:
        yield from columns
        return
    for name, column in columns:
        if name != person:
            cells = pa.table({"person": _decoded(owners), "cell": _decoded(column)})
            yield name, cells.group_by(["person", "cell"]).aggregate([]).column("cell")


def _decoded(column: object) -> pa.Array:
    array = arrow_column(column)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def draft(
    table: pd.DataFrame | pa.Table,
    *,
    missing: Sequence[str] = (),
    labels: Mapping[str, Mapping[bytes, str]] | None = None,
    public: Mapping[str, Sequence[str]] | None = None,
    person: str = "",
) -> tuple[tuple[Attribute, ...], tuple[str, ...]]:
    """Return attributes that the table fits, and notes on what to review; see `Schema.infer`.

    With a column of people, a value counts once for each person who has it.
    """
    if len(table) == 0:
        raise InputError("the table has no rows: there is nothing to propose a schema from")
    attributes: list[Attribute] = []
    notes: list[str] = []
    for name, column in _of_people(named_columns(table), person):
        remarks: list[str] = []
        known = (labels or {}).get(name, {})
        listed = (public or {}).get(name, ())
        try:
            attributes.append(
                _propose(name, _typed(column), remarks, codes=missing, labels=known, public=listed)
            )
        except UnicodeDecodeError:
            remarks = ["left out, its texts are not UTF-8"]
        except InputError as reason:
            remarks = [f"left out, {reason}"]
        notes += [f"{name}: {remark}" for remark in remarks]
    if not attributes:
        raise InputError(f"no column can be an attribute: {'; '.join(notes)}")
    return tuple(attributes), tuple(notes)


def _typed(column: object) -> pa.Array:
    """Return the column in the type that all its cells have: a draft may look at all of them."""
    if not isinstance(column, pa.ChunkedArray | pa.Array):
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            column = pa.array(column, from_pandas=True)
    return arrow_column(column)


def _propose(
    name: str,
    array: pa.Array,
    notes: list[str],
    *,
    codes: Sequence[str],
    labels: Mapping[bytes, str],
    public: Sequence[str],
) -> Attribute:
    """Propose an attribute for a column; InputError if it should be left out."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):  # NaN is pandas' empty cell
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    missing = array.null_count > 0
    array = array.drop_null()
    codes = tuple(code for code in codes if len(_without(array, (code,))) < len(array))
    array = _without(array, codes)
    if len(array) == 0:
        raise InputError("every cell is empty")
    if public:
        outside = {member_of(cell) for cell in array.unique().to_pylist()} - {
            value.encode() for value in public
        }
        column = _Column(name, array, missing or b"" in outside, codes)
        return column.attribute("categorical", Listed(tuple(public)), other=bool(outside - {b""}))
    listed = _labels_of(array, labels)
    if listed is not None:
        notes.append(
            "the values are the value labels of the file; write the codes if other owners have them"
        )
        return _Column(name, array, missing, codes).attribute("categorical", Listed(listed))
    if is_text(array.type):
        array, further = _numbers_of(array, known=bool(codes))
        if further:
            codes = (*codes, *further)
            notes.append(
                f"all cells are numbers but {', '.join(map(repr, further))}, read as a code for a "
                "missing value (missing = [...]); list the values instead if it is an answer of "
                "its own"
            )
        array = _dates_of(array) if is_text(array.type) else array
    propose = next((propose for accepts, propose in _PROPOSERS if accepts(array.type)), None)
    if propose is None:
        raise InputError(f"columns of type {array.type} are not supported")
    different = len(array.unique())
    if different == 1 and not missing and not codes:
        raise InputError("every row has the same value")
    about = identifying.by_header(name, is_text=is_text(array.type)) if different > 2 else None
    if about is not None:
        raise InputError(f"its name says that it holds {about}; {_BY_HAND}")
    return propose(_Column(name, array, missing, codes), notes)


def _without(array: pa.Array, codes: tuple[str, ...]) -> pa.Array:
    """Return the cells that hold no code for a missing value."""
    if not codes:
        return array
    probe = Attribute("cells", "boolean", BOOLEANS, missing=True, missing_codes=codes)
    return emptied(probe, array).drop_null()


def _labels_of(array: pa.Array, labels: Mapping[bytes, str]) -> tuple[str, ...] | None:
    """Return the labels of a column all of whose cells have one, in the order of the file."""
    texts = tuple(dict.fromkeys(labels.values()))
    cells = {member_of(cell) for cell in array.unique().to_pylist()} if labels else set()
    return texts if cells and cells <= set(labels) and len(texts) > 1 else None


def _numbers_of(array: pa.Array, *, known: bool) -> tuple[pa.Array, tuple[str, ...]]:
    """Turn a text column of numbers and a few codes into numbers and the codes; keep any other.

    Where codes are `known`, because they were taken from it already, numbers alone are numbers.
    """
    texts = array.dictionary_encode()
    values = [number(word) for word in as_bytes(texts.dictionary)]
    words = texts.dictionary.to_pylist()
    codes = [w for w, n in zip(words, values, strict=True) if n is None or n != n]
    numbers = len(words) - len(codes)
    padded = any(re.match("[+-]?0[0-9]", word.strip()) for word in words)
    few = len(codes) <= min(_MOST_CODES, numbers // 3)
    if not codes:
        few = known or numbers > _ID_ROWS
    if padded or not few or numbers < (1 if known else _LEAST_NUMBERS) or "" in codes:
        return array, ()
    cells = [None if w in codes else n for w, n in zip(words, values, strict=True)]
    whole = all(n is None or (isinstance(n, int) and abs(n) <= _LARGEST) for n in cells)
    if not whole:
        cells = [None if n is None else float(n) for n in cells]
    column = pa.array(cells, pa.int64() if whole else pa.float64()).take(texts.indices)
    return column.drop_null(), tuple(sorted(codes))


def _dates_of(array: pa.Array) -> pa.Array:
    """Turn a text column of ISO dates into dates; keep any other."""
    for target in (pa.date32(), pa.timestamp("us")):
        with contextlib.suppress(pa.ArrowInvalid):
            return pc.cast(array, target)
    return array


def _boolean(column: _Column, notes: list[str]) -> Attribute:
    return column.attribute("boolean", BOOLEANS)


def _words(column: _Column, notes: list[str]) -> Attribute:
    counted = column.array.value_counts().to_pylist()
    _refuse_foreign(pa.array([entry["values"] for entry in counted], pa.string()))
    variety = f"{many(len(counted), 'different text')} in {many(len(column.array), 'row')}"
    if len(counted) == len(column.array) >= _ID_ROWS:
        raise InputError(f"{variety}: free text or names")
    different = [entry["values"] for entry in counted if entry["values"] != ""]
    has_order = len(different) <= _MOST_ORDERED and in_order(different) is not None
    about = None if has_order else identifying.by_texts(different)
    if about is not None:
        raise InputError(f"{variety}: {about}; {_BY_HAND}")
    if len(counted) > MAX_VALUES:
        raise InputError(
            f"{variety}, more than {MAX_VALUES:,}: free text, or a long list; {_BY_HAND}"
        )
    texts = {entry["values"]: entry["counts"] for entry in counted if entry["values"] != ""}
    column = replace(column, missing=column.missing or len(texts) < len(counted))
    if {value.lower() for value in texts} == {"false", "true"}:
        return _boolean(column, notes)
    values = sorted((text for text in texts if texts[text] >= LEAST_ROWS), key=_in_order)
    rare = len(texts) - len(values)
    if not values or (len(texts) > _ID_ROWS and rare > len(texts) / 2):
        raise InputError(f"{variety}, few rows each: names, identifiers or free text; {_BY_HAND}")
    if rare:
        notes.append(_not_listed(rare, len(texts)))
    markers = [repr(value) for value in values if value.strip().lower() in _MARKERS]
    if markers:
        notes.append(_marked(markers, [v for v in values if v.strip().lower() not in _MARKERS]))
    if len(values) > _MANY:
        notes.append(
            f"{len(values):,} values, and noise is added to every one: a coarser code, or a "
            "hierarchy, loses less"
        )
    ordered = in_order(values)
    if has_order and ordered is not None:
        notes.append("the answers have an order, which is the order of the values; check it")
        return column.attribute("ordinal", Listed(ordered), other=bool(rare))
    return column.attribute("categorical", Listed(tuple(values)), other=bool(rare))


def _not_listed(rare: int, values: int) -> str:
    return (
        f"values in fewer than {LEAST_ROWS} rows: {rare} of {values}; they would name those rows, "
        "so they are not listed and count as other = true; list them only from a public list "
        "(--public COLUMN=FILE)"
    )


def _in_order(value: str) -> tuple[bool, float, str]:
    """Order codes that are numbers by the numbers, before all others."""
    read = number(value.encode())
    known = read is not None and read == read
    return not known, read if known and read is not None else 0, value


def _refuse_foreign(texts: pa.Array) -> None:
    """Leave out a column of numbers or dates in the notation of a country."""
    texts = texts.filter(pc.not_equal(texts, ""))
    telling = texts.filter(pc.match_substring_regex(texts, "[,./-]"))
    for form, meaning in _FORMS:
        if len(telling) > 0 and pc.all(pc.match_substring_regex(texts, form)).as_py():
            raise InputError(meaning.format(telling[0]))


def _marked(markers: list[str], others: list[str]) -> str:
    """Return a note on texts that may stand for empty cells, and what they may hide."""
    note = f"{', '.join(markers)} may stand for an empty cell; it is listed as a value"
    try:
        pc.cast(pa.array(others, pa.string()), pa.float64())
    except pa.ArrowInvalid:
        return note
    return f"{note}. All others are numbers: empty those cells to have it proposed as a range"


def _integers(column: _Column, notes: list[str]) -> Attribute:
    numbers, _, _ = whole_numbers("integer", column.array, None)
    low, high = int(numbers.min()), int(numbers.max())
    if max(abs(low), abs(high)) > _LARGEST:
        raise InputError("numbers beyond 2^53: identifiers")
    values, counts = np.unique(numbers, return_counts=True)
    if len(numbers) == len(values) == high - low + 1 >= _ID_ROWS:
        raise InputError("the numbers count the rows: an identifier")
    if _counts_people(values, len(numbers)):
        raise InputError(
            f"{len(values):,} different numbers, few rows each: an identifier; {_BY_HAND}"
        )
    if set(values.tolist()) <= {0, 1} or (len(values) <= 2 and counts.min() >= LEAST_ROWS):
        return column.attribute("categorical", Listed(tuple(values.tolist())))
    _note_sentinels(values, notes)
    frequent = values[counts >= LEAST_ROWS]
    if _are_codes(column.name, values, frequent):
        notes.append(
            "its numbers look like codes of a category, so they are listed; if they count or "
            'measure something, write kind = "integer", min and max'
        )
        rare = len(values) - len(frequent)
        if rare:
            notes.append(_not_listed(rare, len(values)))
        listed = Listed(tuple(frequent.tolist()))
        return column.attribute("categorical", listed, other=bool(rare))
    return column.attribute("integer", propose_bins(numbers, notes, whole=True))


def _counts_people(values: Numbers, rows: int) -> bool:
    """Say whether whole numbers are those of a counter, or of one length and as good as unique."""
    if len(values) <= _MANY_NUMBERS or rows / len(values) >= LEAST_ROWS:
        return False
    # Of numbers drawn at random, a fraction of exp(-rows / numbers) is missing; a counter has all.
    gaps = 1 - len(values) / (values[-1] - values[0] + 1)
    dense = gaps < math.exp(-rows / len(values)) / 10
    shortest, longest = len(str(int(values[0]))), len(str(int(values[-1])))
    alike = values[0] > 0 and _ID_DIGITS <= shortest == longest
    return bool(dense) or bool(alike and len(values) >= _UNIQUE * rows)


def _are_codes(name: str, values: Numbers, frequent: Numbers) -> bool:
    """Say whether whole numbers are codes: by the header, or few, all in use, with a gap.

    A count that many rows have is not above one that none has, so a gap tells codes from counts;
    but what begins with 0, 1, 2 is taken for a count.
    """
    if len(frequent) < 2 or len(values) < 3:
        return False
    if set(_CODED.split()) & set(re.findall("[a-z]+", name.lower())):
        return len(values) <= _MANY
    steps = np.diff(values)
    few = len(values) <= _MOST_CODES_OF_KIND and len(frequent) == len(values)
    if values[:3].tolist() == [0, 1, 2]:
        return False
    return few and bool(steps.max() > 1) and bool(steps.min() < steps.max())


def _reals(column: _Column, notes: list[str]) -> Attribute:
    numbers, _, _ = real_numbers(column.array, None)
    if not np.isfinite(numbers).all():
        raise InputError("some numbers are infinite")
    if np.array_equal(numbers, np.floor(numbers)):
        return _integers(column, notes)
    if numbers.min() == numbers.max():
        raise InputError("all numbers are the same")
    _note_sentinels(np.unique(numbers), notes)
    return column.attribute("real", propose_bins(numbers, notes, whole=False))


def _note_sentinels(values: Numbers, notes: list[str]) -> None:
    """Note a number far from all others that looks like a code for "no answer"."""
    for end, rest in ((values[0], values[1:]), (values[-1], values[:-1])):
        text = f"{end:.15g}"
        gap = min(abs(end - rest[0]), abs(end - rest[-1]))
        if _SENTINELS.fullmatch(text) and gap > rest[-1] - rest[0]:
            notes.append(
                f"{text} is far from all other numbers: if it stands for a missing value, run "
                f"again with --missing {text}, or the bins are wasted on it"
            )


def _dates(column: _Column, notes: list[str]) -> Attribute:
    zone = getattr(column.array.type, "tz", None)
    if zone is not None:
        raise InputError(f"its times have the zone {zone}; convert them and drop the zone")
    seconds, _, _ = whole_numbers("datetime", column.array, None)
    by_day = not (seconds % 86_400).any()
    binning = round_dates(seconds, by_day=by_day)
    attribute = column.attribute("date" if by_day else "datetime", binning)
    first, last = attribute.labels[0], attribute.labels[attribute.value_count - 1]
    span = f"{first.partition('..')[0]}..{last.rpartition('..')[2]}"
    notes.append(read_off(span))
    return attribute


_Proposer = Callable[[_Column, list[str]], Attribute]
_PROPOSERS: tuple[tuple[Callable[[Any], bool], _Proposer], ...] = (
    (pa.types.is_boolean, _boolean),
    (is_text, _words),
    (pa.types.is_integer, _integers),
    (lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind), _reals),
    (lambda kind: pa.types.is_date(kind) or pa.types.is_timestamp(kind), _dates),
)
