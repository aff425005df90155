"""`parley schema`: propose a schema from a table, or check a written one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import folder as release
from common.schema import Codes, Schema
from common.schema.attribute import Attribute
from common.schema.dictionary import read_dictionary, with_drafted, with_frequencies
from common.schema.encoder import describe
from common.schema.linked import LinkedCodes, breaking_events
from common.schema.schema import Proposal
from common.schema.toml import text_of
from common.tables import TableFile
from common.wording import many
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.linked_tables import EventsFile
from parley.cli.result import Result, command
from party.settings import party_settings, source_settings

LOUD = """\
==============================================================================
  NOT PRIVATE YET. The values and ranges in this schema were READ OFF THE DATA.
  A schema is published with the release. Replace every value and range by
  public knowledge (a code book, a range that holds for every person) before you
  share the schema or use it. No noise protects what stands in it.
=============================================================================="""

app = new_app("Propose a schema from a table, or check one.")


def _line(attribute: Attribute) -> str:
    extras = {"other": attribute.other, "missing": attribute.missing}
    tail = "".join(f" + {word}" for word, there in extras.items() if there)
    return (
        f"{attribute.name}: {attribute.kind}, {attribute.size:,} codes, {describe(attribute)}{tail}"
    )


@command(app)
def infer(
    data: Annotated[
        Path | None, typer.Argument(help="The table: CSV, Parquet, Excel, SPSS, Stata or SAS.")
    ] = None,
    *,
    dictionary: Annotated[
        Path | None,
        typer.Option(help="A public data dictionary, CSV. Without a table, no row is read."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the schema here instead of to standard output.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="A code that stands for an empty cell, such as N or -9; repeatable.",
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=FILE",
            help="A public list of a column's values, one a line; repeatable.",
        ),
    ] = None,
    reading: options.Reading,
    second: EventsFile,
    overwrite: options.Overwrite = False,
) -> Result:
    """Propose a schema for a table, for its owner to review.

    The proposal is NOT private: its values and ranges were read off the data. Names, identifiers,
    addresses and free text are left out, and so are values that few rows have. From a data
    dictionary it takes values, ranges and rules; a table adds what the dictionary lacks. With
    --events and --person it proposes people and their events.
    """
    if out is not None:
        release.check_file(out, overwrite=overwrite)
    if data is None and dictionary is None:
        raise InputError("schema infer: name a table, a --dictionary, or both")
    if data is not None:
        proposal = _of_tables(
            data, second, reading, dictionary,
            missing=missing or (), public=dict(map(_public_list, public or ())),
        )  # fmt: skip
    elif dictionary is not None:
        proposal = read_dictionary(dictionary)
    text = proposal.to_toml()
    if out is not None:
        release.write_file(out, text)
    check = f"`parley schema check {out} {data or 'TABLE'}`"
    written = [] if out is None else [f"written: {out}; review it, then run {check}"]
    return Result(
        {"private": proposal.public, "notes": proposal.notes, "schema": text, "out": out},
        [text.rstrip("\n")] if out is None else (),
        warnings=() if proposal.public else [LOUD],
        remarks=[*(f"* {note}" for note in proposal.notes), *written],
    )


def _of_tables(
    data: Path,
    second: EventsFile,
    reading: options.Reading,
    dictionary: Path | None,
    *,
    missing: Sequence[str],
    public: Mapping[str, Sequence[str]],
) -> Proposal:
    """Propose the schema of a table, or of people and their events."""
    table = reading.table(data)
    if second.events is None:
        second.check(linked=False)
        return _of_table(table, dictionary, missing=missing, public=public)
    events = replace(reading, sheet=second.events_sheet).table(second.events)
    drafts = []
    for file in (table, events):
        names = file.data.column_names
        if second.person not in names:
            raise InputError(
                f"{file.path}: there is no column {second.person!r}. Name the column that says, in "
                "both tables, whose row it is with --person"
            )
        values_here = {name: values for name, values in public.items() if name in names}
        drafts.append(
            _of_table(file, dictionary, missing=missing, public=values_here, person=second.person)
        )
    return drafts[0].with_events(drafts[1], called=second.events_sheet or second.events.stem)


def _of_table(
    table: TableFile,
    dictionary: Path | None,
    *,
    missing: Sequence[str],
    public: Mapping[str, Sequence[str]],
    person: str = "",
) -> Proposal:
    """Propose a table's schema, of columns in a dictionary by the dictionary."""
    names = [name for name in table.data.column_names if name != person]
    unknown = sorted(set(public) - set(names))
    if unknown:
        raise InputError(f"--public {unknown[0]}: the table has no such column")
    described = None if dictionary is None else read_dictionary(dictionary, names)
    left = [name for name in names if described is None or name not in described.schema.names]
    if described is not None and not left:
        return described
    drafted = Schema.infer(
        table.data.select([*left, person] if person else left),
        missing=missing, labels=table.labels, public=public, person=person,
    )  # fmt: skip
    return drafted if described is None else with_drafted(described, drafted)


def _public_list(written: str) -> tuple[str, list[str]]:
    column, _, file = written.partition("=")
    if not column or not file:
        raise InputError(f"--public {written!r}: expected COLUMN=FILE, as city=cities.txt")
    lines = text_of(Path(file)).removeprefix("\ufeff").splitlines()
    return column, list(dict.fromkeys(line.strip() for line in lines if line.strip()))


