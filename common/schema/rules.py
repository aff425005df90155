"""Rules: what cannot occur together in a row, agreed with the schema before any row is read.

`common.schema.declaration` has the four forms of a rule; its conditions are in the language of
`common.schema.query`. A rule is public and part of the schema's digest; it comes from knowledge of
the subject, never from rows.

A row that breaks a rule is counted as the nearest possible one: the attribute that has to give way
(that of `then`, the last one of `impossible` and of `order`, the determined one) takes the nearest
value that is possible. The row that is counted depends on the row and the schema alone, so tables
that differ in one row still do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, located
from common.schema.attribute import Attribute, Domains, Listed
from common.schema.codes import Codes
from common.schema.conditions import CellWeights, CodeTest, Condition, cells_of, parse
from common.schema.hierarchy import Node
from common.schema.limits import MOST_RULE_CELLS, MOST_RULES, check_most
from common.schema.query import Join

Cells = NDArray[np.bool_]
Columns = Mapping[int, NDArray[Any]] | Sequence[NDArray[Any]]  # the codes of attributes
_FORMS = (("when", "then"), ("impossible",), ("order",), ("determined", "by"))
MOST_TRIED = 100_000  # steps of the search for a row that every rule allows
_BY_ONE = 1e6  # a changed attribute weighs more than any distance inside one


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as declared."""

    texts: tuple[tuple[str, str], ...]  # its keys and their texts, in the order of `_FORMS`
    # of a determined attribute: the values of the other one, by its own
    values: tuple[tuple[str, tuple[str | int, ...]], ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{key} {text}" for key, text in self.texts)


def read_rules(tables: object) -> tuple[Rule, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("rules are written as [[rule]] tables, with double brackets")
    check_most("rules of a schema", len(tables), most=MOST_RULES)
    rules = []
    for number, table in enumerate(tables, start=1):
        with located(f"rule {number}"):
            rules.append(_rule(table))
    return tuple(rules)


def _rule(table: Mapping[str, Any]) -> Rule:
    keys = set(table) - {"values"}
    form = next((form for form in _FORMS if set(form) == keys), None)
    if form is None or ("values" in table and "determined" not in table):
        raise InputError(
            "expected when and then, or impossible, or order, or determined and by (and values), "
            f"not {', '.join(table) or 'nothing'}"
        )
    for key in form:
        if not isinstance(table[key], str) or not table[key].strip():
            raise InputError(f"{key}: expected a text, not {table[key]!r:.100}")
    listed = table.get("values", {})
    if not isinstance(listed, dict) or not all(
        isinstance(values, list) and all(type(value) in (str, int) for value in values)
        for values in listed.values()
    ):
        raise InputError("values: expected lists, such as { North = ['a', 'b'] }")
    values = tuple((name, tuple(members)) for name, members in listed.items())
    return Rule(tuple((key, table[key]) for key in form), values)


@dataclass(frozen=True, eq=False, slots=True)
class PossibleCells:
    """One rule as a table."""

    rule: Rule  # as declared
    # the positions of the attributes that it is about; those that give way come last
    attributes: tuple[int, ...]
    giving_way: int  # how many give way
    table: Cells  # whether each of their cells is possible
    ordered: tuple[bool, ...]  # whether the values of each attribute have an order
    fixed: int = 0  # how many of the first attributes never change

    def holds(self, columns: Columns) -> Cells:
        possible: Cells = self.table[tuple(columns[a] for a in self.attributes)]
        return possible

    def nearest(self, cell: tuple[int, ...]) -> tuple[int, ...]:
        """Return the nearest possible cell: only what gives way changes, if that is possible."""
        first = cell[: len(cell) - self.giving_way]
        if not self.table[first].any():
            first = cell[: self.fixed]
        near = np.argwhere(self.table[first])
        near = np.hstack([np.tile(np.array(first, dtype=np.intp), (len(near), 1)), near])
        steps = np.abs(near - np.array(cell))
        shown = np.where(self.ordered, steps, 0)
        cost = (steps > 0).sum(axis=1) * _BY_ONE + shown.sum(axis=1)
        return tuple(near[int(cost.argmin())].tolist())


@dataclass(frozen=True, eq=False, slots=True)
class Possible:
    """All rules of a schema: which rows are possible."""

    rules: tuple[PossibleCells, ...]  # each as a table
    example: Mapping[int, int]  # a possible row: a code for each attribute that a rule is about

    @classmethod
    def of(cls, rules: Sequence[Rule], schema: Domains) -> Possible:
        """Make the tables of the rules of a schema; refuse rules that no row satisfies."""
        tables = tables_of(rules, schema)
        return cls(tuple(tables), example_of(tables, schema.sizes))

    @property
    def attributes(self) -> tuple[int, ...]:
        return tuple(sorted(self.example))

    def weights(self) -> list[CellWeights]:
        """Return the rules as weights of cells: 0 for those that are impossible."""
        return [CellWeights(rule.attributes, rule.table.astype(np.float64)) for rule in self.rules]

    def holds(self, codes: Codes) -> Cells:
        inside = np.ones(codes.rows, dtype=np.bool_)
        for rule in self.rules:
            inside &= rule.holds(codes.columns)
        return inside

    def broken(self, codes: Codes) -> list[int]:
        """Count the rows that break each rule. Only the owner of the rows may see the counts."""
        return [int(codes.rows - rule.holds(codes.columns).sum()) for rule in self.rules]

    def repaired(self, codes: Codes) -> Codes:
        """Return the rows, each that breaks a rule replaced by the nearest possible one.

        Rules are applied in turn until all hold. A row for which that does not end, because one
        rule undoes what another did, takes the values of `example`.
        """
        bad = np.flatnonzero(~self.holds(codes))
        if not len(bad):
            return codes
        columns = {a: np.array(codes.columns[a][bad], dtype=np.intp) for a in self.example}
        stuck = repair(self.rules, columns)
        for attribute, code in self.example.items():
            columns[attribute][stuck] = code
        whole = [np.array(column) for column in codes.columns]
        for attribute in self.example:
            whole[attribute][bad] = columns[attribute]
        return Codes(tuple(whole), codes.sizes, places=codes.places)

    def swaps(self, codes: Codes) -> Iterator[tuple[int, int, Cells]]:
        """Yield pairs of attributes in order, and the rows in which both are in one bin.

        Numbers inside a bin are drawn independently, and exchanged where they come out in the wrong
        order. All pairs are repeated as often as there are pairs, so that chains come into order.
        """
        pairs = [rule.attributes for rule in self.rules if rule.rule.texts[0][0] == "order"]
        for first, second in pairs * len(pairs):
            yield first, second, codes.columns[first] == codes.columns[second]

    def mask(self, variables: Sequence[int], grouped: Sequence[bool]) -> Cells | None:
        """Tell which cells of a table of attributes are possible; None if all may be."""
        axis_of = {a: axis for axis, a in enumerate(variables) if not grouped[axis]}
        possible: Cells | None = None
        for rule in self.rules:
            if not set(rule.attributes) <= axis_of.keys():
                continue
            axes = [axis_of[a] for a in rule.attributes]
            order = np.argsort(axes)
            shape = [1] * len(variables)
            for place, axis in enumerate(axes):
                shape[axis] = rule.table.shape[place]
            table = rule.table.transpose(order).reshape(shape)
            possible = table if possible is None else possible & table
        return possible


def tables_of(rules: Sequence[Rule], schema: Domains) -> list[PossibleCells]:
    """Return rules as tables; refuse one that no row satisfies."""
    tables = []
    for number, rule in enumerate(rules, start=1):
        with located(f"rule {number}"):
            tables.append(_table(rule, schema))
            if not tables[-1].table.any():
                raise InputError("no row can satisfy it")
    cells = sum(rule.table.size for rule in tables)
    check_most("cells of the tables of all rules together", cells, most=8 * MOST_RULE_CELLS)
    return tables


def repair(rules: Sequence[PossibleCells], columns: Mapping[int, NDArray[np.intp]]) -> Cells:
    """Replace rows by the nearest possible ones, in place; return those that cannot be."""
    for _ in range(len(rules) + 1):
        if all(rule.holds(columns).all() for rule in rules):
            break
        for rule in rules:
            _repair(rule, columns)
    return np.asarray(~np.logical_and.reduce([rule.holds(columns) for rule in rules]))


def _repair(rule: PossibleCells, columns: Mapping[int, NDArray[np.intp]]) -> None:
    """Replace cells that break one rule, in place."""
    bad = np.flatnonzero(~rule.holds(columns))
    if not len(bad):
        return
    cells = np.stack([columns[a][bad] for a in rule.attributes], axis=1)
    kinds, which = np.unique(cells, axis=0, return_inverse=True)
    nearest = np.array([rule.nearest(tuple(kind.tolist())) for kind in kinds], dtype=np.intp)
    for place, attribute in enumerate(rule.attributes):
        columns[attribute][bad] = nearest[which.reshape(-1), place]


def example_of(
    tables: Sequence[PossibleCells], sizes: Sequence[int], most: int = MOST_TRIED
) -> dict[int, int]:
    """Find a row that every rule allows, by depth-first search in the order of the schema."""
    about = sorted({a for rule in tables for a in rule.attributes})
    ends = {a: [t for t in tables if max(t.attributes) == a] for a in about}
    row: dict[int, int] = {}
    attempts, code = 0, 0
    while len(row) < len(about):
        attempts += 1
        a = about[len(row)]
        free = np.ones(sizes[a], dtype=np.bool_)
        free[:code] = False
        for rule in ends[a]:
            free &= rule.table[tuple(row.get(b, slice(None)) for b in rule.attributes)]
        if free.any():
            row[a], code = int(free.argmax()), 0
        elif not row or attempts > most:
            raise InputError("rules: no row was found that satisfies all of them. Leave one out")
        else:
            code = row.popitem()[1] + 1
    return row


def _table(rule: Rule, schema: Domains) -> PossibleCells:
    texts = dict(rule.texts)
    if "when" in texts:
        when, then = (_condition(texts[key], schema) for key in ("when", "then"))
        holds = Join((_not(when), then.root), every=False)
        return _possible_cells(rule, schema, *cells_of(holds, schema.sizes), then.attributes)
    if "impossible" in texts:
        condition = _condition(texts["impossible"], schema)
        giving_way = max(condition.attributes, key=texts["impossible"].rfind)
        return _possible_cells(rule, schema, *cells_of(_not(condition), schema.sizes), [giving_way])
    if "order" in texts:
        return _order(rule, texts["order"], schema)
    return _determined(rule, texts["determined"], texts["by"], schema)


def _condition(text: str, schema: Domains) -> Condition:
    condition = parse(text, schema)
    if cells_of(condition.root, schema.sizes)[1].all():
        raise InputError(f"{text!r}: every row satisfies it")
    return condition


def _not(condition: Condition) -> Join[CodeTest]:
    return Join((condition.root,), every=True, negated=True)


def _possible_cells(
    rule: Rule,
    schema: Domains,
    attributes: Sequence[int],
    table: NDArray[Any],
    giving_way: Iterable[str],
) -> PossibleCells:
    """Return a rule as a table with an axis for each attribute, those that give way last."""
    last = [schema.position(name) for name in giving_way]
    axes = (*(a for a in attributes if a not in last), *last)
    order = [attributes.index(a) for a in axes]
    ordered = tuple(schema.attributes[a].ordered for a in axes)
    return PossibleCells(rule, axes, len(last), np.array(table.transpose(order), np.bool_), ordered)


def _order(rule: Rule, text: str, schema: Domains) -> PossibleCells:
    names = [part.strip().strip("'\"") for part in text.split("<=")]
    if len(names) != 2:
        raise InputError(f'order: expected two attributes, such as "start <= end", not {text!r}')
    places, (one, other) = _pair(names, schema)
    if one is other or not one.ordered or one.kind != other.kind or one.domain != other.domain:
        raise InputError(
            f"order: {one.name!r} and {other.name!r} are compared by their bins or listed values: "
            "give both attributes the same ones, in order"
        )
    possible = np.less_equal.outer(np.arange(one.size), np.arange(other.size))
    top = one.value_count  # empty cells and other values are in no order
    possible[top:] = possible[:, top:] = True
    return _possible_cells(rule, schema, places, possible, [other.name])


def _determined(rule: Rule, name: str, by: str, schema: Domains) -> PossibleCells:
    places, (other, target) = _pair((by, name), schema)
    if (
        target is other
        or not isinstance(target.domain, Listed)
        or not isinstance(other.domain, Listed)
    ):
        raise InputError(f"determined: {name!r} and {by!r} are two attributes with listed values")
    code_for = np.full(other.size, -1)
    labels = {label: code for code, label in enumerate(target.labels)}
    members = _listed_codes(rule, other) if rule.values else _group_codes(other.tree)
    for label, codes in members.items():
        if label in labels:
            code_for[codes] = labels[label]
        elif rule.values:
            raise InputError(f"values: {name!r} has no value {label!r}")
    if (code_for[: other.value_count] < 0).any():
        at = int(np.flatnonzero(code_for < 0)[0])
        raise InputError(f"determined: nothing says what {name!r} is for {other.labels[at]!r}")
    possible = (code_for[:, None] == np.arange(target.size)) | (code_for[:, None] < 0)
    return _possible_cells(rule, schema, places, possible, [name])


def _pair(
    names: Iterable[str], schema: Domains
) -> tuple[tuple[int, int], tuple[Attribute, Attribute]]:
    """Return two attributes and their positions, if a table of both is not too large."""
    first, second = (schema.position(name) for name in names)
    one, other = schema.attributes[first], schema.attributes[second]
    check_most("cells of the table of its attributes", one.size * other.size, most=MOST_RULE_CELLS)
    return (first, second), (one, other)


def _listed_codes(rule: Rule, attribute: Attribute) -> dict[str, list[int]]:
    """Return the codes that a rule lists for each value of the determined attribute."""
    places = {label: code for code, label in enumerate(attribute.labels)}
    for member in (str(value) for _, members in rule.values for value in members):
        if member not in places:
            raise InputError(f"values: {attribute.name!r} has no value {member!r}")
    return {label: [places[str(value)] for value in members] for label, members in rule.values}


def _group_codes(tree: Node | None) -> dict[str, list[int]]:
    if tree is None:
        raise InputError("determined: give the other attribute a hierarchy, or list the values")
    codes_by_group: dict[str, list[int]] = {}
    for child in tree.children:
        if not child.is_leaf:
            codes_by_group |= _group_codes(child)
            codes_by_group[child.label] = child.codes()
    return codes_by_group
