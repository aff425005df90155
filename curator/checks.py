"""The checks of `parley doctor curator`: a finding for everything that can stop a study."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from common.errors import InputError
from common.service import checks
from common.service.checks import (
    CheckResult,
    Concern,
    certificate,
    disk,
    found,
    open_files,
    running,
    state_folder,
)
from common.service.migrations import StateOwner
from common.service.process import Clock, running_in, software
from common.service.state import has_file, is_there
from common.wire.catalogue import PROTOCOL
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles
from common.wire.pki.peers import listed_in
from common.wording import many
from curator.settings import CuratorSettings, open_store
from curator.waiting import in_words, waited

_HANDSHAKE_S = 3.0
# Where a server on every address is reached.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def examine_curator(
    settings: CuratorSettings, *, clock: Clock, monitored: bool = False
) -> Iterator[CheckResult]:
    """Check everything a curator needs; if it is monitored, also that it runs."""
    files = CredentialFiles.in_folder(settings.keys, Role.CURATOR)
    yield found("version", lambda: f"{software()}, protocol {PROTOCOL}")
    yield found("clock", lambda: checks.clock(files, clock()))
    yield found("certificate", lambda: certificate(files, Role.CURATOR, clock()))
    yield found("revocations", lambda: _revocations(settings.keys / "revoked.txt"))
    yield found("disk", lambda: state_folder(settings.folder))
    yield found("releases", lambda: disk(settings.releases))
    yield found("state", lambda: _studies(settings))
    if has_file(settings.folder, StateOwner.CURATOR):
        yield found("parties", lambda: _parties(settings))
        yield found("waiting", lambda: _waiting(settings, clock()))
        if settings.contacts:
            yield found("contacts", lambda: _contacts(settings))
    yield found("address", lambda: _address(settings, files))
    yield found("open files", open_files)
    if monitored:
        yield found("running", lambda: running(settings.folder))


def _revocations(path: Path) -> str:
    return f"{many(len(listed_in(path)), 'certificate')} revoked"


def _studies(settings: CuratorSettings) -> str:
    if not is_there(settings.folder, StateOwner.CURATOR):
        return "none yet: it begins with `parley curator study add`, or with `serve`"
    with open_store(settings) as store:
        store.check()
        return many(len(store.records()), "study")


def _parties(settings: CuratorSettings) -> str:
    """Compare the versions of the parties that called with ours."""
    with open_store(settings) as store:
        versions = {name: party.software for name, party in store.parties().items()}
    other = [
        f"{name!r} runs {version}" for name, version in versions.items() if version != software()
    ]
    if other:
        raise Concern(f"{', '.join(other)}; we run {software()}: use one version")
    return (
        f"{len(versions)} have called, all with {software()}"
        if versions
        else "no party has called yet"
    )


def _contacts(settings: CuratorSettings) -> str:
    """Look for contacts of owners that nobody knows: a misspelt name is never written to."""
    contacts = settings.contacts or {}
    with open_store(settings) as store:
        known = {name for record in store.records() for name in store.members(record.study)}
        known |= store.parties().keys()
    unknown = sorted(contacts.keys() - known)
    if unknown and known:
        raise Concern(
            f"no owner here is called {', '.join(unknown)}; known: {', '.join(sorted(known))}"
        )
    return f"of {many(len(contacts), 'owner')}"


def _waiting(settings: CuratorSettings, now: datetime) -> str:
    with open_store(settings) as store:
        under_way = [record for record in store.records() if not record.state.over]
        stopped = [f"{record.name!r}: {record.cause}" for record in under_way if record.cause]
        late = [
            f"{record.name!r} waits for {in_words(waits, step=record.step)}"
            for record in under_way
            if (waits := store.awaited(record.study))
            and any(waited(wait.since, now) > settings.step_deadline for wait in waits)
        ]
    if stopped or late:
        raise Concern("; ".join([*stopped, *(f"overdue: {words}" for words in late)]))
    return f"{many(len(under_way), 'study')} under way, none overdue"


def _address(settings: CuratorSettings, files: CredentialFiles) -> str:
    """Check that the port is free, or has the curator that runs on our folder."""
    host, _, port = settings.listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except (OSError, ValueError, OverflowError) as error:
            process = running_in(settings.folder)
            if process is not None and _answers(host, int(port), files):
                return f"{settings.listen}: our curator ({process}) answers with our certificate"
            raise InputError(
                f"{settings.listen}: cannot be listened on ({error}), and what is there is not the "
                f"curator of {settings.folder}. Stop it, or change `listen`"
            ) from error
    return f"{settings.listen} is free"


def _answers(host: str, port: int, files: CredentialFiles) -> bool:
    """Return whether a handshake with the address shows our own certificate."""
    credentials = files.load()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate itself is compared
    context.load_verify_locations(cadata=credentials.authority_pem.decode("ascii"))
    context.set_alpn_protocols(["h2"])
    here = _LOOPBACK.get(host, host)
    try:
        with (
            socket.create_connection((here, port), timeout=_HANDSHAKE_S) as connection,
            context.wrap_socket(connection) as shaken,
        ):
            shown = shaken.getpeercert(binary_form=True)
    except OSError:
        return False
    return shown == credentials.certificate.public_bytes(serialization.Encoding.DER)
