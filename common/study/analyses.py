"""Declared analyses: what a study is for, in the language of analysts.

    [[analysis]]
    relation = ["amount", "price"]              # how two columns, or more, depend on each other

    [[analysis]]
    mean = "income"
    by = ["sex", "region"]                      # of each group of these columns

    [[analysis]]
    share = "smoker = yes"                      # the proportion of rows that satisfy a condition
    by = "age"

    [[analysis]]
    regression = "income ~ age + education"     # coefficients: they rest on pairs

    [[analysis]]
    survival = ["days", "status"]               # how long until an event, and whether it was seen
    by = "arm"

On a command line an analysis is one text: mean = "income", by = ["sex", "region"]. Each names the
sets of columns whose joint tables it needs; a method that takes analyses measures these first
(`common.methods.subn_plus.declared`).

Of people with events, columns are those of `Schema.joined`. An analysis that names a column of
events is about events, each of which counts once; others are about people.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, cast, get_args

from common.errors import InputError, located
from common.schema import Schema
from common.schema.attribute import Attribute
from common.schema.conditions import parse
from common.schema.limits import check_most
from common.schema.query import parse_formula
from common.schema.toml import toml, toml_lines

Kind: TypeAlias = Literal["relation", "mean", "share", "regression", "survival"]
ColumnSet: TypeAlias = tuple[int, ...]  # positions in the schema, ascending
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST_ANALYSES = 64
MOST_COLUMNS = 8  # of one set: a table of more has more cells than rows
_GROUPED = ("mean", "share", "survival")  # the kinds that know `by`


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis."""

    kind: Kind
    about: tuple[str, ...]  # columns; of a share its condition, of a regression its formula
    by: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        groups = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.kind} of {', '.join(self.about)}{groups}"

    @property
    def plain(self) -> dict[str, object]:
        """The analysis as the keys and values of its table: for study.toml and the digest."""
        several = self.kind in ("relation", "survival")
        about: object = list(self.about) if several else self.about[0]
        return {self.kind: about, **({"by": list(self.by)} if self.by else {})}

    @property
    def text(self) -> str:
        """The analysis as one text, as a command line takes it."""
        return ", ".join(f"{key} = {toml(value)}" for key, value in self.plain.items())

    def to_toml(self) -> list[str]:
        return ["", *toml_lines(self.plain, header="[[analysis]]")]

    def columns(self, schema: Schema) -> tuple[str, ...]:
        if self.kind == "regression":
            return tuple(parse_formula(self.about[0], schema.joined).columns)
        if self.kind == "share":
            return (*parse(self.about[0], schema.joined).attributes, *self.by)
        return (*self.about, *self.by)

    def of_events(self, schema: Schema) -> bool:
        """Return whether it is about events, and not about people or rows."""
        places = _positions(self.columns(schema), schema)
        return schema.events is not None and max(places) > len(schema.names)

    def sets(self, schema: Schema) -> tuple[ColumnSet, ...]:
        """Return the sets of columns whose joint tables it needs, as positions in `joined`.

        Coefficients of a regression rest on second moments, and so on every pair of its columns.
        Tables average the events of a person; to count each event once, the number of a person's
        events is needed, too.
        """
        columns = self.columns(schema)
        together = combinations(columns, 2) if self.kind == "regression" else [columns]
        number = {len(schema.names)} if self.of_events(schema) else set[int]()
        return tuple(tuple(sorted({*_positions(names, schema), *number})) for names in together)


def read_analyses(items: object, schema: Schema) -> tuple[Analysis, ...]:
    """Read the analyses of a study, each a text or a table; InputError names the first bad one."""
    listed = _listed(items)
    check_most("analyses", len(listed), most=MOST_ANALYSES)
    analyses = []
    for number, item in enumerate(listed, start=1):
        with located(f"analysis {number}"):
            table = _table(item) if isinstance(item, str) else item
            analyses.append(read_analysis(table, schema))
    return tuple(analyses)


def as_tables(items: object) -> list[Mapping[str, object]]:
    """Take analyses as they are written, without a schema: texts or tables become tables."""
    return [_table(item) if isinstance(item, str) else item for item in _listed(items)]


def _listed(items: object) -> list[str | Mapping[str, object]]:
    listed = [items] if isinstance(items, str | Mapping) else items
    if not isinstance(listed, Sequence) or not all(isinstance(i, str | Mapping) for i in listed):
        raise InputError(
            "analysis: write [[analysis]] tables, with double brackets; in Python a list of texts "
            "or dicts"
        )
    return list(listed)