@command(app)
def frequencies(
    schema: Annotated[Path, typer.Argument(help="The schema (schema.toml).")],
    attribute: Annotated[str, typer.Argument(help="An attribute that lists its values.")],
    public: Annotated[
        Path, typer.Argument(help="A PUBLIC file of values and whole numbers: CSV with a header.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Write the schema here.")],
    overwrite: options.Overwrite = False,
) -> Result:
    """Add public frequencies of an attribute's values, for values too rare to be counted.

    They come from a catalogue or from published statistics, never from rows.
    """
    release.check_file(out, overwrite=overwrite)
    weighed = with_frequencies(Schema.load(schema), attribute, public)
    release.write_file(out, weighed.to_toml())
    console.note(f"written: {out}; comments of {schema} are not in it")
    return Result({"out": out, "digest": weighed.digest()}, ())


@command(app)
def check(
    schema: Annotated[Path, typer.Argument(help="The schema (schema.toml).")],
    data: Annotated[Path | None, typer.Argument(help="A table that should fit it.")] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option(help="A party.toml: check its [source] instead, with its names and codes."),
    ] = None,
    reading: options.Reading,
    second: EventsFile,
) -> Result:
    """Check a schema, and that a table fits it. Nothing is released; no budget is spent."""
    if data is not None and source is not None:
        raise InputError("schema check: name a table or a --source, not both")
    domains = Schema.load(schema)
    rows, broken, of_events, joined = None, list[int](), list[int](), ""
    with console.progress("checking") as report:
        if data is not None:
            report(0.1, f"reading {data.name}")
            linked = second.linked(data, domains, reading)
            if linked is None:
                codes = _encoded(data, domains.people, reading)
            else:
                codes = both = linked.encode(domains.without_rules())
                joined = linked.joined(both)
            rows, broken, of_events = _fit(domains, [codes])
        elif source is not None:
            report(0.1, f"reading the source of {source.name}")
            owners = source_settings(party_settings(source, os.environ), source, os.environ)
            opened = owners.open(domains.without_rules())
            rows, broken, of_events = _fit(domains, opened.chunks())
            joined = "" if domains.events is None else opened.snapshot.note
    declared = domains.events
    form = {
        "digest": domains.digest(),
        "attributes": _checked(domains.attributes),
        "rules": tuple(map(str, domains.rules)),
        "rows": rows,
        "rows_that_break_each_rule": broken,
        "events": [] if declared is None else _checked(declared.attributes),
        "rules_about_events": [] if declared is None else list(map(str, declared.rules)),
        "events_that_break_each_rule": of_events,
        "joined": joined,  # what became of the events in their table
    }
    lines = list(_schema_lines(domains))
    if rows is not None:
        lines.append(f"{data or source}: fits the schema, {many(rows, domains.row)}")
        lines += _broken_lines(str(data or source), domains.row, "row", broken)
    if declared is not None and joined:
        lines += [joined, *_broken_lines(declared.name, "event", "event", of_events)]
    return Result(form, lines)


def _schema_lines(schema: Schema) -> Iterator[str]:
    yield from map(_line, schema.attributes)
    if (events := schema.events) is not None:
        order = f", in the order of {events.order!r}" if events.order else ""
        yield f"{events.name}: of a person, at most {events.most} count{order}"
        yield from (f"{events.name}: {_line(attribute)}" for attribute in events.attributes)
    for number, rule in enumerate(schema.rules, start=1):
        yield f"rule {number}: {rule}"
    if events is not None:
        for number, rule in enumerate(events.rules, start=1):
            yield f"{events.name}: rule {number}: {rule}"
    yield f"digest {schema.digest()}"


def _broken_lines(where: str, row: str, nearest: str, broken: Sequence[int]) -> Iterator[str]:
    for number, breaking in enumerate(broken, start=1):
        if breaking:
            broke = f"{many(breaking, row)} broke rule {number}"
            yield f"{where}: {broke}, counted as the nearest possible {nearest}"


def _encoded(data: Path, schema: Schema, reading: options.Reading) -> Codes:
    try:
        return reading.table(data, schema).encode(schema.without_rules())
    except InputError as error:
        if set(schema.names) <= set(reading.table(data).data.column_names):
            raise
        raise InputError(
            f"{error}. An owner's other names and codes are mapped in party.toml: check with "
            "--source party.toml in place of the table"
        ) from None


def _fit(schema: Schema, parts: Iterable[Codes]) -> tuple[int, list[int], list[int]]:
    """Return how many rows there are, and how many rows and events break each rule."""
    rows, broken = 0, [0] * len(schema.rules)
    of_events = [0] * len(schema.possible_events.rules)
    for codes in parts:
        rows += codes.rows
        broken = list(map(sum, zip(broken, schema.possible.broken(codes), strict=True)))
        if isinstance(codes, LinkedCodes):
            breaking = (int(mask.sum()) for mask in breaking_events(schema, codes))
            of_events = list(map(sum, zip(of_events, breaking, strict=True)))
    return rows, broken, of_events


def _checked(attributes: Sequence[Attribute]) -> list[dict[str, object]]:
    return [
        {key: getattr(attribute, key) for key in ("name", "kind", "size", "labels")}
        for attribute in attributes
    ]
