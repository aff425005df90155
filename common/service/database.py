"""The one SQLite file in which a node keeps what must survive a crash.

At a party that is the ledger and the journal, at the curator the store. What belongs together
shares a file because it shares transactions: a charge, the message that caused it and the answer it
pays for are on disk together or not at all. A transaction that ends without an error has been
synced to the disk; one that is not `synced` survives a kill at once, and a power failure when a
later transaction is synced. Transactions never overtake each other.

A service writes ahead into a log beside the file (SQLite's WAL): a transaction costs one sync
instead of four. Other connections read and write through the same log, and only the service moves
its pages into the file: whenever secrets were wiped, so that the log does not keep them, when it
has grown, and when the service opens and closes the file. A stopped service leaves one plain file.

Threads may share a database: a transaction holds the others off until it ends.

A file of an earlier version is migrated when it is opened (`common.service.migrations`): alone in
the folder, in one transaction, with a copy beside it of the file as it was.

The file is readable by its owner only. Deleted secrets are overwritten in it, but a disk may keep
old blocks: put the file on an encrypted disk if that matters.
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from common.errors import InputError, LocalError
from common.files import flush
from common.service.migrations import FIRST, MIGRATIONS, newest, statements
from common.service.process import FolderInUse, alone_in, is_alone_in

logger = logging.getLogger(__name__)

Value = int | str | bytes | None
Kind = TypeVar("Kind")

_PRAGMAS = ("synchronous=FULL", "secure_delete=ON", "foreign_keys=ON", "wal_autocheckpoint=0")
_LOG_PAGES = 1_000  # of a log that a service moves into the file
_BUSY_S = 30  # another command of the same owner may be writing to the file
_LOG_BUSY_MS = 200  # another one may be reading what the service would move; tried again later
_START_S = 20.0  # for a check at the start of a service
_CHECK_EVERY = 1_000  # steps of SQLite, between two looks at the clock


class OtherTablesError(InputError):
    """The tables of a file are of a version that this program cannot bring to its own."""


class Database:
    """A SQLite file, open in one process at a time; others may read it meanwhile (`read_only`).

    With `any_version`, a file that is only read may be of any version, also an unknown one. With
    `logged`, which is for the one service on the file, transactions are written ahead.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        any_version: bool = False,
        logged: bool = False,
    ) -> None:
        self.path = path
        self.commits = 0  # of this process
        self._lock = threading.RLock()
        self._logged, self._has_log, self._synced = logged, False, True
        self._wiped = False  # whether the log may keep what was wiped
        try:
            if not read_only:
                make_private(path)
            # Autocommit; transactions are begun explicitly, and take the write lock at once. A read
            # lets go of the file when it is done.
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}", uri=True,
                isolation_level=None, check_same_thread=False, timeout=_BUSY_S,
            )  # fmt: skip
        except (OSError, sqlite3.Error) as error:
            raise InputError(_explained(path, "cannot be opened", error)) from error
        self._execute_script("".join(f"PRAGMA {pragma};" for pragma in _PRAGMAS))
        # One statement sees one state of the file, whatever another process is just making of it.
        ((written, tables),) = self.rows(
            "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version"
        )
        self.version: int = written  # of the tables
        if not (read_only and any_version):
            self._reach_version(newest(MIGRATIONS), is_new=tables == 0, read_only=read_only)

    def _reach_version(self, known: int, *, is_new: bool, read_only: bool) -> None:
        """Bring the tables to the version of this program; refuse a file that cannot be brought."""
        if self.version == 0 and is_new:
            self._execute_script(f"PRAGMA user_version={known};")
            self.version = known
        elif FIRST <= self.version < known and not read_only:
            try:
                self._migrate(known)
            except BaseException:
                self._connection.close()
                raise
        elif self.version != known:
            self._connection.close()
            raise OtherTablesError(_of_another_version(self.path, self.version, known))

    def _migrate(self, known: int) -> None:
        """Carry out the migrations that the file does not have, once, all or none."""
        with self._alone(), self.transaction():
            ((written,),) = self.rows("PRAGMA user_version")
            if written < known:  # or another command was faster
                copy = self._keep_copy(written)
                tables = {name for (name,) in self.rows("SELECT name FROM sqlite_schema")}
                for statement in statements(MIGRATIONS, written, tables):
                    self.write(statement)
                self.write(f"PRAGMA user_version={known}")
                logger.info(
                    "%s: its tables are brought from version %d to %d. The file as it was is in "
                    "%s. It may hold keys of running studies: delete it when the service runs well",
                    self.path, written, known, copy,
                )  # fmt: skip
        self.version = known

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold off services, one of the version before among them, which would not notice."""
        folder = self.path.parent
        if is_alone_in(folder):
            yield
            return
        try:
            with alone_in(folder, service="service"):
                yield
        except FolderInUse as error:
            raise InputError(
                f"{self.path}: it was written by an earlier version of parley, and a service runs "
                f"on it ({error.holder}). Stop that service, and start it in this version"
            ) from None

    def _keep_copy(self, written: int) -> Path:
        """Copy the file beside itself while nothing writes to it; replace a copy made before."""
        copy = self.path.with_name(f"{self.path.name}.version-{written}")
        scratch = copy.with_name(f".{copy.name}")
        try:
            scratch.unlink(missing_ok=True)
            make_private(scratch)
            # Another connection: closing a plain file would let go of this connection's locks.
            with (
                closing(
                    sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
                ) as file,
                closing(sqlite3.connect(scratch)) as target,
            ):
                file.backup(target)
            flush(scratch)
            scratch.replace(copy)
            flush(copy.parent)
        except (OSError, sqlite3.Error) as error:
            raise LocalError(
                f"{copy}: the copy before an upgrade cannot be written ({error}). Nothing was "
                "changed. Make room on the disk, then start again"
            ) from error
        return copy

    @property
    def is_later(self) -> bool:
        """Whether a later version than this program wrote the file."""
        return self.version > newest(MIGRATIONS)

    def add_tables(self, tables: str) -> None:
        """Create the tables that are not there yet."""
        with self._lock:
            self._begin_log()
            if self._has_log:
                self._sync_next(synced=False)  # lost tables are created again
            self._execute_script(tables)

    def _execute_script(self, statements: str) -> None:
        try:
            self._connection.executescript(statements)
        except sqlite3.Error as error:
            self._connection.close()
            raise InputError(_explained(self.path, "cannot be opened", error)) from error

    def check(self, *, within_s: float = math.inf) -> bool:
        """Read the whole file, unless that takes too long; LocalError if it is damaged."""
        until = time.monotonic() + within_s
        with self._lock:
            self._connection.set_progress_handler(lambda: time.monotonic() > until, _CHECK_EVERY)
            try:
                ((finding,), *_) = self._connection.execute("PRAGMA quick_check(1)").fetchall()
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                    return False
                raise LocalError(_explained(self.path, "could not be read", error)) from error
            finally:
                self._connection.set_progress_handler(None, 0)
        if finding != "ok":
            finding = " ".join(finding.split())
            raise LocalError(f"{self.path}: it is damaged ({finding}). {_REMEDIES['damaged']}")
        return True

    def check_at_start(self) -> None:
        """Refuse a damaged file; of a large file, only a part is read."""
        if not self.check(within_s=_START_S):
            logger.warning(
                "%s: not all of it was checked for damage in %d s. Run `parley doctor`, which "
                "reads all of it", self.path, _START_S,
            )  # fmt: skip

    def close(self) -> None:
        with self._lock:  # not under the feet of a thread that reads
            self._end_log()
            self._connection.close()

    def __enter__(self) -> Self:
        """Be open for the length of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Write all changes of a block, or none; inside another transaction, as part of that.

        What a power failure may take back, because it can be done again, need not be `synced`: it
        is, at the latest, with the next transaction that is.

        Raises:
            LocalError: the file cannot be written, for example because the disk is full.
        """
        with self._lock:
            if self._connection.in_transaction:
                if synced and not self._synced:
                    raise LocalError("a transaction is synced only if the one around it is")
                yield
                return
            self._begin_log()
            self._require_log()
            try:
                self._sync_next(synced=synced or not self._has_log)
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
                self.commits += 1
            except sqlite3.Error as error:
                self._roll_back()
                raise LocalError(
                    f"{self.path}: it could not be written ({error}). Nothing was charged and "
                    "nothing was sent. Make room or repair the disk, then start again: the study "
                    "goes on from here"
                ) from error
            except BaseException:
                self._roll_back()
                raise
            self._empty_log()

    def _sync_next(self, *, synced: bool) -> None:
        """Say whether the next transactions are synced."""
        if synced is not self._synced:
            self._connection.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            self._synced = synced

    def _roll_back(self) -> None:
        # SQLite has already rolled back by itself after some errors, a full disk among them.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _begin_log(self) -> None:
        """Write ahead from here on, if this is a service and the file system can share memory."""
        if not self._logged or self._has_log or self._connection.in_transaction:
            return
        with suppress(sqlite3.Error), self._waiting_briefly():  # tried again
            ((mode,),) = self._connection.execute("PRAGMA journal_mode=WAL").fetchall()
            self._has_log = mode == "wal"
            self._connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        self._wiped = True  # perhaps: by a service that was killed before it emptied the log
        self._empty_log()

    def _require_log(self) -> None:
        """Refuse to write into a log that was removed: a restart would not find it."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if self._has_log and not log.exists():
            raise LocalError(
                f"{log}: it was removed while the service runs. Stop the service by SIGTERM, which "
                "saves what was in it, and let no other program change the folder"
            )

    def _empty_log(self) -> None:
        """Move all pages into the file and cut the log off, once a wipe is in it.

        What was committed stays so if that fails, and the next transaction tries again.
        """
        if not self._wiped:
            return
        with suppress(sqlite3.Error), self._waiting_briefly():
            ((busy, *_),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._wiped = bool(busy)
        if self._wiped:
            logger.warning(
                "%s-wal: it could not be emptied, and may keep what was wiped. This is tried again "
                "with the next change, and when the service starts", self.path,
            )  # fmt: skip

    def _end_log(self) -> None:
        """Leave one plain file, unless another process is using the log."""
        self._empty_log()
        if self._has_log:
            with suppress(sqlite3.Error), self._waiting_briefly():
                self._connection.execute("PRAGMA journal_mode=DELETE")
            self._has_log = False

    @contextmanager
    def _waiting_briefly(self) -> Iterator[None]:
        self._connection.execute(f"PRAGMA busy_timeout={_LOG_BUSY_MS}")
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={_BUSY_S * 1000}")

    def wipe(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Execute a statement that forgets a secret: the log will not keep it, either."""
        self.write(statement, values)
        self._wiped = True

    def write(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Execute a statement that changes something, inside a transaction."""
        if not self._connection.in_transaction:
            raise LocalError("a change needs a transaction around it")
        self._connection.execute(statement, values)

    def records(
        self,
        kind: Callable[..., Kind],
        query: str,
        values: Sequence[Value] = (),
        **converters: Callable[[Any], object],
    ) -> list[Kind]:
        """Return the rows of a query as objects whose fields have the names of its columns.

        A converter makes the value of its field out of what is stored.
        """
        try:
            with self._lock:
                cursor = self._connection.execute(query, values)
                names = [column[0] for column in cursor.description]
                rows = [dict(zip(names, row, strict=True)) for row in cursor]
        except sqlite3.Error as error:
            raise LocalError(_explained(self.path, "could not be read", error)) from error
        for name, converted in converters.items():
            for row in rows:
                row[name] = converted(row[name])
        return [kind(**row) for row in rows]

    def rows(self, query: str, values: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; LocalError if the file cannot be read."""
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise LocalError(_explained(self.path, "could not be read", error)) from error


def _of_another_version(path: Path, written: int, known: int) -> str:
    which = "a later" if written > known else "an earlier"
    opens = FIRST <= written < known
    remedy = "start the service in this version once" if opens else "run the version that wrote it"
    return (
        f"{path}: it was written by {which} version of parley. Its tables are of version "
        f"{written}, and this program knows {known}. Nothing was changed; {remedy}"
    )


_REMEDIES = {
    "damaged": "Stop the service, keep the file aside, and put its newest copy in its place; "
    "docs/operations.md, under Backups, says what an older copy forgets",
    "full": "Make room on the disk, then start again",
    "read-only": "Let the service's user write to the file and its folder",
    "locked": "Another process holds it: find that and end it",
    "unknown": "Look at the file, its folder and the disk, and let no other program use it",
}
_CAUSES = {
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_CANTOPEN: "read-only",
    sqlite3.SQLITE_BUSY: "locked",
}


def _explained(path: Path, problem: str, error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
    cause = _CAUSES.get(code, "unknown")
    return f"{path}: it {problem} ({error}). {_REMEDIES[cause]}"


def make_private(path: Path) -> None:
    """Create a file with mode 0600, before SQLite would create it with another mode."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
