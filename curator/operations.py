"""What the commands of a curator's operator do with the curator's state, beside a running curator.

A study that was running in a backup cannot go on from it. The parties have messages that the backup
does not know of, so a curator that is restored ends the study when it is started, and tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from common.crypto.key_files import load_public_identity
from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.service import backup
from common.service.backup import About
from common.service.database import Database
from common.service.process import alone_in
from common.study.ids import StudyId
from common.study.members import Member
from curator.live_role import DECLARED, declaration
from curator.settings import STORE, CuratorSettings
from curator.store.records import Record, StudyState
from curator.store.store import Store
from curator.waiting import ask_to_miss

MOST_REASON = 500
_LOOK_EVERY_S = 0.2


def member_of(written: str) -> Member:
    """Read a party from NAME:ROWS:FILE, where the file is its identity.pub."""
    parts = written.split(":", 2)
    if len(parts) != 3 or not parts[1].isdecimal():
        raise InputError(f"--party {written!r}: expected NAME:ROWS:FILE, as north:10000:north.pub")
    name, rows, path = parts
    return Member(name=name, rows=int(rows), identity=load_public_identity(Path(path)))


def find_record(store: Store, written: str) -> Record:
    """Return the one study of that name or digest; InputError if there are none or more."""
    records = [
        record
        for record in store.records()
        if record.name == written or record.study.hex().startswith(written.lower())
    ]
    if len(records) != 1:
        many = "more than one study" if records else "no study"
        raise InputError(
            f"{written!r}: {many} here has this name or digest. See `parley curator study list`"
        )
    return records[0]


def last_calls(store: Store, record: Record) -> dict[str, str]:
    """Return when each party of a study under way called last; "" for a party that never did."""
    if record.state.over:
        return {}
    calls = {name: party.seen_at for name, party in store.parties().items()}
    return {name: calls.get(name, "") for name in store.members(record.study)}


def declared(store: Store, study: StudyId) -> dict[str, str]:
    """Return the parties that left a study, which went on, and what is known about why.

    A study that 0.2.0 began has its declarations in the inbox, until it ends.
    """
    before = dict(map(declaration, store.inbox.bodies(study, DECLARED)))
    return before | {absence.party: absence.words for absence in store.absences(study)}


def abort(
    store: Store,
    record: Record,
    reason: str,
    *,
    at: str,
    wait_s: float,
    sleep: Callable[[float], None],
) -> Record:
    """Ask the curator to end a study, and wait a while; return the study's record then.

    The request is in the curator's file: a running curator finds it within a second, and another
    ends the study when it is started.

    Raises:
        InputError: the study is over, or the reason cannot be sent.
    """
    if record.state.over:
        raise InputError(f"study {record.name!r}: it is over: {record.state.value}")
    if not 0 < len(reason) <= MOST_REASON or not reason.isprintable():
        raise InputError(
            f"--reason: write one line of up to {MOST_REASON} characters. Parties read it"
        )
    store.ask_to_abort(record.study, reason, at=at)
    _wait_until(lambda: store.record(record.study).state.over, wait_s, sleep)
    return store.record(record.study)


def declare_missing(
    store: Store,
    record: Record,
    owner: str,
    *,
    at: str,
    wait_s: float,
    sleep: Callable[[float], None],
) -> bool:
    """Ask the curator to go on without an owner, and wait a while; return whether it has."""
    ask_to_miss(store, record, owner, at=at)
    return _wait_until(lambda: (record.study, owner) not in store.asked_to_miss(), wait_s, sleep)


def _wait_until(
    condition: Callable[[], bool], wait_s: float, sleep: Callable[[float], None]
) -> bool:
    for _ in range(round(wait_s / _LOOK_EVERY_S)):
        if condition():
            return True
        sleep(_LOOK_EVERY_S)
    return False


def back_up(settings: CuratorSettings, out: Path, *, at: str, software: str) -> About:
    """Copy the state of a curator, which may be running; LocalError if it is damaged."""
    with backup.snapshot(settings.folder / STORE) as copy:
        return backup.write(copy, out=out, role="curator", at=at, software=software)


def restore(settings: CuratorSettings, file: Path, about: About, *, at: str) -> list[Record]:
    """Put a backup into the folder of a curator that does not run; return the studies it ends.

    Raises:
        InputError: the curator runs, the folder has a state that can be read, or the backup is
            damaged.
    """
    with (
        alone_in(settings.folder, service="curator"),
        backup.restored(file, about, settings.folder) as copy,
        Database(copy) as database,
    ):
        store = Store(database, OsRandomSource())
        running = [record for record in store.records() if record.state is StudyState.RUNNING]
        for record in running:
            reason = f"the curator was restored from a backup of {about.taken_at}"
            store.ask_to_abort(record.study, reason, at=at)
    return running
