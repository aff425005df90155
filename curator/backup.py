"""Backups of a curator's state. A study that was running in one cannot go on from it: it ends."""

from __future__ import annotations

from pathlib import Path

from common.privacy.randomness import OsRandomSource
from common.service import backup
from common.service.backup import About
from common.service.database import Database
from common.service.process import alone_in
from curator.app import STORE, CuratorSettings
from curator.store.records import Record, StudyState
from curator.store.store import Store


def back_up(settings: CuratorSettings, out: Path, *, at: str, software: str) -> About:
    """Copy the state of a curator, which may be running; LocalError if it is damaged."""
    with backup.snapshot(settings.folder / STORE) as copy:
        return backup.write(copy, out=out, role="curator", at=at, software=software)


def restore(settings: CuratorSettings, file: Path, about: About, *, at: str) -> list[Record]:
    """Put a copy into the folder of a curator that does not run; the studies that will end by it.

    The parties have messages of a running study that the copy does not know of, so the curator ends
    such a study when it is started, and tells them.

    Raises:
        InputError: the curator runs, the folder has a state that can be read, or the copy is
            damaged.
    """
    with (
        alone_in(settings.folder, service="curator"),
        backup.restored(file, about, settings.folder) as copy,
        Database(copy) as database,
    ):
        store = Store(database, OsRandomSource())
        running = [each for each in store.records() if each.state is StudyState.RUNNING]
        for record in running:
            reason = f"the curator was restored from a backup of {about.taken_at}"
            store.ask_to_abort(record.study, reason, at=at)
    return running
