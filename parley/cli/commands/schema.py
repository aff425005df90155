"""`parley schema`: propose a schema from a table, or check a written one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import folder as release
from common.schema import Codes, Schema
from common.schema.attribute import Attribute
from common.schema.dictionary import read_dictionary, with_drafted, with_frequencies
from common.schema.encoder import describe
from common.schema.schema import Proposal
from common.schema.toml import text_of
from common.tables import TableFile
from common.wording import many
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.linked_tables import EventsFile
from parley.cli.result import FOR_PEOPLE, Result, command
from party.settings import party_settings, source_settings

LOUD = """\
==============================================================================
  NOT PRIVATE YET. The values and ranges in this schema were READ OFF THE DATA.
  A schema is published with the release. Replace every value and range by
  public knowledge (a code book, a range that holds for every person) before you
  share the schema or use it. No noise protects what stands in it.
=============================================================================="""

app = new_app("Propose a schema from a table, or check one.")


@dataclass(frozen=True)
class Proposed(Result):
    """A schema to review."""

    private: bool
    notes: tuple[str, ...]
    schema: str
    out: Path | None
    table: Path | None = field(metadata=FOR_PEOPLE)

    def lines(self) -> Iterator[str]:
        if self.out is None:
            yield self.schema.rstrip("\n")

    def warnings(self) -> list[str]:
        return [] if self.private else [LOUD]

    def remarks(self) -> list[str]:
        check = f"`parley schema check {self.out} {self.table or 'TABLE'}`"
        written = f"written: {self.out}; review it, then run {check}"
        return [f"* {note}" for note in self.notes] + ([] if self.out is None else [written])


@dataclass(frozen=True)
class Weighed(Result):
    """A schema with public frequencies."""

    out: Path
    digest: str

    def lines(self) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class CheckedAttribute:
    """One column of a schema."""

    name: str
    kind: str
    size: int
    labels: tuple[str, ...]


@dataclass(frozen=True)
class CheckedSchema(Result):
    """A schema, and a table that fits it, if there is one."""

    digest: str
    attributes: tuple[CheckedAttribute, ...]
    rules: tuple[str, ...]
    rows: int | None
    rows_that_break_each_rule: tuple[int, ...]
    events: tuple[CheckedAttribute, ...]
    joined: str  # what became of the events in their table
    schema: Schema = field(metadata=FOR_PEOPLE)
    table: Path | None = field(metadata=FOR_PEOPLE)

    def lines(self) -> Iterator[str]:
        yield from map(_line, self.schema.attributes)
        if (events := self.schema.events) is not None:
            order = f", in the order of {events.order!r}" if events.order else ""
            yield f"{events.name}: of a person, at most {events.most} count{order}"
            yield from (f"{events.name}: {_line(attribute)}" for attribute in events.attributes)
        for number, rule in enumerate(self.rules, start=1):
            yield f"rule {number}: {rule}"
        yield f"digest {self.digest}"
        if self.rows is None:
            return
        yield f"{self.table}: fits the schema, {many(self.rows, self.schema.row)}"
        for number, breaking in enumerate(self.rows_that_break_each_rule, start=1):
            if breaking:
                broke = f"{many(breaking, self.schema.row)} broke rule {number}"
                yield f"{self.table}: {broke}, counted as the nearest possible row"
        if self.joined:
            yield self.joined


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
) -> Proposed:
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
    return Proposed(proposal.public, proposal.notes, text, out, data)


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
) -> Weighed:
    """Add public frequencies of an attribute's values, for values too rare to be counted.

    They come from a catalogue or from published statistics, never from rows.
    """
    release.check_file(out, overwrite=overwrite)
    weighed = with_frequencies(Schema.load(schema), attribute, public)
    release.write_file(out, weighed.to_toml())
    console.note(f"written: {out}; comments of {schema} are not in it")
    return Weighed(out, weighed.digest())


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
) -> CheckedSchema:
    """Check a schema, and that a table fits it. Nothing is released; no budget is spent."""
    if data is not None and source is not None:
        raise InputError("schema check: name a table or a --source, not both")
    domains = Schema.load(schema)
    rows, broken, joined = None, list[int](), ""
    with console.progress("checking") as report:
        if data is not None:
            report(0.1, f"reading {data.name}")
            linked = second.linked(data, domains, reading)
            codes = (
                _encoded(data, domains.people, reading)
                if linked is None
                else linked.people.encode(domains.people.without_rules())
            )
            rows, broken = _fit(domains, [codes])
            joined = "" if linked is None else linked.joined(domains)
        elif source is not None:
            report(0.1, f"reading the source of {source.name}")
            owners = source_settings(party_settings(source, os.environ), source, os.environ)
            opened = owners.open(domains.without_rules())
            rows, broken = _fit(domains, opened.chunks())
            joined = "" if domains.events is None else opened.snapshot.note
    events = () if domains.events is None else _checked(domains.events.attributes)
    return CheckedSchema(
        digest=domains.digest(),
        attributes=_checked(domains.attributes),
        rules=tuple(map(str, domains.rules)),
        rows=rows,
        rows_that_break_each_rule=tuple(broken),
        events=events,
        joined=joined,
        schema=domains,
        table=data or source,
    )


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


def _fit(schema: Schema, parts: Iterable[Codes]) -> tuple[int, list[int]]:
    """Return how many rows there are, and how many break each rule."""
    rows, broken = 0, [0] * len(schema.rules)
    for codes in parts:
        rows += codes.rows
        broken = list(map(sum, zip(broken, schema.possible.broken(codes), strict=True)))
    return rows, broken


def _checked(attributes: Sequence[Attribute]) -> tuple[CheckedAttribute, ...]:
    return tuple(
        CheckedAttribute(attribute.name, attribute.kind, attribute.size, tuple(attribute.labels))
        for attribute in attributes
    )
