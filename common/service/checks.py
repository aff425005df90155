"""The checks that both services share: `parley doctor` asks whether a service is ready.

A finding is made of what a check returns or raises. No check needs a study to be under way.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from common.errors import InputError, ParleyError
from common.service.process import most_open_files, running_in
from common.wire.pki.certificates import Role, expiry_warning, subject_of
from common.wire.pki.credentials import CredentialFiles

_LEAST_FREE_BYTES = 1 << 30
_FEW_OPEN_FILES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check."""

    check: str  # what was looked at
    ok: bool  # whether a study can be run
    words: str  # what was found, and what to do about it
    warning: bool = False  # whether an operator should look at it nevertheless


class Concern(Exception):  # not an error: the check passed
    """Something that stops no study, and yet an operator should look at it."""


def found(check: str, look: Callable[[], str]) -> CheckResult:
    """Make a finding of what a check returns or raises."""
    try:
        return CheckResult(check=check, ok=True, words=look())
    except Concern as concern:
        return CheckResult(check=check, ok=True, words=str(concern), warning=True)
    except ParleyError as error:
        return CheckResult(check=check, ok=False, words=" ".join(str(error).split()))


def certificate(files: CredentialFiles, role: Role, now: datetime) -> str:
    """Check the certificate; say whom it names, and until when."""
    credentials = files.load()
    credentials.check(role=role, at=now)
    certificate = credentials.certificate
    warning = expiry_warning(certificate, at=now)
    if warning is not None:
        raise Concern(warning)
    until = f"until {certificate.not_valid_after_utc:%Y-%m-%d}"
    return f"{subject_of(certificate).name!r}, {until}"


def open_files() -> str:
    """Check the hard limit of open files; the curator raises its own soft limit.

    Every connection takes one, also without a certificate.
    """
    most = most_open_files()
    if most < _FEW_OPEN_FILES:
        raise Concern(
            f"at most {most:,} files and connections: so many callers without a certificate keep "
            "parties out. Set LimitNOFILE=65536 in the unit, or `ulimit -Hn 65536`"
        )
    return f"up to {most:,} files and connections"


def disk(folder: Path) -> str:
    """Check that a folder has room and can be written, or made where it is missing."""
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        descriptor, probe = tempfile.mkstemp(prefix=".doctor.", dir=place)
        os.close(descriptor)
        Path(probe).unlink()
        free = shutil.disk_usage(place).free
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    if free < _LEAST_FREE_BYTES:
        raise InputError(f"{folder}: only {free / 1e9:.1f} GB free. Make room for at least 1 GB")
    return f"{folder}: {free / 1e9:.0f} GB free"


def state_folder(folder: Path) -> str:
    """Check the room for the state, in a folder that other users cannot enter."""
    words = disk(folder)
    if folder.exists() and folder.stat().st_mode & 0o007:
        raise Concern(f"{folder} is open to every user of this machine: chmod 700 {folder}")
    copies = sorted(path.name for path in folder.glob("*.db.version-*"))
    if copies:
        raise Concern(
            f"{folder}: {', '.join(copies)} is from before an upgrade, and may hold keys of "
            "studies that were running. Delete it when the service runs well"
        )
    return words


def running(folder: Path) -> str:
    """Say which process runs on the folder; refuse a folder on which none does."""
    process = running_in(folder)
    if process is None:
        raise InputError(f"{folder}: no service runs on it. Start the service")
    return process


def clock(files: CredentialFiles, now: datetime) -> str:
    """Refuse a clock that is before the consortium's authority was made."""
    authority = files.load().authorities[0]
    if now < authority.not_valid_before_utc:
        raise InputError(
            f"it is {now:%Y-%m-%d %H:%M} here, before the consortium's authority was made "
            f"({authority.not_valid_before_utc:%Y-%m-%d %H:%M}). Set the clock"
        )
    return f"{now:%Y-%m-%d %H:%M} UTC"
