"""A schema from a data dictionary: a public file about columns, made without any row.

A dictionary is a CSV file with a line for each column of the table:

    name,label,kind,values,min,max,bins,missing,asked if,otherwise
    age,Age in years,integer,,0,110,11,,,
    job,Occupation,,none; farm; office,,,,,age >= 15,none
    hours,Hours a week,integer,,0,80,,-9,job != none,

`values` lists what a cell may hold, with `;` or `|` between; a label may follow each (`1 = male` or
`1, male`). `min` and `max` are a range. `missing` is `yes`, or the codes that stand for an empty
cell. `asked if` is a condition as in `parley query`: it becomes the rule that the column has the
value in `otherwise`, or is empty, in every other row. All columns but `name` may be left out. The
headers of a REDCap dictionary, its choices and its branching logic are read as well.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import InputError, located
from common.schema import query
from common.schema.attribute import Listed
from common.schema.binning import DEFAULT_BINS
from common.schema.limits import MOST_ATTRIBUTES, check_most
from common.schema.schema import Proposal, Schema
from common.schema.toml import text_of

_HEADERS = {
    "name": ("name", "variable", "variable / field name"),
    "kind": ("kind", "type", "text validation type or show slider number", "field type"),
    "values": ("values", "choices", "choices, calculations, or slider labels"),
    "min": ("min", "text validation min"),
    "max": ("max", "text validation max"),
    "bins": ("bins",),
    "missing": ("missing",),
    "asked if": ("asked if", "branching logic (show field only if...)"),
    "otherwise": ("otherwise",),
}
_KINDS = {
    "categorical": "categorical", "radio": "categorical", "dropdown": "categorical",
    "ordinal": "ordinal", "boolean": "boolean", "yesno": "boolean", "truefalse": "boolean",
    "integer": "integer", "real": "real", "number": "real", "date": "date", "date_ymd": "date",
}  # fmt: skip
_YES = ("yes", "y", "true", "1")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a dictionary: its cells by the keys of `_HEADERS`, empty where there is none."""

    name: str
    kinds: tuple[str, ...]
    cells: Mapping[str, str]

    def __getitem__(self, key: str) -> str:
        return self.cells.get(key, "")


def read_dictionary(path: Path, columns: Collection[str] | None = None) -> Proposal:
    """Propose a schema, rules included, from a data dictionary; errors name the line.

    With `columns`, only these columns are proposed.
    """
    text = text_of(path).removeprefix("\ufeff")
    with located(str(path)):
        lines = [line for line in _lines(text) if columns is None or line.name in columns]
        return _proposed(lines)


def with_drafted(described: Proposal, drafted: Proposal) -> Proposal:
    """Add the columns that a dictionary does not describe, as they were read off the data."""
    schema = replace(
        described.schema,
        attributes=(*described.schema.attributes, *drafted.schema.attributes),
    )
    return replace(described, schema=schema, notes=(*described.notes, *drafted.notes), public=False)


def with_frequencies(schema: Schema, name: str, path: Path) -> Schema:
    """Return the schema with the public frequencies of an attribute's values.

    They are in a CSV file with a header, of values and whole numbers; others count as 0.
    """
    place = schema.position(name)
    attribute = schema.attributes[place]
    if not isinstance(attribute.domain, Listed):
        raise InputError(f"frequencies: {name!r} lists no values")
    frequencies = dict.fromkeys(map(str, attribute.domain.values), 0)
    lines = csv.reader(text_of(path).removeprefix("\ufeff").splitlines())
    next(lines, None)
    for cells in lines:
        value, number = (cell.strip() for cell in [*cells, "", ""][:2])
        if value not in frequencies or not re.fullmatch(r"\d{1,12}", number):
            raise InputError(
                f"{path}: line {lines.line_num}: expected a value of {name!r} and a whole number, "
                f"not {','.join(cells):.100}"
            )
        frequencies[value] = int(number)
    weighed = replace(attribute, frequencies=tuple(frequencies.values()))
    attributes = (*schema.attributes[:place], weighed, *schema.attributes[place + 1 :])
    return replace(schema, attributes=attributes)


def _lines(text: str) -> Iterator[_Line]:
    head = text.partition("\n")[0]
    read = csv.reader(text.splitlines(), delimiter=max(",;\t", key=head.count))
    header = [cell.strip().lower() for cell in next(read, [])]
    places = {
        key: [header.index(name) for name in names if name in header]
        for key, names in _HEADERS.items()
    }
    if not places["name"]:
        raise InputError("a data dictionary has a column `name`. Write its header first")
    for cells in read:
        row = [cell.strip() for cell in [*cells, *[""] * len(header)][: len(header)]]
        if any(row):
            cells_by_key = {key: row[at[0]] for key, at in places.items() if at}
            if not cells_by_key["name"]:
                raise InputError(f"line {read.line_num}: it has no name")
            kinds = (_KINDS.get(row[at].lower(), "") for at in places["kind"])
            yield _Line(cells_by_key["name"], tuple(filter(None, kinds)), cells_by_key)


