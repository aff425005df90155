"""`parley party countersign`: an owner vouches for a release it took part in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from parley.cli import console
from parley.cli.options import AsJson, Config
from parley.cli.passphrases import passphrase_in
from party.app import party_settings


def countersign(
    release: Annotated[Path, typer.Argument(help="The release: a folder or a .zip.")],
    *,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Vouch for a release: the study we approved, the results we saw, the epsilon we paid.

    The release is verified first. Our signature is added to it; nothing else in it changes.
    """
    from common.release.verify import signer_json, signer_text
    from party import countersigning

    settings = party_settings(config, os.environ).values
    with console.progress("verifying") as tell:
        signature = countersigning.countersign(
            release, settings, passphrase=passphrase_in(settings.passphrase_file), tell=tell
        )
    if json:
        console.result_json({"release": str(release)} | signer_json(signature))
        return
    console.result(f"{release} is {signer_text(signature)}")
