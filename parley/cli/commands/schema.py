"""`parley schema`: propose a schema from a table, or check a written one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import folder as release
from common.schema import Schema
from common.schema.dictionary import read_dictionary, with_drafted, with_frequencies
from common.schema.encoder import describe
from common.schema.schema import Proposal
from common.schema.toml import text_of
from common.tables import TableFile, read_table
from common.wording import many
from parley.cli import console, options
from parley.cli.commands import new_app

LOUD = """\
==============================================================================
  NOT PRIVATE YET. The values and ranges in this schema were READ OFF THE DATA.
  A schema is published with the release. Replace every value and range by
  public knowledge (a code book, a range that holds for every person) before you
  share the schema or use it. No noise protects what stands in it.
=============================================================================="""

app = new_app("Propose a schema from a table, or check one.")


@app.command()
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
    delimiter: options.Delimiter = None,
    sheet: options.Sheet = "",
    overwrite: options.Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Propose a schema for a table, for its owner to review.

    The proposal is NOT private: its values and ranges were read off the data. Names, identifiers,
    addresses and free text are left out, and so are values that few rows have. From a data
    dictionary it takes values, ranges and rules; a table adds what the dictionary lacks.
    """
    if out is not None:
        release.check_file(out, overwrite=overwrite)
    if data is None and dictionary is None:
        raise InputError("schema infer: name a table, a --dictionary, or both")
    if data is not None:
        table = read_table(data, delimiter=options.delimiter_of(delimiter), sheet=sheet)
        proposal = _of_table(
            table, dictionary, missing=missing or (), public=dict(map(_public_list, public or ()))
        )
    elif dictionary is not None:
        proposal = read_dictionary(dictionary)
    text = proposal.to_toml()
    if out is not None:
        release.write_file(out, text)
    if json:
        console.result_json(
            {
                "private": proposal.public,
                "notes": list(proposal.notes),
                "schema": text,
                "out": None if out is None else str(out),
            }
        )
    elif out is None:
        console.result(text.rstrip("\n"))
    if not proposal.public:
        console.warn(LOUD)
    for note in proposal.notes:
        console.note(f"* {note}")
    if out is not None:
        console.note(
            f"written: {out}; review it, then run `parley schema check {out} {data or 'TABLE'}`"
        )


def _of_table(
    table: TableFile,
    dictionary: Path | None,
    *,
    missing: Sequence[str],
    public: Mapping[str, Sequence[str]],
) -> Proposal:
    """Propose a table's schema, of columns in a dictionary by the dictionary."""
    names = table.data.column_names
    unknown = sorted(set(public) - set(names))
    if unknown:
        raise InputError(f"--public {unknown[0]}: the table has no such column")
    described = None if dictionary is None else read_dictionary(dictionary, names)
    left = [name for name in names if described is None or name not in described.schema.names]
    if described is not None and not left:
        return described
    drafted = Schema.infer(
        table.data.select(left), missing=missing, labels=table.labels, public=public
    )
    return drafted if described is None else with_drafted(described, drafted)


def _public_list(written: str) -> tuple[str, list[str]]:
    column, _, file = written.partition("=")
    if not column or not file:
        raise InputError(f"--public {written!r}: expected COLUMN=FILE, as city=cities.txt")
    lines = text_of(Path(file)).removeprefix("\ufeff").splitlines()
    return column, list(dict.fromkeys(line.strip() for line in lines if line.strip()))


@app.command()
def frequencies(
    schema: Annotated[Path, typer.Argument(help="The schema (schema.toml).")],
    attribute: Annotated[str, typer.Argument(help="An attribute that lists its values.")],
    public: Annotated[
        Path, typer.Argument(help="A PUBLIC file of values and whole numbers: CSV with a header.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Write the schema here.")],
    overwrite: options.Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Add public frequencies of an attribute's values, for values too rare to be counted.

    They come from a catalogue or from published statistics, never from rows.
    """
    release.check_file(out, overwrite=overwrite)
    weighed = with_frequencies(Schema.load(schema), attribute, public)
    release.write_file(out, weighed.to_toml())
    if json:
        console.result_json({"out": str(out), "digest": weighed.digest()})
    console.note(f"written: {out}; comments of {schema} are not in it")


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="The schema (schema.toml).")],
    data: Annotated[Path | None, typer.Argument(help="A table that should fit it.")] = None,
    *,
    delimiter: options.Delimiter = None,
    sheet: options.Sheet = "",
    json: options.AsJson = False,
) -> None:
    """Check a schema, and that a table fits it. Nothing is released; no budget is spent."""
    domains = Schema.load(schema)
    rows, broken = None, list[int]()
    if data is not None:
        with console.progress("checking") as report:
            report(0.1, f"reading {data.name}")
            table = read_table(
                data, domains, delimiter=options.delimiter_of(delimiter), sheet=sheet
            )
            report(0.6, "encoding")
            codes = table.encode(domains.without_rules())
            rows, broken = codes.rows, domains.possible.broken(codes)
    if json:
        console.result_json(_as_json(domains, rows, broken))
        return
    for attribute in domains.attributes:
        extras = [
            word
            for word, there in (("other", attribute.other), ("missing", attribute.missing))
            if there
        ]
        tail = f" + {' + '.join(extras)}" if extras else ""
        console.result(
            f"{attribute.name}: {attribute.kind}, {attribute.size:,} codes, "
            f"{describe(attribute)}{tail}"
        )
    for number, rule in enumerate(domains.rules, start=1):
        console.result(f"rule {number}: {rule}")
    console.result(f"digest {domains.digest()}")
    if rows is not None:
        console.result(f"{data}: fits the schema, {many(rows, 'row')}")
        for number, breaking in enumerate(broken, start=1):
            if breaking:
                told = f"{many(breaking, 'row')} broke rule {number}"
                console.result(f"{data}: {told}, counted as the nearest possible row")


def _as_json(domains: Schema, rows: int | None, broken: Sequence[int]) -> dict[str, object]:
    return {
        "digest": domains.digest(),
        "attributes": [
            {"name": a.name, "kind": a.kind, "size": a.size, "labels": list(a.labels)}
            for a in domains.attributes
        ],
        "rules": [str(rule) for rule in domains.rules],
        "rows": rows,
        "rows_that_break_each_rule": list(broken),
    }