def _table(text: str) -> dict[str, object]:
    try:
        item: dict[str, object] = tomllib.loads(f"analysis = {{ {text} }}")["analysis"]
    except tomllib.TOMLDecodeError:
        raise InputError(
            f'analysis {text!r}: it cannot be read. Write it like mean = "income", by = ["sex"]'
        ) from None
    return item


def read_analysis(item: Mapping[str, object], schema: Schema) -> Analysis:
    """Read one analysis, and look its columns up in the schema."""
    kinds = [kind for kind in KINDS if kind in item]
    if len(kinds) != 1:
        raise InputError(f"give exactly one of {', '.join(KINDS)}")
    (kind,) = kinds
    if unknown := sorted(set(item) - {kind, "by"}):
        raise InputError(f"{unknown[0]!r} is no key of an analysis. Keys: {', '.join(KINDS)}, by")
    if "by" in item and kind not in _GROUPED:
        raise InputError(f"a {kind} has no groups. Leave `by` out")
    analysis = Analysis(kind, _READ[kind](item[kind]), _names(item.get("by", [])))
    check_columns(analysis, schema)
    return analysis


def check_columns(analysis: Analysis, schema: Schema) -> None:
    """Refuse an analysis of columns that the schema does not have, or that cannot be in it."""
    for columns in analysis.sets(schema):
        if len(columns) > MOST_COLUMNS:
            raise InputError(
                f"{analysis.words}: more than {MOST_COLUMNS} columns at once. Name fewer"
            )
    if analysis.kind == "survival" and analysis.of_events(schema):
        raise InputError(
            f"{analysis.words}: times are those of people, and it names a column of events. Name "
            "columns of people; `parley estimate --survival` has the time to a first event"
        )
    schema = schema.joined
    if analysis.kind in ("relation", "mean", "survival"):
        names = (*analysis.about, *analysis.by)
        if len(set(names)) < len(names):
            raise InputError(f"{analysis.words}: a column is there twice. Name it once")
    if analysis.kind in ("mean", "survival"):
        number = schema.attributes[schema.position(analysis.about[0])]
        if number.textual or number.kind in ("date", "datetime"):
            raise InputError(
                f"{analysis.words}: {number.name!r} has no numbers. Name another column"
            )
    if analysis.kind == "survival":
        event_code(schema.attributes[schema.position(analysis.about[1])])


def event_code(status: Attribute) -> int:
    """Return the code of the status that says the event was seen: the last of two values."""
    if status.value_count != 2:
        raise InputError(
            f"survival: {status.name!r} has {status.value_count} values. A status has two: the "
            "event was not seen, and it was"
        )
    return 1


def all_sets(analyses: Iterable[Analysis], schema: Schema) -> tuple[ColumnSet, ...]:
    """Return the sets that all analyses need together; a set inside of another is left out.

    A table with columns of events has no people without events: it does not replace one of people.
    """
    every = {columns for analysis in analyses for columns in analysis.sets(schema)}
    return maximal(every, events=0 if schema.events is None else len(schema.names) + 1)


def maximal(sets: Iterable[ColumnSet], *, events: int) -> tuple[ColumnSet, ...]:
    """Return the sets that no other of the same rows contains.

    `events` is the position of the first column of events, 0 without events.
    """
    every = set(sets)

    def inside(one: ColumnSet, other: ColumnSet) -> bool:
        return set(one) < set(other) and about_events(one, events) == about_events(other, events)

    return tuple(sorted(one for one in every if not any(inside(one, other) for other in every)))


def about_events(columns: ColumnSet, events: int) -> bool:
    """Return whether a set has a column of events, the first of which is at this position."""
    return bool(events) and max(columns) >= events


def _positions(names: Iterable[str], schema: Schema) -> ColumnSet:
    return tuple(sorted({schema.joined.position(name) for name in names}))


def _names(value: object) -> tuple[str, ...]:
    """Return one name or several; InputError if they are none."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{value!r}: write a name, or a list of names")
    return tuple(cast(Sequence[str], listed))


def _one(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{value!r}: write one text")
    return (value,)


def _several(value: object) -> tuple[str, ...]:
    names = _names(value)
    if len(names) < 2:
        raise InputError(f"{value!r}: name two columns or more")
    return names


def _time_and_status(value: object) -> tuple[str, ...]:
    names = _names(value)
    if len(names) != 2:
        raise InputError(f"{value!r}: name two columns, the time and the status")
    return names


_READ: Mapping[Kind, Callable[[object], tuple[str, ...]]] = {
    "relation": _several,
    "mean": _one,
    "share": _one,
    "regression": _one,
    "survival": _time_and_status,
}
