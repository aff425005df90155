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
import multiprocessing
import sqlite3
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measuring import keep, show
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Schema
from common.service.database import Database
from common.service.process import system_clock
from common.study.document import Study
from common.wire.pki.credentials import CredentialFiles
from curator.store.store import Store
from curator.studies import Studies
from parley.simulation.population import demo_schema_toml
from party.client.dialer import Address, Dialer
from tests.harness.consortium import Consortium

NAMES = ("north", "east", "south")
POLLERS = 2  # processes; the curator takes what they leave of the machine


@dataclass(frozen=True)
class Polled:
    """One store, polled both ways."""

    ended: int
    opened_s: float
    in_process: float
    over_grpc: float
    cpu_ms: float


def make_store(path: Path, study: Study, *, ended: int) -> None:
    """Make a store with an open study and copies of it that ended; their digests are made up."""
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
    """Add what is left of a study's messages."""
    for sequence in range(1, 8):
        place = NAMES.index(name) * 10 + sequence
        database.write(
            "INSERT INTO received VALUES (?, ?, ?, ?, ?, NULL, '[]', '')",
            (study, place, name, sequence, bytes(32)),
        )
        database.write(
            "INSERT INTO outgoing VALUES (?, ?, ?, ?, 1)", (study, name, sequence, bytes(32))
        )


def polls_in_process(studies: Studies, *, seconds: float) -> float:
    """Return polls in a second of one thread, without the network."""
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        for name in NAMES:
            studies.called(name)
            studies.enrol(name, identity=b"", software="benchmark")
            studies.summaries(name, with_ended=False)
        count += len(NAMES)
    return count / took


def poll(files: CredentialFiles, name: str, port: int, seconds: float) -> tuple[int, float]:
    """Poll over one connection in this process; return how often, and in how many seconds."""
    address = Address(target=f"127.0.0.1:{port}", proxy=None, files=files, software="benchmark")
    count = 0
    with Dialer(address, system_clock).dial() as connection:
        connection.enrol(name, b"", with_ended=False)
        began = time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            count += len(connection.enrol(name, b"", with_ended=False))
    return count, took


def polls_over_grpc(consortium: Consortium, *, seconds: float) -> tuple[float, float]:
    """Return polls in a second of several connections, and our processor time for one, in ms."""
    cpu = time.process_time()
    spawn = multiprocessing.get_context("spawn")  # gRPC does not bear a fork
    with ProcessPoolExecutor(POLLERS, mp_context=spawn) as processes:
        polling = [
            processes.submit(
                poll, consortium.parties[name].ring.files, name, consortium.curator.port, seconds
            )
            for name in NAMES[:POLLERS]
        ]
        done = [each.result() for each in polling]
    cpu = time.process_time() - cpu
    rate = sum(count / took for count, took in done)
    return rate, 1000 * cpu / sum(count for count, _ in done)


def measure(folder: Path, ended: int, *, seconds: float) -> Polled:
    """Make a store, open it and poll it."""
    consortium = Consortium(folder, NAMES, schema=Schema.from_toml(demo_schema_toml()))
    curator = consortium.curator
    curator.begin = run_of
    make_store(folder / "curator.db", consortium.study, ended=ended)
    began = time.perf_counter()
    database = Database(folder / "curator.db")
    database.check_at_start()
    database.close()
    curator.start()
    opened_s = time.perf_counter() - began
    try:
        local = polls_in_process(curator.studies, seconds=seconds)
        network, cpu_ms = polls_over_grpc(consortium, seconds=seconds)
    finally:
        curator.stop()
    return Polled(ended, opened_s, local, network, cpu_ms)


def main() -> None:
    """Poll a store without ended studies and one with many, print the ratios, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ended", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of every measurement")
    options = parser.parse_args()
    results = []
    for ended in (0, options.ended):
        with tempfile.TemporaryDirectory() as scratch:
            results.append(measure(Path(scratch), ended, seconds=options.seconds))
    none, many = map(asdict, results)
    ratios = {"ended": "ratio"} | {key: many[key] / none[key] for key in none if key != "ended"}
    title = f"polls in a second, SQLite {sqlite3.sqlite_version}; {POLLERS} polling processes"
    show([none, many, ratios], title)
    keep("polls", results)


if __name__ == "__main__":
    main()
