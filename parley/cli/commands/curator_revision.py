"""`parley curator study reform` and `renew`: a new study from an earlier one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from common.errors import InputError
from common.files import write_new
from common.methods.registry import run_of
from common.privacy.budget import parse_epsilon
from common.release.prior import PriorRelease
from common.service.process import system_clock
from common.study.document import Study
from curator.app import curator_settings, open_store, priors
from curator.operations import find_record, member_of
from curator.revision import changes, next_name, revised
from parley.cli import console
from parley.cli.commands.study_signing import SignerFile, Unsigned, signed, tell_offered
from parley.cli.options import AsJson, Config, load_schema

Earlier = Annotated[
    str, typer.Argument(help="A study.toml, or the first characters of a digest, or a name.")
]
Out = Annotated[Path, typer.Option(help="The study.toml to write.")]
Name = Annotated[str | None, typer.Option(help="What people call the new study.")]


def reform(
    study: Earlier,
    *,
    without: Annotated[list[str], typer.Option(help="An owner to go on without; may be repeated.")],
    out: Out,
    name: Name = None,
    config: Config = None,
    signer: SignerFile = None,
    unsigned: Unsigned = False,
    json: AsJson = False,
) -> None:
    """Write a study down again without owners that are gone. The others approve it anew.

    The earlier study must be over: end it with `study abort`. What it cost its owners stays
    charged, and the new study is charged beside it.
    """
    earlier = _earlier(study, config, over=True)
    made = revised(
        earlier, name=name or f"{earlier.name}, without {', '.join(without)}", without=without
    )
    _write(earlier, made, out, config=config, signer=signer, unsigned=unsigned, as_json=json)


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
    prior: Annotated[
        bool, typer.Option("--prior", help="Build on the earlier study's release.")
    ] = False,
    config: Config = None,
    signer: SignerFile = None,
    unsigned: Unsigned = False,
    json: AsJson = False,
) -> None:
    """Write next year's study from last year's: same schema, owners and terms, changes shown.

    The year in its name becomes the next one. Every owner reviews and approves the new study; it is
    charged beside the earlier one. With --prior its noisy sums are drawn towards the earlier
    release, which makes them better and costs nothing; the schema must be the same.
    """
    earlier = _earlier(study, config, over=False)
    built_on = _prior(study, config) if prior else None
    made = revised(
        earlier,
        name=name or next_name(earlier.name, system_clock().year),
        without=without or (),
        rows=dict(_count(written) for written in rows or ()),
        joining=[member_of(written) for written in party or ()],
        schema=None if schema is None else load_schema(schema),
        epsilon=None if epsilon is None else parse_epsilon(epsilon),
        prior="" if built_on is None else built_on.digest,
    )
    _write(earlier, made, out, config=config, signer=signer, unsigned=unsigned, as_json=json)


def _earlier(written: str, config: Path | None, *, over: bool) -> Study:
    if Path(written).is_file():
        return Study.load(Path(written))
    with open_store(curator_settings(config, os.environ).values) as store:
        record = find_record(store, written)
        if over and not record.state.over:
            raise InputError(
                f"study {record.name!r}: it is not over ({record.state.value}). End it first: "
                f"`parley curator study abort {record.study.hex()[:16]} --reason ...`"
            )
        return store.study(record.study)


def _prior(written: str, config: Path | None) -> PriorRelease:
    """The release of a study of this curator, put where its nodes find it."""
    settings = curator_settings(config, os.environ).values
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


def _write(
    earlier: Study,
    made: Study,
    out: Path,
    *,
    config: Path | None,
    signer: Path | None,
    unsigned: bool,
    as_json: bool,
) -> None:
    if made.prior:
        priors(curator_settings(config, os.environ).values).begin(made)
    else:
        run_of(made)  # refuses a study that could never be run
    if not unsigned:
        made = signed(made, config, signer)
    write_new(out, made.to_toml().encode())
    different = changes(earlier, made)
    if not as_json:
        for line in different:
            console.result(f"change {line}")
    console.note(f"{out} is written; every owner reviews it, and you offer it: `study add`")
    tell_offered(made, out, as_json=as_json, changes=different)
