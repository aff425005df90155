"""`parley schema`: propose a schema from a table, or check a written one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.release import folder as release
from common.schema import Schema
from common.schema.dictionary import read_dictionary, with_frequencies
from common.schema.encoder import describe
from common.tables import read_table
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
        typer.Option(help="A public data dictionary, CSV; instead of a table, which is not read."),
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
    delimiter: options.Delimiter = None,
    sheet: options.Sheet = "",
    overwrite: options.Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Propose a schema for a table, for its owner to review.

    The proposal is NOT private: its values and ranges were read off the data. From a data
    dictionary it takes values, ranges and rules, and reads no row.
    """
    if out is not None:
        release.check_file(out, overwrite=overwrite)
    if (data is None) == (dictionary is None):
        raise InputError("schema infer: name a table, or a --dictionary, and not both")
    if dictionary is not None:
        proposal = read_dictionary(dictionary)
    elif data is not None:
        table = read_table(data, delimiter=options.delimiter_of(delimiter), sheet=sheet)
        proposal = Schema.infer(table.data, missing=missing or (), labels=table.labels)
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
