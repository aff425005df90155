"""`parley synthesize`: a release folder from a table of one owner."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from common.bayes.privbayes.decisions import MOST_CANDIDATE_CELLS, MOST_PARENT_SETS
from common.errors import InputError, LocalError, PrivacyWarning
from common.fitted.model import FittedModel
from common.release import folder as release
from common.release.manifest import Signer, SignerRole
from common.report.writing import write_release
from common.schema import Schema
from common.tables import TableFile
from common.wording import Reporter, many
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.linked_tables import EventsFile
from parley.cli.result import Result, command
from parley.cli.study_options import one_of, option_of, tell_decisions
from parley.models.single_owner import PrivBayes, Privelet, Subn
from parley.reader.fitted import FittedStudy
from parley.simulation.linked_files import LinkedFiles

app = new_app()

_METHODS = {
    "subn+": "a network, the most accurate for most tables",
    "privbayes": "a network, with a choice of edges and scores",
    "privelet": "range counts, for few columns",
}


@dataclass(frozen=True)
class PrivBayesChoices:
    """The options of PrivBayes."""

    encoding: Annotated[
        str | None,
        typer.Option(help="privbayes: binary, gray, vanilla or hierarchical. [default: by schema]"),
    ] = None
    score: Annotated[
        str | None, typer.Option(help="privbayes: I, F or R. [default: F on bits, else R]")
    ] = None
    beta: Annotated[str, typer.Option(help="privbayes: share of epsilon for the network.")] = "0.3"
    theta: Annotated[str, typer.Option(help="privbayes: how useful tables must be.")] = "4"
    max_parents: Annotated[
        int | None, typer.Option(help="privbayes: the most parents of an attribute.")
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(help="privbayes: an edge that must be there: 'age->income'. Repeatable."),
    ] = None
    forbid: Annotated[
        list[str] | None, typer.Option(help="privbayes: an edge that must not be. Repeatable.")
    ] = None
    consistency: Annotated[
        Literal["on", "off"],
        typer.Option(help="privbayes: make overlapping tables agree. off: as printed."),
    ] = "on"
    sensitivity: Annotated[
        Literal["tight", "printed"],
        typer.Option(help="privbayes: of score R. printed: the paper's looser bound."),
    ] = "tight"
    most_candidate_cells: Annotated[
        int, typer.Option(min=4, help="privbayes on bits: cap on all candidates' cells together.")
    ] = MOST_CANDIDATE_CELLS
    most_parent_sets: Annotated[
        int, typer.Option(min=1, help="privbayes: cap on the parent sets of an attribute.")
    ] = MOST_PARENT_SETS

    def maker(self, epsilon: str, seed: int | None) -> PrivBayes:
        """Return the model that was asked for."""
        names = {field.name for field in fields(PrivBayes)} & set(vars(self)) - {"consistency"}
        return PrivBayes(
            epsilon=epsilon,
            required=[_edge(words) for words in self.require or ()],
            forbidden=[_edge(words) for words in self.forbid or ()],
            consistency=self.consistency == "on",
            printed_sensitivity=self.sensitivity == "printed",
            seed=seed,
            **{name: getattr(self, name) for name in names},
        )


@dataclass(frozen=True)
class PriveletChoices:
    """The options of Privelet."""

    variant: Annotated[
        str, typer.Option(help="privelet: basic, privelet, privelet+ or privelet*.")
    ] = "privelet+"
    untransformed: Annotated[
        list[str] | None,
        typer.Option(
            help="privelet+ and privelet*: an attribute to leave alone (S_A), repeatable; or exact "
            "or bound, the rule that chooses them; or none. [default: exact]"
        ),
    ] = None

    def maker(self, epsilon: str, seed: int | None) -> Privelet:
        """Return the model that was asked for."""
        return Privelet(
            epsilon=epsilon, method=self.variant, untransformed=self._left_alone(), seed=seed
        )

    def _left_alone(self) -> str | list[str]:
        """Return S_A of Privelet+: a rule, or attributes by name."""
        written = self.untransformed
        if written is None:
            return "exact"
        if self.variant in ("basic", "privelet"):
            raise InputError(
                f"--untransformed: {self.variant} has no choice of attributes. Use privelet+ or "
                "privelet*"
            )
        if len(written) == 1 and written[0] in ("exact", "bound"):
            return written[0]
        return [] if written == ["none"] else written


@command(app)
def synthesize(
    data: Annotated[
        Path, typer.Argument(help="The real table: CSV, Parquet, Excel, SPSS, Stata or SAS.")
    ],
    *,
    schema: options.SchemaFile,
    epsilon: Annotated[str, option_of("epsilon")],
    out: options.ReleaseFolder,
    delta: Annotated[str, option_of("delta")] = "0",
    method: Annotated[
        Literal["subn+", "privbayes", "privelet"] | None, one_of(_METHODS, default="subn+")
    ] = None,
    analysis: Annotated[list[str] | None, option_of("analyses")] = None,
    others: Annotated[str | None, option_of("others")] = None,
    rows: options.OutputRows = None,
    format: options.OutputFormat = "csv",  # noqa: A002
    privbayes: PrivBayesChoices,
    privelet: PriveletChoices,
    seed: options.Seed = None,
    sign_with: options.SignWith = None,
    sign_as: options.SignAs = "owner",
    reading: options.Reading,
    second: EventsFile,
    overwrite: options.Overwrite = False,
) -> Result:
    """Publish a synthetic table of one owner's rows under differential privacy.

    The folder holds synthetic.csv (or .parquet), model.json, privacy.json, schema.toml, report.html
    and, by method, network.svg or ranges.zip; manifest.json lists them for `parley verify`. All of
    it may be published: it cost EPSILON in all.
    """
    release.check_target(out, overwrite=overwrite)
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: ask for at least one row")
    signer = options.signer_of(sign_with, sign_as, SignerRole.OWNER)
    method = method or ("subn+" if privbayes == PrivBayesChoices() else "privbayes")
    if delta != "0" and method != "subn+":
        raise InputError(f"--delta: {method} promises pure epsilon only. Use --method subn+")
    if (analysis or others) and method != "subn+":
        raise InputError(f"--analysis: {method} measures nothing first. Use --method subn+")
    maker: Subn | PrivBayes | Privelet
    if method == "subn+":
        pinned = None if signer is None else signer.identity.public.fingerprint
        maker = Subn(
            epsilon=epsilon, delta=delta, seed=seed, signer=pinned, analyses=analysis or (),
            others=others,
        )  # fmt: skip
    else:
        maker = (privelet if method == "privelet" else privbayes).maker(epsilon, seed)
    domains = options.load_schema(schema)
    if domains.events is not None and method != "subn+":
        raise InputError(
            f"--method {method}: it is for single tables, and the schema has [events]. Use subn+"
        )
    with console.progress("reading") as tell:
        tell(0.0, data.name)
        read = second.linked(data, domains, reading) or reading.table(data, domains)
    # The folder is opened before the budget is spent: a disk that refuses it costs nothing.
    with release.new_folder(out, overwrite=overwrite) as folder:
        with console.progress("learning") as tell, warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # said where the option was typed
            fitted = _learnt(maker, read, domains, tell)
        fitted = _vouched(fitted, signer)
        with console.progress("writing") as tell:
            written = write_release(
                folder, fitted, rows=rows, file_format=format, signer=signer, tell=tell
            )
    options.tell_of_release(out, fitted.privacy)
    promise = {key: fitted.privacy[key] for key in _PROMISE}
    words = f"{many(written.rows, f'synthetic {domains.row}')}, epsilon"
    return Result(
        {"out": out, "files": written.files, "rows": written.rows} | promise,
        [f"{words} {promise['epsilon_delivered']:g}: {out / release.REPORT}"],
    )


_PROMISE = ("epsilon_requested", "epsilon_delivered", "private")


def _learnt(
    maker: Subn | PrivBayes | Privelet,
    read: TableFile | LinkedFiles,
    schema: Schema,
    tell: Reporter,
) -> FittedModel:
    """Learn a model of a table, or of people and their events."""
    if isinstance(maker, Subn):
        table, person = (read, "") if isinstance(read, TableFile) else (read.frames, read.person)
        return maker.fit(table, schema, tell=tell, person=person, announce=tell_decisions)
    if not isinstance(read, TableFile):
        raise LocalError(f"{type(maker).__name__}: it is for single tables")
    return maker.fit(read, schema, tell=tell)


def _vouched(fitted: FittedModel, signer: Signer | None) -> FittedModel:
    """Return a model whose study its owner stands for."""
    if signer is None or not isinstance(fitted, FittedStudy):
        return fitted
    return replace(fitted, study=fitted.study.signed_by(signer.identity))


def _edge(words: str) -> tuple[str, str]:
    parent, arrow, child = (part.strip() for part in words.partition("->"))
    if not (parent and arrow and child):
        raise InputError(f"{words!r} is not an edge. Write it like 'age->income'")
    return parent, child
