"""`parley simulate`: a study of several owners on one machine."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer

from common.errors import InputError, NotCountersignedError
from common.fitted.single_owner import Table
from common.privacy.randomness import source_of
from common.release import folder as release
from common.release.manifest import Signer, SignerRole
from common.release.prior import read_prior
from common.report.writing import write_release
from common.schema import Schema
from common.study.terms import Terms
from common.tables import TableFile
from common.wording import Reporter, many
from parley.cli import console, options
from parley.cli.commands import new_app
from parley.cli.result import Result, command
from parley.cli.study_options import option_of, taking_terms, tell_decisions
from parley.reader.fitted import FittedStudy
from parley.simulation.consortium import Consortium
from parley.simulation.in_process import FITTING
from parley.simulation.linked_files import LinkedFiles, OwnersTables, two_files
from parley.simulation.partition import (
    PeopleRows,
    at_random,
    by_column,
    tables_of_people,
)
from parley.simulation.study import run_in_process

app = new_app()
TIMES = "{}-times.json"
_DEFAULT_PARTIES = 3
_STATED = (
    "epsilon_requested", "epsilon_delivered", "delta", "rho", "parties", "realised", "missing",
    "private", "criteria",
)  # fmt: skip
_TIMEOUT_S = 24 * 3600.0  # of a study over grpc, so that nothing hangs for ever


@dataclass(frozen=True)
class OwnersOptions:
    """Options that say which owners there are, and which rows each has."""

    parties: Annotated[
        int | None, typer.Option(help="Owners to deal one table's rows out to. [default: 3]")
    ] = None
    partition_by: Annotated[
        str | None,
        typer.Option(
            help="Deal out by this column: one owner per value. Its counts are published."
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(help="The column that says whose row a row is. It is no attribute."),
    ] = None
    delimiter: options.Delimiter = None
    sheet: options.Sheet = ""
    events_sheet: options.EventsSheet = ""

    def check(self, files: Sequence[Path], schema: Schema, terms: Terms) -> None:
        """Refuse options that contradict each other."""
        linked = schema.events is not None
        if not linked and (self.person is None) != (not terms.get("rows_per_person")):
            raise InputError("--person and --rows-per-person: give both, or none of them")
        if self.events_sheet and not linked:
            raise InputError("--events-sheet: the schema has no [events]. Leave it out")
        if not linked and self.person is not None and self.partition_by is not None:
            raise InputError("--person: leave out --transport grpc and --partition-by")
        if self.parties is not None and self.parties < 1:
            raise InputError(f"--parties {self.parties}: ask for at least one owner")
        if len(files) > 1 and not (self.parties is None and self.partition_by is None):
            raise InputError(
                "several tables are several owners. Leave out --parties and --partition-by"
            )
        if self.parties is not None and self.partition_by is not None:
            raise InputError("give --parties or --partition-by, not both")

    def tables(
        self, files: Sequence[Path], schema: Schema, terms: Terms, seed: int | None
    ) -> Mapping[str, OwnersTables]:
        """Read the owners' tables, or deal one out; with a linked schema, two of each owner."""
        with console.progress("reading") as tell:
            tell(0.0, files[0].name)
            read = [self._read(path, schema) for path in files]
        number = _DEFAULT_PARTIES if self.parties is None else self.parties
        first = read[0]
        if self.person is not None and isinstance(first, TableFile):
            character = options.Reading(self.delimiter).character
            rows = [
                PeopleRows.read(path, schema, self.person, character, self.sheet) for path in files
            ]
            dealt = [f"party {n + 1}" for n in range(number)]
            return _people(_names(files) if len(files) > 1 else dealt, rows, schema, terms, seed)
        if len(read) > 1:
            owners = _names([t.path if isinstance(t, TableFile) else t.people.path for t in read])
            tables = (t if isinstance(t, TableFile) else t.frames for t in read)
            return dict(zip(owners, tables, strict=True))
        if isinstance(first, TableFile):
            return dict(_deal(first.data.to_pandas(), number, self.partition_by, seed))
        return first.dealt_out(lambda people: _deal(people, number, self.partition_by, seed))

    def _read(self, path: Path, schema: Schema) -> TableFile | LinkedFiles:
        """Read the table of an owner; of a linked schema, people and their events."""
        reading = options.Reading(self.delimiter, self.sheet)
        if schema.events is None:
            table = reading.table(path, schema)
            table.encode(schema)  # here an error can still name the file and the line
            return table
        return LinkedFiles.read(
            two_files(path, same_file=bool(self.events_sheet)), schema,
            person=self.person or "", delimiter=reading.character,
            sheets=(self.sheet, self.events_sheet),
        )  # fmt: skip


