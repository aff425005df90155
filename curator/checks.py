"""Is a curator ready for a study? One finding for every thing that can stop one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from common.errors import InputError
from common.files import read
from common.service import checks
from common.service.checks import Concern, Finding, certificate, disk, found, open_files
from common.service.version import software
from common.wire.pki import peers
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles
from common.wording import many
from curator.app import CuratorSettings, open_store
from curator.operations import records
from curator.server.servicer import PROTOCOL


def examine_curator(
    settings: CuratorSettings, *, clock: Callable[[], datetime]
) -> Iterator[Finding]:
    """Everything a curator needs."""
    files = CredentialFiles.in_folder(settings.keys, Role.CURATOR)
    yield found("version", lambda: f"{software()}, protocol {PROTOCOL}")
    yield found("clock", lambda: checks.clock(files, clock()))
    yield found("certificate", lambda: certificate(files, Role.CURATOR, clock()))
    yield found("revocations", lambda: _revocations(settings.keys / "revoked.txt"))
    yield found("disk", lambda: disk(settings.folder))
    yield found("releases", lambda: disk(settings.releases))
    yield found("state", lambda: _studies(settings))
    yield found("parties", lambda: _parties(settings))
    yield found("address", lambda: _address(settings.listen))
    yield found("open files", open_files)


def _revocations(path: Path) -> str:
    listed = peers.parse_revocations(read(path).decode(errors="replace"), path)
    return f"{many(len(listed), 'certificate')} revoked"


def _studies(settings: CuratorSettings) -> str:
    database, _ = open_store(settings)
    try:
        database.check()
    finally:
        database.close()
    return many(len(records(settings)), "study")


def _parties(settings: CuratorSettings) -> str:
    """Who called, with which version: another than ours may speak another protocol."""
    database, store = open_store(settings)
    try:
        seen = store.parties()
    finally:
        database.close()
    other = [f"{name!r} runs {version}" for name, version in seen.items() if version != software()]
    if other:
        raise Concern(f"{', '.join(other)}; we run {software()}: use one version")
    return f"{len(seen)} have called, all with {software()}" if seen else "nobody has called yet"


def _address(listen: str) -> str:
    """Whether the port can be had; one that is taken is most likely taken by the curator itself."""
    host, _, port = listen.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(
                f"{listen}: cannot be listened on ({error}); is a curator running there already?"
            ) from error
    return f"{listen} is free"
