"""Studies from the curator operator's side: parties as a command line names them, and states."""

from __future__ import annotations

from pathlib import Path

from common.crypto.identity_file import load_public_identity
from common.errors import InputError
from common.study import Member, Study
from curator.app import CuratorSettings, open_store
from curator.records import Record, StudyState


def member_of(written: str) -> Member:
    """A party from NAME:ROWS:FILE, where the file is its identity.pub.

    Raises:
        InputError: naming what is wrong with it.
    """
    parts = written.split(":", 2)
    if len(parts) != 3 or not parts[1].isdecimal():
        raise InputError(f"--party {written!r}: expected NAME:ROWS:FILE, as north:10000:north.pub")
    name, rows, path = parts
    return Member(name=name, rows=int(rows), identity=load_public_identity(Path(path)))


def records(settings: CuratorSettings) -> list[tuple[Record, tuple[str, ...]]]:
    """Every study of a curator, oldest first, and who has not approved it yet."""
    database, store = open_store(settings)
    try:
        found = []
        for document in store.documents(skip=0):
            study = Study.from_toml(document, where="a study in the curator's store")
            record = store.record(study.digest)
            waiting: tuple[str, ...] = ()
            if record.state is StudyState.WAITING:
                approved = store.approvals(study.digest)
                waiting = tuple(m.name for m in study.members if m.name not in approved)
            found.append((record, waiting))
        return found
    finally:
        database.close()


def find_record(settings: CuratorSettings, wanted: str) -> tuple[Record, tuple[str, ...]]:
    """The one study of that name or digest.

    Raises:
        InputError: there is none, or more than one.
    """
    found = [
        pair
        for pair in records(settings)
        if pair[0].name == wanted or pair[0].study.hex().startswith(wanted.lower())
    ]
    if len(found) != 1:
        many = "more than one study" if found else "no study"
        raise InputError(f"{many} here is {wanted!r}; see `parley curator study list`")
    return found[0]