def _proposed(lines: Sequence[_Line]) -> Proposal:
    check_most("columns of a data dictionary", len(lines), most=MOST_ATTRIBUTES)
    cuts = _cuts(lines)
    attributes, notes = list[dict[str, Any]](), list[str]()
    rules, unfit = list[dict[str, str]](), list[dict[str, str]]()
    for line in lines:
        try:
            attribute = _attribute(line, cuts.get(line.name, ()))
        except (InputError, ValueError) as error:
            raise InputError(f"column {line.name!r}: {error}") from None
        if attribute is None:
            notes.append(f"{line.name}: left out, the dictionary has neither values nor a range")
        else:
            attributes.append(attribute)
    if not attributes:
        raise InputError("no column has values or a range")
    known = [attribute["name"] for attribute in attributes]
    for line in lines:
        if line["asked if"] and line.name in known:
            rule = _rule(line)
            try:
                Schema.from_document({"attribute": attributes, "rule": [rule]})
                rules.append(rule)
            except InputError as error:
                why = " ".join(str(error).split("\n")[0].split())
                notes.append(f"{line.name}: its rule ({line['asked if']}) is left out: {why}")
                unfit.append(rule)
    document: dict[str, Any] = {"attribute": attributes, "rule": rules}
    schema = Schema.from_document(document)
    return Proposal(schema, tuple(notes), public=True, unfit=tuple(unfit))


def _attribute(line: _Line, cuts: Sequence[int]) -> dict[str, Any] | None:
    """Return the table of [[attribute]]; None without values or a range."""
    values, kind = _values(line["values"]), next(iter(line.kinds), "")
    entries: dict[str, Any] = {"name": line.name}
    if kind == "boolean":
        entries["kind"] = kind
    elif values:
        entries |= {"kind": "ordinal" if kind == "ordinal" else "categorical", "values": values}
    elif line["min"] and line["max"]:
        entries |= _range(kind, line["min"], line["max"], line["bins"], cuts)
    else:
        return None
    codes = [code.strip() for code in re.split(r"[;|]", line["missing"]) if code.strip()]
    empty = bool(line["asked if"]) and not line["otherwise"]
    if codes and codes[0].lower() not in (*_YES, "no"):
        entries["missing"] = codes
    elif empty or (codes and codes[0].lower() in _YES):
        entries["missing"] = True
    return entries


def _values(text: str) -> list[str]:
    """Return the codes in a list of codes, with or without labels."""
    between, before = ("|", r"[=,]") if "|" in text else (";", "=")
    parts = [re.split(before, part, maxsplit=1)[0].strip() for part in text.split(between)]
    return [part for part in parts if part]


def _range(kind: str, low: str, high: str, bins: str, cuts: Sequence[int]) -> dict[str, Any]:
    read: Callable[[str], Any] = dt.date.fromisoformat
    if kind != "date":
        whole = kind != "real" and all(re.fullmatch(r"[+-]?\d+", end) for end in (low, high))
        kind, read = ("integer", int) if whole else ("real", float)
    first, last = read(low), read(high)
    entries = {"kind": kind, "clip": True, "min": first, "max": last}
    if bins:
        return entries | {"bins": int(bins)}
    if kind != "integer":
        return entries
    inside = [cut for cut in cuts if first < cut < last]
    if not inside or last - first < DEFAULT_BINS:
        return entries
    step = (last - first) // DEFAULT_BINS + 1
    edges = sorted({*range(first, last, step), *inside, last})
    return {"kind": "integer", "clip": True, "edges": edges}


def _cuts(lines: Sequence[_Line]) -> dict[str, list[int]]:
    """Return the whole numbers at which conditions cut each column: bins begin there."""
    cuts: dict[str, list[int]] = {}
    for line in lines:
        with contextlib.suppress(InputError):  # the rule is left out, and why is noted
            for test in query.predicates(query.parse(_condition(line["asked if"]))):
                cuts.setdefault(test.name.text, []).extend(_starts(test))
    return cuts


def _starts(test: query.Predicate) -> list[int]:
    """Return where bins must begin so that a test of whole numbers cuts through none."""
    first, last = (_whole(token) for token in (test.first, test.last))
    match test.operator:
        case "<" | ">=":
            starts = [first]
        case "<=" | ">":
            starts = [None if first is None else first + 1]
        case "..":
            starts = [first, None if last is None else last + 1]
        case _:
            starts = [] if first is None else [first, first + 1]
    return [start for start in starts if start is not None]


def _whole(token: query.Token | None) -> int | None:
    return int(token.text) if token and re.fullmatch(r"[+-]?\d{1,15}", token.text) else None


def _condition(text: str) -> str:
    """Rewrite REDCap's branching logic in the language of `parley query`."""
    text = re.sub(r"\[([^\[\]()]+)\]", lambda name: f'"{name[1]}"', text)
    return text.replace("<>", "!=")


def _rule(line: _Line) -> dict[str, str]:
    name, value = _word(line.name), _word(line["otherwise"])
    then = f"{name} = {value}" if line["otherwise"] else f"{name} is missing"
    return {"when": f"not ({_condition(line['asked if'])})", "then": then}


def _word(text: str) -> str:
    """Quote a name or a value where a condition needs it."""
    plain = re.fullmatch(r"\w+", text) and text.lower() not in ("and", "or", "not", "in", "is")
    return text if plain else "'" + text.replace("'", "''") + "'"
