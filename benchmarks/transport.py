"""What the network costs: a study over loopback gRPC with mutual TLS, against the in-process run.

    python -m benchmarks.transport [--rows 30000] [--method subn+] [--aggregation paillier]

Curator and parties of the networked run are threads of this process, on files of their own with
every write synced; the same roles, plans and cryptography run in both. In one process the parties
share a table of blinding factors, over the network each makes its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from common.crypto.identity import Identity
from common.crypto.identity_file import load_identity
from common.crypto.sum_plan import Aggregation
from common.database import Database
from common.methods import plan_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from common.study import Member, Study
from curator.app import CuratorSettings, propose, serve
from parley.in_process import RowsInMemory, run_study
from parley.keyring import Keyring, init_curator, init_party
from parley.population import demo_schema_toml, make_population
from party.approvals import Approvals
from party.client.attendance import Attendance, Household
from party.client.connection import Address, Lines
from party.client.patience import Patience
from party.journal import Journal
from party.ledger import Ledger
from party.policy import Policy
from party.review import PlannedStep
from party.sources.source import Snapshot

RESULTS = Path(__file__).parent / "results" / "transport.json"
NAMES = ("north", "east", "south")
POLICY = Policy(
    epsilon_per_study=Fraction(10), epsilon_in_total=Fraction(10), min_parties=1, automatic=True
)


class Rows(RowsInMemory):
    """A party's rows as a source."""

    @property
    def snapshot(self) -> Snapshot:
        """Which table this is."""
        return Snapshot(rows=self.rows, digest="benchmark", as_of=None)


def clock() -> datetime:
    """The time."""
    return datetime.now(UTC)


def make_rings(folder: Path) -> tuple[Keyring, dict[str, Keyring]]:
    """The curator's keys, and every party's, certified."""
    ring = init_curator(folder / "hub", "hub", ("127.0.0.1",), now=clock(), external=False)
    parties = {}
    for name in NAMES:
        own = init_party(folder / name, name)
        _, path = ring.approve(own.read_request(), days=60, now=clock())
        own.trust(ring.files.authority.read_bytes(), where=path)
        own.accept(path.read_bytes(), where=path, now=clock())
        parties[name] = own
    return ring, parties


def attend(folder: Path, ring: Keyring, study: Study, name: str, table: Codes, port: int) -> None:
    """One party, from the first call to the end."""
    database = Database(folder / f"{name}.db")
    house = Household(
        name=name,
        identity=load_identity(ring.identity),
        policy=POLICY,
        approvals=Approvals(database),
        journal=Journal(database, OsRandomSource()),
        ledger=Ledger(database),
        open_source=lambda _: Rows(table),
        make_plan=plan_of,
        forecast=lambda study, _: [PlannedStep(phase="all", epsilon=study.epsilon)],
        clock=clock,
    )
    address = Address(
        target=f"127.0.0.1:{port}", proxy=None, files=ring.files, software="benchmark"
    )
    patience = Patience(
        first_s=0.1, longest_s=1.0, attempts=5, sleep=threading.Event().wait,
        source=OsRandomSource(),
    )  # fmt: skip
    try:
        Attendance(study.digest, house, dial=Lines(address, clock).dial, patience=patience).attend()
    finally:
        database.close()


def over_grpc(
    folder: Path, ring: Keyring, rings: dict[str, Keyring], study: Study, tables: dict[str, Codes]
) -> float:
    """Seconds from the first call of a party to the end for all of them."""
    settings = CuratorSettings(
        folder=folder / "state", keys=ring.folder, releases=folder, listen="127.0.0.1:0"
    )
    propose(settings, study, clock=clock)
    stopping, ports = threading.Event(), list[int]()
    ready = threading.Event()

    def started(port: int) -> None:
        ports.append(port)
        ready.set()

    with ThreadPoolExecutor(1 + len(tables)) as threads:
        serving = threads.submit(
            serve, settings, publish=lambda _: folder, stopping=stopping, clock=clock,
            software="benchmark", started=started,
        )  # fmt: skip
        try:
            if not ready.wait(30):
                raise RuntimeError("the curator does not start")
            begun = time.perf_counter()
            parties = [
                threads.submit(attend, folder, rings[name], study, name, table, ports[0])
                for name, table in tables.items()
            ]
            for party in parties:
                party.result()
            return time.perf_counter() - begun
        finally:
            stopping.set()
            serving.result()


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main() -> None:
    """Run both, print the ratio, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--method", default="subn+")
    parser.add_argument("--aggregation", default="paillier")
    options = parser.parse_args()
    schema = Schema.from_toml(demo_schema_toml())
    codes = schema.encode(make_population(options.rows, seed=1))
    parts = np.array_split(np.arange(codes.rows), len(NAMES))
    tables = {name: codes.take(part) for name, part in zip(NAMES, parts, strict=True)}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ring, rings = make_rings(folder)
        identities: dict[str, Identity] = {n: load_identity(r.identity) for n, r in rings.items()}
        study = Study(
            name="transport",
            schema=schema,
            members=tuple(
                Member(name=name, rows=tables[name].rows, identity=identities[name].public)
                for name in NAMES
            ),
            epsilon=Fraction(1),
            method=options.method,
            aggregation=Aggregation(options.aggregation),
        )
        run = run_study(study, plan_of, tables, identities, source=OsRandomSource())  # warms up
        local = timed(
            lambda: run_study(study, plan_of, tables, identities, source=OsRandomSource())
        )
        network = over_grpc(folder, ring, rings, study, tables)
    print(f"{options.method}, {options.aggregation}, {codes.rows:,} rows, K = {len(NAMES)}")
    print(f"{'steps':>10} {'in process':>12} {'over gRPC':>12} {'ratio':>8}")
    print(f"{len(run.steps):>10} {local:>10.2f} s {network:>10.2f} s {network / local:>8.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    result = {**vars(options), "steps": len(run.steps), "local_s": local, "grpc_s": network}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
