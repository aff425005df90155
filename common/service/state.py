"""Whether a service's state is in its folder, and whose the state is.

Opening a SQLite file makes it. So a command that only reads looks here first: where there is no
state it makes none, because an empty state looks like one in which nothing ever happened.
"""

from __future__ import annotations

from pathlib import Path

from common.errors import InputError
from common.service.database import Database
from common.service.migrations import StateOwner
from common.service.process import is_alone_in

FILES = {StateOwner.CURATOR: "curator.db", StateOwner.PARTY: "party.db"}


def has_file(folder: Path, service: StateOwner) -> bool:
    """Say whether a folder has the file of a service; one of no bytes is what a crash left."""
    file = folder / FILES[service]
    return file.is_file() and file.stat().st_size > 0


def is_there(folder: Path, service: StateOwner) -> bool:
    """Say whether a folder has the state of a service; InputError if it is of another service."""
    if has_file(folder, service):
        return True
    others = [
        other for other in StateOwner if other is not service and (folder / FILES[other]).exists()
    ]
    if others:
        raise InputError(
            f"{folder}: this is the state folder of a {others[0].value}. Name the folder of the "
            f"{service.value} in its settings (`folder`)"
        )
    return False


def opened(folder: Path, service: StateOwner) -> Database:
    """Open the state of a service; InputError if the file holds the state of another one.

    The service that is alone in the folder writes ahead.
    """
    database = Database(folder / FILES[service], logged=is_alone_in(folder))
    tables = {name for (name,) in database.rows("SELECT name FROM sqlite_schema")}
    if tables and StateOwner.of(tables) is not service:
        database.close()
        raise InputError(
            f"{database.path}: this is not the state of a {service.value}, but of a "
            f"{StateOwner.of(tables).value}. Put the right file in its place, or restore a backup"
        )
    return database
