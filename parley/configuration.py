"""The settings of the two services, as the command line puts them together.

Defaults, then the settings file, then `PARLEY_CURATOR_*` or `PARLEY_PARTY_*`, then flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from common.settings import Settings, read_settings
from curator import app as curator_app
from curator.app import CuratorSettings
from party import app as party_app
from party.app import PartySettings
from party.sources.settings import SourceSettings


def software() -> str:
    """What we tell the other side we are."""
    try:
        return f"parley {metadata.version('parley')}"
    except metadata.PackageNotFoundError:  # run from a checkout
        return "parley"


def curator_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Settings[CuratorSettings]:
    """How a curator is to run."""
    return read_settings(
        CuratorSettings,
        prefix=curator_app.PREFIX,
        file=file,
        environment=environment,
        flags=flags or {},
    )


def party_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Settings[PartySettings]:
    """How a party's node is to run; `source_settings` reads where its rows are."""
    return read_settings(
        PartySettings,
        prefix=party_app.PREFIX,
        file=file,
        environment=environment,
        flags=flags or {},
        tables=party_app.TABLES,
    )


def source_settings(
    settings: Settings[PartySettings], file: Path | None, environment: Mapping[str, str]
) -> SourceSettings:
    """The owner's table; paths in the file are relative to it."""
    folder = Path() if file is None else file.parent
    return party_app.source_of(settings.tables, folder=folder, environment=environment)
