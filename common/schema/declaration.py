"""schema.toml: reading it with errors that name the file and the attribute, and writing it.

    [[attribute]]
    name = "age"
    kind = "integer"            # categorical | ordinal | integer | real | boolean | date | datetime
    min = 17                    # the public range; TOML dates for date and datetime
    max = 90
    bins = 16                   # equal bins (default 16, or one per whole number if fewer) ...
    # edges = [17, 30, 65, 90]  # ... or listed edges instead of bins (min and max: optional)
    clip = true                 # numbers outside count as the nearest end; default: refuse
    # heaps = [40]              # numbers that many rows have: each is a bin of its own
    # decimals = 2              # kind real: of the numbers drawn; default: what the bins need

    [[attribute]]
    name = "workclass"
    kind = "categorical"        # ordinal: the same, in order
    values = ["Private", "Self-employed", "Federal", "State", "Local"]
    missing = true              # an explicit category for empty cells; default: refuse
    # missing = ["N", -9]       # the same, and cells that hold one of these codes count as empty
    other = true                # an explicit category for values outside; default: refuse
    hierarchy = { Private = ["Private", "Self-employed"], State = ["Federal", "State", "Local"] }
    # frequencies = [70, 11, 3, 4, 6]  # of the values in public; whole numbers, any total

A hierarchy is made of tables (named groups) and arrays (their members), nested to any depth; its
leaves are the values, each exactly once. For bins the leaves are the numbers of the bins, 0 first.
Columns that are no attribute are not read, and need no mention. A top-level `ignore = ["id"]` may
name some, so that none of them becomes an attribute by mistake.
[[rule]] tables say what cannot occur together in a row; docs/your-table.md has their forms.
[events], [[events.attribute]] and [[events.rule]] declare a second table, of each person's events
(`common.schema.events`). Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from common.errors import InputError, located
from common.schema.attribute import (
    BINNED_KINDS,
    BOOLEANS,
    KINDS,
    Attribute,
    Domain,
    Listed,
    from_number,
    to_number,
)
from common.schema.binning import Binning
from common.schema.events import Events, read_events
from common.schema.hierarchy import Node, leaf
from common.schema.limits import (
    MOST_ATTRIBUTE_NAME,
    MOST_ATTRIBUTES,
    MOST_MISSING_CODES,
    MOST_VALUE,
    MOST_VALUES,
    check_most,
    check_name,
)
from common.schema.rules import Rule, read_rules
from common.schema.toml import (
    Parser,
    anything,
    parse_toml,
    read_table,
    refuse_unknown,
    suggest,
    toml,
    toml_lines,
    yes_or_no,
)

MOST_FREQUENCY = 10**12
MAX_DEPTH = 100  # nesting of a hierarchy


class Declared(NamedTuple):
    """What a schema file declares."""

    attributes: tuple[Attribute, ...]
    ignore: tuple[str, ...]
    rules: tuple[Rule, ...]
    events: Events | None


def parse(text: str) -> Declared:
    try:
        return read(parse_toml(text))
    except (ValueError, OverflowError):
        raise InputError("not valid: a number is out of every range") from None


def read(document: Mapping[str, Any]) -> Declared:
    """Read attributes, ignored columns, rules and events; errors name the attribute."""
    refuse_unknown(document, ("attribute", "ignore", "rule", "events"))
    ignore = document.get("ignore", [])
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise InputError('ignore: must be a list of column names, such as ["id"]')
    attributes, events = _attributes(document.get("attribute", [])), None
    if "events" in document:
        entries = read_events(document["events"])
        with located("events"):
            tables = _attributes(entries.pop("attribute"))
            rules = read_rules(entries.pop("rule", []))
        events = Events(attributes=tables, rules=rules, **entries)
    return Declared(attributes, tuple(ignore), read_rules(document.get("rule", [])), events)


def _attributes(tables: object) -> tuple[Attribute, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError("attributes are written as [[attribute]] tables, with double brackets")
    check_most("attributes of a schema", len(tables), most=MOST_ATTRIBUTES)
    attributes, values = [], 0
    for number, table in enumerate(tables, start=1):
        attributes.append(_attribute(table, number))
        values += attributes[-1].size
        check_most("values of all attributes together", values, most=MOST_VALUES)
    return tuple(attributes)


def _attribute(table: Mapping[str, Any], number: int) -> Attribute:
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f'attribute {number}: name: a text is needed, such as name = "age"')
    with located(f"attribute {number}"):
        check_name(name, most=MOST_ATTRIBUTE_NAME)
    with located(f"attribute {name!r}"):
        kind = table.get("kind")
        if kind not in KINDS:
            raise InputError(
                f"kind: {'missing' if kind is None else repr(kind)}; "
                f"must be one of {', '.join(KINDS)}{suggest(kind, KINDS)}"
            )
        if kind == "boolean" and "values" in table:
            raise InputError("values: a boolean has false and true, nothing to list")
        binned = kind in BINNED_KINDS
        entries = read_table(table, _BINNED if binned else _LISTED)
        missing = entries.get("missing", False)
        domain = _binning(kind, entries) if binned else _listed(kind, entries)
        return Attribute(
            name=name,
            kind=kind,
            domain=domain,
            missing=bool(missing),
            missing_codes=missing if isinstance(missing, tuple) else (),
            other=entries.get("other", False),
            clip=entries.get("clip", False),
            tree=_tree(table["hierarchy"], _leaf_codes(domain)) if "hierarchy" in table else None,
            frequencies=entries.get("frequencies", ()),
        )


def _missing(declared: object) -> bool | tuple[str, ...]:
    """Take whether cells may be empty, or the codes that count as empty, too."""
    if not isinstance(declared, list):
        return yes_or_no(declared)
    for code in declared:
        if type(code) not in (str, int) or code == "":
            raise InputError(f"{code!r} is neither a text nor a whole number")
    codes = tuple(str(code) for code in declared)
    if not codes or len(set(codes)) < len(codes):
        raise InputError('list every code once, such as ["N", -9], or write true')
    check_most("codes", len(codes), most=MOST_MISSING_CODES)
    for code in codes:
        check_most("characters of a code", len(code), most=MOST_VALUE)
    return codes


def _frequencies(declared: object) -> tuple[int, ...]:
    known = isinstance(declared, list) and all(type(number) is int for number in declared)
    if not isinstance(declared, list) or not known or min(declared, default=0) < 0:
        raise InputError("expected whole numbers from 0 on, in the order of the values")
    check_most("the largest", max(declared, default=0), most=MOST_FREQUENCY)
    return tuple(declared)


def _values(declared: object) -> tuple[str | int, ...]:
    if not isinstance(declared, list):
        raise InputError(f"expected a list, such as ['a', 'b'], got {declared!r:.100}")
    for value in declared:
        if type(value) not in (str, int):
            raise InputError(f"{value!r} is neither a string nor an integer")
        if isinstance(value, str):
            check_most("characters of a value", len(value), most=MOST_VALUE)
        if value == "":
            raise InputError("an empty cell is not a value. Write missing = true instead")
        if isinstance(value, int) and abs(value) > 1 << 53:
            raise InputError(f"{value} passes 2^53. Write it as a string")
    return tuple(declared)


def _whole(declared: object) -> int:
    if type(declared) is not int:
        raise InputError(f"must be a whole number, not {declared!r}")
    return declared


_COMMON: Mapping[str, Parser] = {
    **dict.fromkeys(("name", "kind", "hierarchy"), anything),
    "missing": _missing,
    "other": yes_or_no,
}
_LISTED = {**_COMMON, "values": _values, "frequencies": _frequencies}
_BINNED = {
    **_COMMON,
    **dict.fromkeys(("min", "max", "edges", "heaps"), anything),
    **dict.fromkeys(("bins", "decimals"), _whole),
    "clip": yes_or_no,
}


def _listed(kind: str, entries: Mapping[str, Any]) -> Listed:
    if kind == "boolean":
        return BOOLEANS
    if not entries.get("values"):
        raise InputError(
            f"values: a {kind} attribute lists its values, such as values = ['a', 'b']"
        )
    return Listed(entries["values"])


def _binning(kind: str, entries: Mapping[str, Any]) -> Binning:
    whole = kind != "real"
    if "edges" in entries:
        binning = Binning.from_edges(_edges(kind, entries), whole=whole)
    else:
        for key in ("min", "max"):
            if key not in entries:
                raise InputError(f"{key}: missing. Write the public range, min and max or edges")
        low, high = (_number(kind, key, entries[key]) for key in ("min", "max"))
        binning = Binning.equal_width(low, high, entries.get("bins"), whole=whole)
    if "decimals" in entries:
        binning = binning.with_decimals(entries["decimals"])
    if "heaps" not in entries:
        return binning
    if not isinstance(entries["heaps"], list):
        raise InputError("heaps: must be a list of numbers, such as [0, 40]")
    return binning.with_heaps([_number(kind, "heaps", heap) for heap in entries["heaps"]])


def _edges(kind: str, entries: Mapping[str, Any]) -> list[float]:
    """Return the listed edges; min and max may repeat the outer two, or add them."""
    if "bins" in entries:
        raise InputError("edges: they say where the bins are. Leave bins out")
    if not isinstance(entries["edges"], list) or not entries["edges"]:
        raise InputError("edges: must be a list")
    edges = [_number(kind, "edges", edge) for edge in entries["edges"]]
    low = _number(kind, "min", entries["min"]) if "min" in entries else edges[0]
    high = _number(kind, "max", entries["max"]) if "max" in entries else edges[-1]
    if low > edges[0] or high < edges[-1]:
        raise InputError(f"edges: {entries['edges']} leave the range from min to max")
    return [low] * (low < edges[0]) + edges + [high] * (high > edges[-1])


def _number(kind: str, key: str, value: object) -> float:
    with located(key):
        return to_number(kind, value)


def _leaf_codes(domain: Domain) -> dict[str | int, int]:
    values: Sequence[str | int] = (
        domain.values if isinstance(domain, Listed) else range(domain.count)
    )
    return {value: code for code, value in enumerate(values)}


def _tree(declared: object, codes: Mapping[str | int, int]) -> Node:
    """Return the declared groups as a tree over codes; every value must be there, once."""
    if not isinstance(declared, dict | list):
        raise InputError("hierarchy: must be a table of groups, such as { North = ['a', 'b'] }")
    grouped: set[int] = set()
    tree = _node("", declared, codes, grouped, depth=0)
    absent = [repr(value) for value, code in codes.items() if code not in grouped]
    if absent:
        more = ", ..." if len(absent) > 5 else ""
        raise InputError(f"hierarchy: no group has the value {', '.join(absent[:5])}{more}")
    return tree


def _node(
    label: str, declared: object, codes: Mapping[str | int, int], grouped: set[int], depth: int
) -> Node:
    if depth > MAX_DEPTH:
        raise InputError(f"hierarchy: nested more than {MAX_DEPTH} deep")
    if isinstance(declared, dict | list):
        members: Iterable[tuple[str, object]]
        members = declared.items() if isinstance(declared, dict) else (("", m) for m in declared)
        children = tuple(_node(key, member, codes, grouped, depth + 1) for key, member in members)
        if not children:
            raise InputError(f"hierarchy: the group {label!r} is empty")
        return Node(label or _joined(children), children)
    # True == 1 in Python, and must not pass for the value 1.
    code = None if isinstance(declared, bool) else codes.get(declared)  # type: ignore[call-overload]
    if code is None:
        raise InputError(
            f"hierarchy: {declared!r} is not a value of the attribute"
            f"{suggest(declared, [str(value) for value in codes])}"
        )
    if code in grouped:
        raise InputError(f"hierarchy: the value {declared!r} is in two groups")
    grouped.add(code)
    return leaf(str(declared), code)


def write(
    attributes: Sequence[Attribute],
    ignore: Sequence[str],
    rules: Sequence[Rule],
    events: Events | None = None,
) -> str:
    """Return a text that `parse` reads back; equal schemas give equal texts."""
    blocks = [f"ignore = {toml(list(ignore))}\n"] if ignore else []
    blocks += [_block(attribute) for attribute in attributes]
    blocks += [_rule_block(rule) for rule in rules]
    if events is not None:
        blocks.append("\n".join([*toml_lines(events.entries, header="[events]"), ""]))
        blocks += [_block(attribute, "[[events.attribute]]") for attribute in events.attributes]
        blocks += [_rule_block(rule, "[[events.rule]]") for rule in events.rules]
    return "\n".join(blocks)


def _block(attribute: Attribute, header: str = "[[attribute]]") -> str:
    domain = attribute.domain
    entries: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    if isinstance(domain, Binning):
        entries |= _binned(attribute.kind, domain.around or domain)
        if domain.heaps:
            entries["heaps"] = [from_number(attribute.kind, heap) for heap in domain.heaps]
    elif attribute.kind != "boolean":
        entries["values"] = list(domain.values)
    for flag in ("missing", "other", "clip"):
        if getattr(attribute, flag):
            entries[flag] = True
    if attribute.missing_codes:
        entries["missing"] = list(attribute.missing_codes)
    if attribute.tree is not None:
        entries["hierarchy"] = _declared(attribute.tree, domain)
    if attribute.frequencies:
        entries["frequencies"] = list(attribute.frequencies)
    return "\n".join([*toml_lines(entries, header=header), ""])


def _binned(kind: str, domain: Binning) -> dict[str, Any]:
    entries: dict[str, Any] = {"edges": [from_number(kind, edge) for edge in domain.edges]}
    if domain.equal:
        low, high = (from_number(kind, end) for end in (domain.low, domain.high))
        entries = {"min": low, "max": high, "bins": domain.count}
    return entries if domain.decimals is None else {**entries, "decimals": domain.decimals}


def _rule_block(rule: Rule, header: str = "[[rule]]") -> str:
    entries: dict[str, object] = dict(rule.texts)
    if rule.values:
        entries["values"] = {name: list(values) for name, values in rule.values}
    return "\n".join([*toml_lines(entries, header=header), ""])


def _declared(node: Node, domain: Domain) -> Any:  # noqa: ANN401  (nested TOML)
    """Return a tree as nested tables and arrays; a group is named where its name is its own."""
    if node.code is not None:
        return domain.values[node.code] if isinstance(domain, Listed) else node.code
    named = [
        bool(child.children) and child.label != _joined(child.children) for child in node.children
    ]
    members = [(child.label, _declared(child, domain)) for child in node.children]
    if all(named) and len(dict(members)) == len(members):
        return dict(members)
    return [
        {label: member} if by_name else member
        for (label, member), by_name in zip(members, named, strict=True)
    ]


def _joined(nodes: Iterable[Node]) -> str:
    return " | ".join(node.label for node in nodes)