@command(app, "simulate")
@taking_terms
def simulate_study(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="One table to be dealt out, or one per owner; PEOPLE:EVENTS with linked tables."
        ),
    ],
    *,
    schema: options.SchemaFile,
    out: options.ReleaseFolder,
    terms: Terms,
    name: Annotated[str, option_of("name")] = "simulation",
    prior: options.PriorFile = None,
    drop: options.Drops = None,
    rows: OwnersOptions,
    format: options.OutputFormat = "csv",  # noqa: A002
    seed: options.Seed = None,
    transport: Annotated[
        Literal["in-process", "grpc"],
        typer.Option(help="in-process, or grpc: a process per owner, certificates."),
    ] = "in-process",
    sign_with: options.SignWith = None,
    sign_as: options.SignAs = "curator",
    overwrite: options.Overwrite = False,
) -> Result:
    """Run a study of several owners on this machine, with the roles and keys of a deployment.

    The folder holds what `parley synthesize` writes, the study, results.bin (what was published
    during it), and transcript.json: bytes and rounds by phase and party. Beside it, OUT-times.json
    has the seconds too, and those of the whole command: they depend on the rows, so they are not
    for publication.

    Over grpc the owners countersign the release. If one does not, the release is there all the
    same, the command says who did not and why, and its exit code is 8.
    """
    release.check_target(out, overwrite=overwrite)
    domains = options.load_schema(schema)
    if transport == "grpc":
        of_people = rows.person is not None and domains.events is None
        _check_grpc(seed=seed, sign_with=sign_with, drop=drop, of_people=of_people)
    rows.check(data, domains, terms)
    vanishing = _drops(drop or [])
    earlier = None if prior is None else read_prior(prior)
    signer = options.signer_of(sign_with, sign_as, SignerRole.CURATOR)
    watch = _Stopwatch()
    tables = rows.tables(data, domains, terms, seed)
    watch.stop("reading")
    chosen: dict[str, object] = {"name": name, **terms}
    if signer is not None:  # who signs the release is its curator, and stands for the study, too
        chosen["curator"] = signer.identity.public.fingerprint
    person = "" if domains.events is None else rows.person or ""
    refusals: Mapping[str, str] = {}
    with release.new_folder(out, overwrite=overwrite) as folder:
        if transport == "grpc":
            traffic, refusals = run_in_processes(
                tables, domains, chosen, folder,
                timeout_s=_TIMEOUT_S, file_format=format, prior=prior, person=person,
            )  # fmt: skip
            watch.stop("study")
        else:
            with console.progress("study") as tell:
                fitted = run_in_process(
                    tables, domains, chosen, seed=seed, prior=earlier, drop=vanishing,
                    tell=watch.listening(tell), announce=tell_decisions, person=person,
                )  # fmt: skip
            _warn_of_idle_drops(vanishing, fitted)
            watch.stop("fitting")
            _write(folder, fitted, format, signer)
            watch.stop("writing")
            traffic = fitted.transcript
        files = sorted(file.name for file in folder.iterdir())
    release.write_file(_times(out), dumps({**traffic, "command": watch.seconds()}, indent=2) + "\n")
    privacy: Mapping[str, Any] = release.read_json(out, release.STATEMENT)
    options.tell_of_release(out, privacy)
    number = terms.get("output_rows") or sum(map(_rows_of, tables.values()))
    number = number if set(files) & set(release.TABLES) else 0
    gone = (privacy["missing"] or {}).items()
    return Result(
        {"out": out, "files": files, "rows": number, "refusals": refusals}
        | {key: privacy[key] for key in _STATED}
        | {key: traffic[key] for key in ("bytes", "seconds", "phases")},
        _lines(out, privacy, domains.row, rows=number, owners=len(tables)),
        warnings=[f"{party} went missing: it is in no sum from step {step} on (steps from 0)"
                  for party, step in gone],
        require=partial(require_countersigned, out, refusals),
    )  # fmt: skip


def _lines(
    out: Path, privacy: Mapping[str, Any], row: str, *, rows: int, owners: int
) -> Iterator[str]:
    published = many(rows, f"synthetic {row}") if rows else "answers, no synthetic rows,"
    yield (
        f"{published} of {many(owners, 'owner')}, {options.promise_words(privacy)} "
        f"({privacy['epsilon_requested']:g} was asked for): {out / release.REPORT}"
    )
    if privacy["realised"] != privacy["parties"]:
        yield (
            f"epsilon {privacy['epsilon_delivered']:g} is the mechanism's bound; this run "
            f"realised {privacy['epsilon_realised']:g}, and the paper claims "
            f"{privacy['epsilon_claimed_by_paper']:g}"
        )
    yield f"seconds by phase, not for publication: {_times(out)}"


def _rows_of(table: OwnersTables) -> int:
    """Return the number of an owner's rows, or people."""
    first = table[0] if isinstance(table, tuple) else table
    return first.data.num_rows if isinstance(first, TableFile) else len(first)


def _times(out: Path) -> Path:
    """Return the file beside a release that has the seconds."""
    return out.parent / TIMES.format(out.name)


