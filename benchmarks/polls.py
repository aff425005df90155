"""What a poll costs: `python -m benchmarks.polls [--ended 10000]`.

A party's node asks the curator every few seconds whether there is news. A store is made with so
many studies that ended and were acknowledged, and one that waits for approvals; then parties poll
it: in one thread through the curator's own functions, and over loopback gRPC with mutual TLS from
processes of their own. Reported are polls in a second, the ratio to the same store without ended
studies, and how long the curator takes to open the store. On a machine that is busy with other
things look at the curator's processor time for a poll: its inverse is what one core serves.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from benchmarks.measuring import keep
from benchmarks.transport import NAMES, clock, make_rings
from common.crypto.key_files import load_identity
from common.crypto.sums.plan import Aggregation
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.service.database import Database
from common.study.document import Member, Study
from common.wire.pki.credentials import CredentialFiles
from common.wire.pki.keyring import Keyring
from curator.server.service import CuratorServer
from curator.store.store import Store
from curator.studies import Studies
from parley.simulation.population import demo_schema_toml
from party.client.dialer import Address, Dialer

POLLERS = 2  # processes; the curator takes what they leave of the machine


@dataclasses.dataclass(frozen=True)
class Polled:
    """One store, polled both ways."""

    ended: int
    opened_s: float
    in_process: float
    over_grpc: float
    cpu_ms: float


def make_study(rings: dict[str, Keyring], number: int) -> Study:
    """A study of everybody."""
    members = tuple(
        Member(name=name, rows=1000, identity=load_identity(ring.identity).public)
        for name, ring in rings.items()
    )
    return Study(
        name=f"study {number}", schema=Schema.from_toml(demo_schema_toml()), members=members,
        epsilon=Fraction(1), method="subn+", aggregation=Aggregation.MASKED,
    )  # fmt: skip


def make_store(path: Path, study: Study, *, ended: int) -> None:
    """A store with an open study and copies of it that ended; their digests are made up."""
    database = Database(path)
    store = Store(database, OsRandomSource())
    document = study.to_toml()
    with database.transaction():
        for number in range(ended):
            digest = number.to_bytes(32, "big")
            database.write(
                "INSERT INTO study VALUES (?, ?, ?, 'done', 5, '', '', 'release', ?, ?)",
                (digest, f"study {number}", document, "2026-01-01", "2026-01-02"),
            )
            for name in NAMES:
                database.write("INSERT INTO member VALUES (?, ?, 1)", (digest, name))
                database.write("INSERT INTO approval VALUES (?, ?, x'', '')", (digest, name))
                _talk(database, digest, name)
    store.propose(study, at="2026-01-03")
    database.close()


def _talk(database: Database, study: bytes, name: str) -> None:
    """What is left of a study's messages."""
    for sequence in range(1, 8):
        place = NAMES.index(name) * 10 + sequence
        database.write(
            "INSERT INTO received VALUES (?, ?, ?, ?, ?, NULL, '[]', '')",
            (study, place, name, sequence, bytes(32)),
        )
        database.write(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?, 1)", (study, name, sequence, bytes(32))
        )


@contextmanager
def opened(path: Path) -> Iterator[tuple[Studies, float]]:
    """The studies of a store, and how long it took to open it."""
    began = time.perf_counter()
    database = Database(path)
    database.check_at_start()
    studies = Studies(
        Store(database, OsRandomSource()), begin=run_of, publish=lambda _: path, clock=clock,
        later=lambda task: task(),
    )  # fmt: skip
    studies.open()
    took = time.perf_counter() - began
    try:
        yield studies, took
    finally:
        database.close()


def polls_in_process(studies: Studies, *, seconds: float) -> float:
    """Polls in a second of one thread, without the network."""
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        for name in NAMES:
            studies.called(name)
            studies.enrol(name, identity=b"", software="benchmark")
            studies.summaries(name, with_ended=False)
        count += len(NAMES)
    return count / took


def poll(files: CredentialFiles, name: str, port: int, seconds: float) -> tuple[int, float]:
    """Polls over one connection, and in how many seconds; runs in a process of its own."""
    address = Address(target=f"127.0.0.1:{port}", proxy=None, files=files, software="benchmark")
    count = 0
    with Dialer(address, clock).dial() as connection:
        connection.enrol(name, b"", with_ended=False)
        began = time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            count += len(connection.enrol(name, b"", with_ended=False))
    return count, took


def polls_over_grpc(
    studies: Studies, ring: Keyring, rings: dict[str, Keyring], *, seconds: float
) -> tuple[float, float]:
    """Polls in a second of several connections together, and our processor time for one."""
    server = CuratorServer(
        studies, files=ring.files, revoked=ring.revoked, listen="127.0.0.1:0", clock=clock,
        software="benchmark",
    )  # fmt: skip
    port = server.start()
    cpu = time.process_time()
    spawn = multiprocessing.get_context("spawn")  # gRPC does not bear a fork
    try:
        with ProcessPoolExecutor(POLLERS, mp_context=spawn) as processes:
            polling = [
                processes.submit(poll, rings[name].files, name, port, seconds)
                for name in NAMES[:POLLERS]
            ]
            done = [each.result() for each in polling]
        cpu = time.process_time() - cpu
        rate = sum(count / took for count, took in done)
        return rate, 1000 * cpu / sum(count for count, _ in done)
    finally:
        server.stop(grace_s=0)


def measure(folder: Path, ended: int, *, seconds: float) -> Polled:
    """Make a store, open it and poll it."""
    ring, rings = make_rings(folder)
    path = folder / "curator.db"
    make_store(path, make_study(rings, ended), ended=ended)
    with opened(path) as (studies, opened_s):
        local = polls_in_process(studies, seconds=seconds)
        network, cpu_ms = polls_over_grpc(studies, ring, rings, seconds=seconds)
    return Polled(ended, opened_s, local, network, cpu_ms)


def main() -> None:
    """Poll a store without ended studies and one with many, print the ratios, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ended", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of every measurement")
    options = parser.parse_args()
    print(f"SQLite {sqlite3.sqlite_version}; {POLLERS} polling processes")
    print(f"{'ended':>8} {'open':>8} {'polls/s':>12} {'over gRPC':>12} {'CPU each':>12}")
    results = []
    for ended in (0, options.ended):
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(Path(scratch), ended, seconds=options.seconds)
        results.append(found)
        print(
            f"{ended:>8,} {found.opened_s:>7.2f}s {found.in_process:>12,.0f} "
            f"{found.over_grpc:>12,.0f} {found.cpu_ms:>9.2f} ms",
            flush=True,
        )
    none, many = results
    print(
        f"{'ratio':>8} {'':>8} {many.in_process / none.in_process:>12.2f} "
        f"{many.over_grpc / none.over_grpc:>12.2f} {many.cpu_ms / none.cpu_ms:>12.2f}"
    )
    keep("polls", results)


if __name__ == "__main__":
    main()
