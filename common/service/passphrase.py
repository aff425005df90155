"""Where a passphrase comes from: a file that a setting names, or the environment; never a flag."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from common.crypto.key_files import AskPassphrase
from common.errors import InputError
from common.files import read_private_key

VARIABLE = "PARLEY_PASSPHRASE"


def given_passphrase(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The first line of the file, which must be private, or the variable; None for neither."""
    if file is None:
        return environment.get(VARIABLE)
    lines = read_private_key(file).decode(errors="replace").splitlines()
    return lines[0] if lines else ""


def asking(file: Path | None, environment: Mapping[str, str]) -> AskPassphrase:
    """Looks when a key turns out to be under a passphrase, and not before."""

    def ask() -> str:
        given = given_passphrase(file, environment)
        if given is None:
            raise InputError(
                f"it is under a passphrase; name a file that has it (passphrase_file), or set "
                f"{VARIABLE}"
            )
        return given

    return ask
