"""`parley curator study new`, `add`, `reform`, `renew`, `rehearse`: write, sign, offer a study."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from common.crypto.key_files import load_identity, load_public_identity
from common.errors import InputError
from common.exchanges.setup import with_commitments
from common.files import write_new
from common.methods.registry import new_study, run_of
from common.privacy.budget import parse_epsilon
from common.release.prior import PriorRelease, read_prior
from common.service.process import system_clock
from common.study.document import Study
from common.study.dry_run import require_runnable
from common.study.terms import Terms
from curator.app import propose
from curator.operations import find_record, member_of
from curator.revision import changes, next_name, rehearsed, revised
from curator.settings import CuratorSettings, curator_settings, open_store, priors
from parley.cli import console, options
from parley.cli.result import Result
from parley.cli.study_options import taking_terms, tell_decisions

Earlier = Annotated[
    str, typer.Argument(help="A study.toml, or the first characters of a digest, or a name.")
]
Out = Annotated[Path, typer.Option(help="The study.toml to write.")]
Name = Annotated[str | None, typer.Option(help="What people call the new study.")]


@dataclass(frozen=True)
class Proposer:
    """Options that say who proposes a study: a curator, by its settings, and who signs."""

    config: options.Config = None
    signer: Annotated[
        Path | None,
        typer.Option(
            help="The identity.key to sign with. [default: the curator's]", show_default=False
        ),
    ] = None
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Do not sign it.")] = False

    @property
    def settings(self) -> CuratorSettings:
        return curator_settings(self.config, os.environ).values

    @property
    def pinned(self) -> str:
        """The fingerprint of the curator's identity, which studies pin; empty without one."""
        try:
            return load_public_identity(self.settings.keys / "identity.pub").fingerprint
        except InputError:
            return ""

    def signed(self, study: Study) -> Study:
        """Sign a study, unless it is to stay unsigned."""
        if self.unsigned:
            return study
        file, passphrase_file = self.signer, None
        if file is None:
            try:
                settings = self.settings
            except InputError as error:
                raise InputError(
                    f"the study: no identity is known to sign it with ({error}). Name the "
                    "curator's settings (--config) or an identity.key (--signer), or leave it "
                    "--unsigned"
                ) from None
            file, passphrase_file = settings.keys / "identity.key", settings.passphrase_file
        passphrase = options.passphrase_in(passphrase_file)
        return study.signed_by(load_identity(file, passphrase=passphrase))

    def write(self, study: Study, out: Path, earlier: Study | None = None) -> Result:
        """Sign a study and write it; of a revision, say what changed."""
        study = self.signed(study)
        if not study.curator:
            console.warn(
                "the study pins no curator, so every reader of its release has to compare the "
                "curator's fingerprint. Name the settings of a curator with an identity (--config)"
            )
        write_new(out, study.to_toml().encode())
        console.note(f"{out} is written; every owner reviews it, and you offer it: `study add`")
        return _written(study, out, None if earlier is None else changes(earlier, study))


@taking_terms
def new(
    *,
    schema: options.SchemaFile,
    party: Annotated[
        list[str],
        typer.Option(help="NAME:ROWS:IDENTITY.PUB, one per owner, in the order of the ring."),
    ],
    out: Out,
    terms: Terms,
    prior: options.PriorFile = None,
    proposer: Proposer,
) -> Result:
    """Write a study down: schema, budget, and who takes part with which identity and how many rows.

    It is signed with the curator's identity (the settings say where its keys are) or with --signer,
    so that owners know who proposes it. Send the file to every owner; they review it with `parley
    party review`.
    """
    members = [member_of(written) for written in party]
    earlier = None if prior is None else read_prior(prior)
    pinned = {
        "prior": None if earlier is None else earlier.digest,
        "curator": proposer.pinned or None,
    }
    domains = options.load_schema(schema)
    study = with_commitments(new_study({**terms, **pinned}, schema=domains, members=members))
    _require_time_left(study)
    require_runnable(study, (earlier.begin if earlier else run_of)(study))
    if earlier is not None:
        console.note(f"offer it with its prior: `study add {out} --prior {prior}`")
    tell_decisions(study)
    if not study.purpose:
        console.warn(
            "--purpose: the study does not say what its table is for. Owners ask that first"
        )
    return proposer.write(study, out)


def add(
    study: options.StudyFile,
    *,
    prior: options.PriorFile = None,
    proposer: Proposer,
) -> Result:
    """Offer a study to its parties; a running curator takes it up by itself.

    An unsigned study is signed on the way, as in `study new`.
    """
    settings = proposer.settings
    proposed = Study.load(study)
    _require_time_left(proposed)
    if prior is not None:
        priors(settings).add(prior)
    _check_curator(proposed, study, proposer.pinned)
    if proposed.signature is None and not proposer.unsigned:
        proposed = proposer.signed(proposed)
        console.note(f"{study} itself is not signed; owners who fetch the study see the signature")
    propose(settings, proposed, clock=system_clock)
    return _written(proposed, study)


