"""Passphrases for commands: as for the services, and on a terminal a person can be asked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from common.crypto.identities.files import AskPassphrase
from common.errors import InputError
from common.service.settings import asking, given_passphrase


def passphrase_in(file: Path | None) -> AskPassphrase:
    """From the file or PARLEY_PASSPHRASE; else asked for, once, when a key needs it."""
    known: list[str] = []

    def ask() -> str:
        given = given_passphrase(file, os.environ)
        if given is not None or not sys.stdin.isatty():
            return asking(file, os.environ)()
        if not known:
            known.append(typer.prompt("Passphrase of the keys", hide_input=True, err=True))
        return known[0]

    return ask


def new_passphrase(file: Path | None, *, ask: bool) -> str | None:
    """The passphrase to put new keys under: of the file or PARLEY_PASSPHRASE, or asked for.

    None if there is none and no question may be asked: then a file's mode protects it.
    """
    given = given_passphrase(file, os.environ)
    if given is None:
        return chosen_passphrase(None) if ask else None
    return _not_empty(given)


def chosen_passphrase(file: Path | None) -> str:
    """Of the file, or asked for, twice."""
    given = given_passphrase(file, {})
    if given is None:
        if not sys.stdin.isatty():
            raise InputError("there is no terminal to ask for a passphrase on; name a file with it")
        given = str(
            typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
        )
    return _not_empty(given)


def _not_empty(passphrase: str) -> str:
    if not passphrase:
        raise InputError("an empty passphrase protects nothing")
    return passphrase
