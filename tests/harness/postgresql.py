"""A PostgreSQL server of its own, on a local socket, for as long as a test needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import adbc_driver_postgresql.dbapi  # type: ignore[import-untyped]  # has no stubs


def server_programs() -> Path | None:
    """Return the folder of initdb and pg_ctl; None if there is no server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(found[-1]) if found else shutil.which("initdb")
    return None if initdb is None else Path(initdb).parent


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        folder: of its socket.
        password: of its owner.
    """

    folder: Path
    password: str

    def uri(
        self, user: str = "owner", password: str | None = None, database: str = "postgres"
    ) -> str:
        """Return an address of the server; `password` with its colon, the owner's if not given."""
        word = f":{self.password}" if password is None else password
        return f"postgresql://{user}{word}@/{database}?host={self.folder}"

    def execute(self, *statements: str) -> None:
        """Run statements as the owner, in one transaction."""
        with closing(adbc_driver_postgresql.dbapi.connect(self.uri())) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()


@contextmanager
def running_server(programs: Path, password: str) -> Iterator[Server]:
    """Run a server for as long as it is needed."""
    # A server refuses to run as root, and the path of a socket is short.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pg."))
    try:
        secret = folder / "password"
        secret.write_text(password)
        if as_user:
            for path in (folder, secret):
                shutil.chown(path, "postgres")

        def run(program: str, *arguments: str | Path) -> None:
            subprocess.run(
                [*as_user, programs / program, "-D", folder / "data", *arguments],
                check=True, stdout=subprocess.DEVNULL, cwd="/",
            )  # fmt: skip

        run("initdb", "-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield Server(folder, password)
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
