"""Who signs a study, and what is said of one that is written: for the commands that write one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from common.crypto.identities.identity import Identity
from common.crypto.key_files import load_identity
from common.errors import InputError
from common.study.document import Study
from curator.app import curator_settings
from parley.cli import console
from parley.cli.passphrases import passphrase_in

SignerFile = Annotated[
    Path | None,
    typer.Option(
        help="The identity.key to sign with. [default: the curator's]", show_default=False
    ),
]
Unsigned = Annotated[bool, typer.Option("--unsigned", help="Do not sign it.")]


def signed(study: Study, config: Path | None, signer: Path | None) -> Study:
    """The study with the signature of the identity that was named, or else of the curator's."""
    return study.signed_by(_signing_identity(config, signer))


def _signing_identity(config: Path | None, signer: Path | None) -> Identity:
    """The proposer: the identity that was named, or else the curator's."""
    passphrase_file = None
    if signer is None:
        try:
            settings = curator_settings(config, os.environ).values
        except InputError as error:
            raise InputError(
                f"who signs the study? Name the curator's settings (--config) or an identity.key "
                f"(--signer); --unsigned leaves it unsigned ({error})"
            ) from None
        signer, passphrase_file = settings.keys / "identity.key", settings.passphrase_file
    return load_identity(signer, passphrase=passphrase_in(passphrase_file))


def tell_offered(
    study: Study, file: Path, *, as_json: bool, changes: Sequence[str] | None = None
) -> None:
    """Say which study was written; with what is different from an earlier one, if there is one."""
    told = {"study": study.digest.hex(), "name": study.name, "signer": study.signer}
    listed = {} if changes is None else {"changes": list(changes)}
    lines = (f"digest {study.digest.hex()}", f"signer {study.signer or 'none'}")
    console.show(told | {"file": str(file)} | listed, *lines, as_json=as_json)
