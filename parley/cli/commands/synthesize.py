"""`parley synthesize`: a release folder from a table of one owner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from common.bayes.privbayes.decisions import MOST_CANDIDATE_CELLS, MOST_PARENT_SETS
from common.errors import InputError
from common.fitted.model import FittedModel
from common.release import folder as release
from common.release.manifest import SignerRole
from common.report.writing import Written, write_release
from common.tables import read_table
from common.wording import many
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.models.single_owner import PrivBayes, Privelet, Subn
from parley.reader.fitted import FittedStudy

app = new_app()
_BETA, _THETA = "0.3", "4"


_METHODS = {
    "subn+": "a network, the most accurate for most tables",
    "privbayes": "a network, with a choice of edges and scores",
    "privelet": "range counts, for few columns",
}


@app.command()
def synthesize(
    data: Annotated[
        Path, typer.Argument(help="The real table: CSV, Parquet, Excel, SPSS, Stata or SAS.")
    ],
    *,
    schema: options.SchemaFile,
    epsilon: Annotated[
        str,
        typer.Option(
            help="The privacy budget, spent exactly: 0.5, 1e-2 or 1/3.",
            callback=options.warned_of_large_epsilon,
        ),
    ],
    out: options.ReleaseFolder,
    delta: options.OwnersDelta = "0",
    method: Annotated[
        Literal["subn+", "privbayes", "privelet"] | None,
        options.one_of(_METHODS, default="subn+"),
    ] = None,
    rows: options.OutputRows = None,
    format: options.OutputFormat = "csv",  # noqa: A002
    encoding: Annotated[
        str | None,
        typer.Option(help="privbayes: binary, gray, vanilla or hierarchical. [default: by schema]"),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="privbayes: I, F or R. [default: F on bits, else R]")
    ] = None,
    beta: Annotated[str, typer.Option(help="privbayes: share of epsilon for the network.")] = _BETA,
    theta: Annotated[str, typer.Option(help="privbayes: how useful tables must be.")] = _THETA,
    max_parents: Annotated[
        int | None, typer.Option(help="privbayes: the most parents of an attribute.")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(help="privbayes: an edge that must be there: 'age->income'. Repeatable."),
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="privbayes: an edge that must not be. Repeatable.")
    ] = None,
    consistency: Annotated[
        Literal["on", "off"],
        typer.Option(help="privbayes: make overlapping tables agree. off: as printed."),
    ] = "on",
    sensitivity: Annotated[
        Literal["tight", "printed"],
        typer.Option(help="privbayes: of score R. printed: the paper's looser bound."),
    ] = "tight",
    most_candidate_cells: Annotated[
        int, typer.Option(min=4, help="privbayes on bits: cap on all candidates' cells together.")
    ] = MOST_CANDIDATE_CELLS,
    most_parent_sets: Annotated[
        int, typer.Option(min=1, help="privbayes: cap on the parent sets of an attribute.")
    ] = MOST_PARENT_SETS,
    variant: Annotated[
        str, typer.Option(help="privelet: basic, privelet, privelet+ or privelet*.")
    ] = "privelet+",
    untransformed: Annotated[
        list[str] | None,
        typer.Option(
            help="privelet+ and privelet*: an attribute to leave alone (S_A), repeatable; or exact "
            "or bound, the rule that chooses them; or none. [default: exact]"
        ),
    ] = None,
    seed: options.Seed = None,
    sign_with: options.SignWith = None,
    sign_as: options.SignAs = "owner",
    delimiter: options.Delimiter = None,
    sheet: options.Sheet = "",
    overwrite: options.Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Publish a synthetic table of one owner's rows under differential privacy.

    The folder holds synthetic.csv (or .parquet), model.json, privacy.json, schema.toml, report.html
    and, by method, network.svg or ranges.zip; manifest.json lists them for `parley verify`. All of
    it may be published: it cost EPSILON in all.
    """
    release.check_target(out, overwrite=overwrite)
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: ask for at least one row")
    signer = options.signer_of(sign_with, sign_as, SignerRole.OWNER)
    maker: Subn | PrivBayes | Privelet
    if method is None:  # its own options choose PrivBayes
        given = any(each is not None for each in (score, encoding, max_parents, require, forbid))
        tuned = (beta, theta, consistency, sensitivity) != (_BETA, _THETA, "on", "tight")
        method = "privbayes" if given or tuned else "subn+"
    if delta != "0" and method != "subn+":
        raise InputError(f"--delta: {method} promises pure epsilon only. Use --method subn+")
    if method == "subn+":
        pinned = None if signer is None else signer.identity.public.fingerprint
        maker = Subn(epsilon=epsilon, delta=delta, seed=seed, signer=pinned)
    elif method == "privelet":
        left_alone = _left_alone(untransformed, variant)
        maker = Privelet(epsilon=epsilon, method=variant, untransformed=left_alone, seed=seed)
    else:
        maker = PrivBayes(
            epsilon=epsilon,
            encoding=encoding,
            score=score,
            beta=beta,
            theta=theta,
            max_parents=max_parents,
            required=[_edge(words) for words in require or ()],
            forbidden=[_edge(words) for words in forbid or ()],
            consistency=consistency == "on",
            printed_sensitivity=sensitivity == "printed",
            most_candidate_cells=most_candidate_cells,
            most_parent_sets=most_parent_sets,
            seed=seed,
        )
    domains = options.load_schema(schema)
    with console.progress("reading") as tell:
        tell(0.0, data.name)
        table = read_table(data, domains, delimiter=options.delimiter_of(delimiter), sheet=sheet)
    # The folder is opened before the budget is spent: a disk that refuses it costs nothing.
    with release.new_folder(out, overwrite=overwrite) as folder:
        with console.progress("learning") as tell:
            fitted: FittedModel = maker.fit(table, domains, tell=tell)
        if signer is not None and isinstance(fitted, FittedStudy):  # the owner stands for the study
            fitted = replace(fitted, study=fitted.study.signed_by(signer.identity))
        with console.progress("writing") as tell:
            written = write_release(
                folder, fitted, rows=rows, file_format=format, signer=signer, tell=tell
            )
    _report(out, fitted, written, as_json=json)


def _left_alone(written: list[str] | None, variant: str) -> str | list[str]:
    """S_A of Privelet+: a rule, or attributes by name."""
    if written is None:
        return "exact"
    if variant in ("basic", "privelet"):
        raise InputError(
            f"--untransformed: {variant} has no choice of attributes. Use privelet+ or privelet*"
        )
    if len(written) == 1 and written[0] in ("exact", "bound"):
        return written[0]
    return [] if written == ["none"] else written


def _edge(words: str) -> tuple[str, str]:
    parent, arrow, child = (part.strip() for part in words.partition("->"))
    if not (parent and arrow and child):
        raise InputError(f"{words!r} is not an edge. Write it like 'age->income'")
    return parent, child


def _report(out: Path, fitted: FittedModel, written: Written, *, as_json: bool) -> None:
    privacy = fitted.privacy
    options.tell_of_release(out, privacy)
    told = {"out": str(out), "files": list(written.files), "rows": written.rows}
    promised = ("epsilon_requested", "epsilon_delivered", "private")
    console.show(
        told | {key: privacy[key] for key in promised},
        f"{many(written.rows, 'synthetic row')}, epsilon {privacy['epsilon_delivered']:g}: "
        f"{out / release.REPORT}",
        as_json=as_json,
    )
