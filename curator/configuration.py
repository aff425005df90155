"""The settings of the curator's service, as the command line puts them together.

Defaults, then the settings file, then `PARLEY_CURATOR_*`, then flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from common.service.settings import Settings, read_settings
from curator import app as curator_app
from curator.app import CuratorSettings


def curator_settings(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Settings[CuratorSettings]:
    return read_settings(
        CuratorSettings,
        prefix=curator_app.PREFIX,
        file=file,
        environment=environment,
        flags=flags or {},
    )
