"""The settings of an owner's node, as the command line puts them together.

Defaults, then the settings file, then `PARLEY_PARTY_*`, then flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from common.service.settings import Settings, read_settings
from party import app as party_app
from party.app import PartySettings
from party.sources.settings import OwnersTable


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
) -> OwnersTable:
    """The owner's table; paths in the file are relative to it."""
    folder = Path() if file is None else file.parent
    return party_app.source_of(settings.tables, folder=folder, environment=environment)