def reform(
    study: Earlier,
    *,
    without: Annotated[list[str], typer.Option(help="An owner to go on without; may be repeated.")],
    out: Out,
    name: Name = None,
    proposer: Proposer,
) -> Result:
    """Write a study down again without owners that are gone. The others approve it anew.

    The earlier study must be over: end it with `study abort`. What it cost its owners stays
    charged, and the new study is charged beside it.
    """
    earlier = _earlier(study, proposer, over=True)
    revision = revised(
        earlier,
        name=name or f"{earlier.name}, without {', '.join(without)}",
        without=without,
        curator=proposer.pinned,
        today=system_clock().date(),
    )
    require_runnable(revision, run_of(revision))
    return proposer.write(revision, out, earlier)


def renew(
    study: Earlier,
    *,
    out: Out,
    name: Name = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="NAME:ROWS of an owner whose row count changed; may be repeated."),
    ] = None,
    party: Annotated[
        list[str] | None,
        typer.Option(help="NAME:ROWS:IDENTITY.PUB of an owner that is new; may be repeated."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="An owner to go on without; may be repeated.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Another schema.toml.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Another budget: 0.8 or 4/5.")] = None,
    expires: Annotated[
        dt.datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Another last day (UTC) to approve it."),
    ] = None,
    prior: Annotated[
        bool, typer.Option("--prior", help="Build on the earlier study's release.")
    ] = False,
    proposer: Proposer,
) -> Result:
    """Write next year's study from last year's: same schema, owners and terms, changes shown.

    The year in its name becomes the next one, and a last day to approve that is over is left out.
    Every owner reviews and approves the new study; it is charged beside the earlier one. With
    --prior its noisy sums are drawn towards the earlier release, which makes them better and costs
    nothing; the schema must be the same.
    """
    earlier = _earlier(study, proposer, over=False)
    built_on = _prior(study, proposer.settings) if prior else None
    revision = revised(
        earlier,
        name=name or next_name(earlier.name, system_clock().year),
        without=without or (),
        rows=dict(_count(written) for written in rows or ()),
        joining=[member_of(written) for written in party or ()],
        schema=None if schema is None else options.load_schema(schema),
        epsilon=None if epsilon is None else parse_epsilon(epsilon, "--epsilon"),
        prior="" if built_on is None else built_on.digest,
        curator=proposer.pinned,
        today=system_clock().date(),
        expires=None if expires is None else expires.date(),
    )
    _require_time_left(revision)
    require_runnable(revision, (built_on.begin if built_on else run_of)(revision))
    return proposer.write(revision, out, earlier)


def rehearse(
    study: Earlier,
    *,
    out: Out,
    name: Name = None,
    proposer: Proposer,
) -> Result:
    """Write the rehearsal of a study down: all of it, with the real owners, on simulated rows.

    Their nodes read none of their rows and charge nothing, and `verify` refuses the release as one
    about real rows. Each owner approves it, or lets the policy do so (`rehearsals = true`).
    """
    rehearsal = rehearsed(_earlier(study, proposer, over=False), name=name or "")
    _require_time_left(rehearsal)
    return proposer.write(rehearsal, out)


def _check_curator(study: Study, file: Path, curator: str) -> None:
    """Refuse a study that pins another curator than this one; warn of a study that pins none."""
    if study.curator and study.curator != curator:
        raise InputError(
            f"{file}: it pins curator {study.curator}, and this curator is "
            f"{curator or 'without an identity'}. Offer it there, or write the study again here"
        )
    if curator and not study.curator:
        console.warn(
            f"{file}: it pins no curator, so every reader of its release has to compare the "
            f'curator\'s fingerprint. Write curator = "{curator}" above its tables, and send the '
            "owners that text"
        )


def _written(study: Study, file: Path, changes: Iterable[str] | None = None) -> Result:
    """Return a study that was written or offered; of a revision, what changed."""
    form = {"study": study.digest, "name": study.name, "signer": study.signer, "file": file}
    lines = [f"digest {study.digest.hex()}", f"signer {study.signer or 'none'}"]
    if changes is None:
        return Result(form, lines)
    listed = tuple(changes)
    return Result(form | {"changes": listed}, [*(f"change {words}" for words in listed), *lines])


def _require_time_left(study: Study) -> None:
    if study.expired(system_clock().date()):
        raise InputError(f"study {study.name!r}: it expired on {study.expires}. Choose a later day")


def _earlier(written: str, proposer: Proposer, *, over: bool) -> Study:
    if Path(written).is_file():
        return Study.load(Path(written))
    with open_store(proposer.settings) as store:
        record = find_record(store, written)
        if over and not record.state.over:
            raise InputError(
                f"study {record.name!r}: it is not over ({record.state.value}). End it first: "
                f"`parley curator study abort {record.study.hex()[:16]} --reason ...`"
            )
        return store.study(record.study)


def _prior(written: str, settings: CuratorSettings) -> PriorRelease:
    """Put the release of a study of this curator where its nodes find it."""
    if Path(written).is_file():
        written = Study.load(Path(written)).digest.hex()
    with open_store(settings) as store:
        record = find_record(store, written)
    if not record.place:
        raise InputError(f"--prior: study {record.name!r} has no release ({record.state.value})")
    return priors(settings).add(Path(record.place))


def _count(written: str) -> tuple[str, int]:
    name, _, rows = written.rpartition(":")
    if not name or not rows.isdecimal():
        raise InputError(f"--rows {written!r}: expected NAME:ROWS, as north:10200")
    return name, int(rows)