def _check_grpc(
    *, seed: int | None, sign_with: Path | None, drop: list[str] | None, of_people: bool
) -> None:
    """Refuse options that only a study in one process has."""
    if seed is not None:
        raise InputError("--seed: services never take a seed. Leave out --seed or --transport grpc")
    if sign_with is not None:
        raise InputError(
            "--sign-with: over grpc the curator's process signs with keys of its own. Leave it out"
        )
    if drop:
        raise InputError(
            "--drop: owners vanish in one process only. Leave out --drop or --transport grpc"
        )
    if of_people:
        raise InputError("--person: leave out --transport grpc and --partition-by")


def _warn_of_idle_drops(gone: Mapping[str, int], fitted: FittedStudy) -> None:
    """Warn of owners that were to vanish after the last step."""
    for name in gone.keys() - fitted.missing.keys():
        console.warn(
            f"--drop {name}@{gone[name]}: the study has {many(len(fitted.steps), 'step')}, from 0, "
            "so the owner was in all of them"
        )


class _Stopwatch:
    """Seconds by what the command did, all that its user waits for.

    Until it is made the process started, which is nothing but computing: seconds of the processor.
    """

    def __init__(self) -> None:
        self._stages = {"starting": time.process_time()}
        self._since = time.monotonic()

    def stop(self, stage: str) -> None:
        """End a stage; the next one begins."""
        now = time.monotonic()
        self._stages[stage], self._since = now - self._since, now

    def listening(self, tell: Reporter) -> Reporter:
        """Return a reporter that hears when the fit begins."""

        def hear(fraction: float, doing: str) -> None:
            if doing == FITTING:
                self.stop("study")
            tell(fraction, doing)

        return hear

    def seconds(self) -> dict[str, float]:
        stages = {stage: round(seconds, 1) for stage, seconds in self._stages.items()}
        return {**stages, "whole": round(sum(self._stages.values()), 1)}


def _write(
    folder: Path, fitted: FittedStudy, file_format: options.Format, signer: Signer | None
) -> None:
    if signer is not None:
        fitted = replace(fitted, study=fitted.study.signed_by(signer.identity))
    with console.progress("writing") as tell:
        write_release(folder, fitted, file_format=file_format, signer=signer, tell=tell)


def _drops(written: list[str]) -> dict[str, int]:
    """Owners that vanish, and the first step without each."""
    gone: dict[str, int] = {}
    for option in written:
        name, _, step = option.rpartition("@")
        if not name or not step.isdecimal() or name in gone:
            raise InputError(f"--drop {option}: write OWNER@STEP, each owner once, steps from 0")
        gone[name] = int(step)
    return gone


def run_in_processes(
    tables: Mapping[str, OwnersTables],
    schema: Schema,
    terms: Mapping[str, object],
    folder: Path,
    *,
    timeout_s: float,
    file_format: options.Format = "csv",
    prior: Path | None = None,
    person: str = "",
) -> tuple[Mapping[str, object], Mapping[str, str]]:
    """Run a study in a process per owner, and put its release into a folder.

    Return its transcript, and the owners that did not countersign the release with their reasons.
    """
    with (
        tempfile.TemporaryDirectory(prefix="parley-") as scratch,
        console.progress("study") as tell,
        Consortium(
            Path(scratch),
            tables,
            schema,
            terms,
            file_format=file_format,
            prior=prior,
            person=person,
        ) as consortium,
    ):
        tell_decisions(consortium.study)
        place = consortium.run(timeout_s=timeout_s, tell=tell)
        shutil.copytree(place, folder, dirs_exist_ok=True)
        return consortium.transcript(), consortium.refusals


def require_countersigned(out: Path, refusals: Mapping[str, str]) -> None:
    """Raise NotCountersignedError, with names and reasons, if an owner did not sign."""
    if not refusals:
        return
    reasons = (f"{name} did not countersign it: {why}" for name, why in refusals.items())
    raise NotCountersignedError(
        f"{out}: the release is made and kept, but {'; '.join(reasons)}. Find out why before you "
        "publish it"
    )


def _deal(
    whole: pd.DataFrame, parties: int, partition_by: str | None, seed: int | None
) -> dict[str, pd.DataFrame]:
    if partition_by is None:
        return at_random(whole, parties, source_of(seed, "partition"))
    parts = by_column(whole, partition_by)
    console.warn(
        f"the owners of this release are the values of {partition_by!r}: which there are, and "
        "how many rows each has, is in it without noise, as are owners' names and row counts "
        "in every study"
    )
    return parts


def _names(paths: Sequence[Path]) -> list[str]:
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
    return names


def _people(
    names: list[str],
    files: list[PeopleRows],
    schema: Schema,
    terms: Terms,
    seed: int | None,
) -> dict[str, Table]:
    """Deal the rows of people out to the owners of these names."""
    tables = tables_of_people(
        files, schema,
        per_person=terms["rows_per_person"], owners=terms.get("owners_per_person", 1),
        parties=len(names), source=source_of(seed, "people"),
    )  # fmt: skip
    console.warn(
        "each owner's number of rows is that of its people's rows, rounded down to two digits: "
        "in a study it is agreed beforehand"
    )
    return dict(zip(names, tables, strict=True))
