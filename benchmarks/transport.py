"""What the network costs: a study over loopback gRPC with mutual TLS, against the in-process run.

    python -m benchmarks.transport [--methods dp-subn subn+] [--aggregations paillier]

Adult in 52 bits (dp-subn; subn+ keeps the attributes' own domains), three parties, 2048-bit keys.
Curator and parties of the networked run are threads of this process, on files of their own with
every write synced; the same roles, plans and cryptography run in both. In one process the parties
share a table of blinding factors, over the network each makes its own. The two ways take turns, and
seconds of the processor are counted besides seconds of the clock: a busy machine hardly changes the
former.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measuring import keep
from benchmarks.subn_data import IN_BITS, settings
from common.crypto.identities.files import load_identity
from common.crypto.sums.plan import Aggregation
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from common.schema.attribute import Attribute, Listed
from common.service.database import Database
from common.study.document import Member, Study
from common.wire.pki.keyring import Keyring, init_curator, init_party
from curator.app import CuratorSettings, propose, serve
from parley.simulation.in_process import RowsInMemory, run_study
from parley.simulation.population import demo_schema_toml, make_population
from party.client.context import PartyContext
from party.client.dialer import Address, Backoff, Dialer
from party.client.sessions import SessionManager
from party.journal import Journal, Notes, StudyState
from party.ledger import Ledger
from party.owner.decisions import Approvals
from party.owner.dry_run import PlannedStep
from party.owner.policy import Policy
from party.releases import Collection
from party.sources.source import Snapshot

WIDTHS = (12, 10, 6, 14, 14, 7, 9)
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
    context = PartyContext(
        name=name,
        identity=load_identity(ring.identity),
        policy=POLICY,
        approvals=Approvals(database),
        journal=Journal(database, OsRandomSource()),
        ledger=Ledger(database),
        notes=Notes(database),
        collection=Collection(database),
        check_source=lambda: None,
        open_source=lambda _: Rows(table),
        begin=run_of,
        forecast=lambda study, _: [PlannedStep(phase="all", cost=study.epsilon)],
        clock=clock,
    )
    address = Address(
        target=f"127.0.0.1:{port}", proxy=None, files=ring.files, software="benchmark"
    )
    manager = SessionManager(
        context,
        dialer=Dialer(address, clock),
        backoff=lambda: Backoff(first_s=0.1, longest_s=1.0, attempts=5, source=OsRandomSource()),
        stopping=threading.Event(),
        look_again_s=1.0,
    )
    try:
        endings = manager.run(once=True, only=study.digest)
        if endings != {study.digest: StudyState.FINISHED}:
            raise RuntimeError(f"{name}: the study did not end in a release: {endings}")
    finally:
        database.close()


def over_grpc(
    folder: Path,
    ring: Keyring,
    rings: dict[str, Keyring],
    study: Study,
    tables: dict[str, Codes],
    times: Times,
) -> None:
    """A study from the first call of a party to the end for all of them, measured."""
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
            with times.measured():
                parties = [
                    threads.submit(attend, folder, rings[name], study, name, table, ports[0])
                    for name, table in tables.items()
                ]
                for party in parties:
                    party.result()
        finally:
            stopping.set()
            serving.result()


@dataclasses.dataclass
class Times:
    """Of every repetition, by the clock and by the processor."""

    clock_s: list[float] = dataclasses.field(default_factory=list)
    cpu_s: list[float] = dataclasses.field(default_factory=list)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Adds what a block takes, in all threads of this process."""
        clock, cpu = time.perf_counter(), time.process_time()
        yield
        self.clock_s.append(time.perf_counter() - clock)
        self.cpu_s.append(time.process_time() - cpu)

    @property
    def shown(self) -> str:
        """The medians."""
        return f"{median(self.clock_s):.1f} s ({median(self.cpu_s):.1f})"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A study both ways, as often as asked for."""

    method: str
    aggregation: str
    rows: int
    steps: int
    local: Times
    grpc: Times

    @property
    def ratio(self) -> float:
        """Of the medians by the clock."""
        return median(self.grpc.clock_s) / median(self.local.clock_s)

    @property
    def cpu_ratio(self) -> float:
        """Of the medians by the processor."""
        return median(self.grpc.cpu_s) / median(self.local.cpu_s)


def flat_schema(sizes: Sequence[int]) -> Schema:
    """Values named by their codes, without hierarchies, which no method needs in bits."""
    return Schema(
        tuple(
            Attribute(f"c{place}", "categorical", Listed(tuple(map(str, range(size)))))
            for place, size in enumerate(sizes)
        )
    )


def rows_of(table: str, rows: int) -> tuple[Schema, Codes, str]:
    """The schema, the rows and the encoding: Adult in bits, or simulated people where it is not."""
    found, _ = settings()
    if table in found:
        codes = found[table].dataset.codes
        return flat_schema(codes.sizes), codes, found[table].encoding
    print(f"{table} is not on this machine: simulated people in its place")
    schema = Schema.from_toml(demo_schema_toml())
    return schema, schema.encode(make_population(rows, seed=1)), "binary"


def compare(options: argparse.Namespace, method: str, aggregation: str) -> Comparison:
    """Both ways in turn, again and again; a first in-process run warms up and is not counted."""
    schema, codes, encoding = rows_of(options.table, options.rows)
    parts = np.array_split(np.random.default_rng(0).permutation(codes.rows), len(NAMES))
    tables = {name: codes.take(np.sort(part)) for name, part in zip(NAMES, parts, strict=True)}
    warming_up, local, network, steps = Times(), Times(), Times(), 0
    with tempfile.TemporaryDirectory() as scratch:
        ring, rings = make_rings(Path(scratch))
        identities = {name: load_identity(ring.identity) for name, ring in rings.items()}
        for repetition in range(options.repetitions + 1):
            folder = Path(scratch) / f"run {repetition}"
            folder.mkdir()
            study = Study(
                name=f"transport {repetition}",
                schema=schema,
                members=tuple(
                    Member(name=name, rows=tables[name].rows, identity=identities[name].public)
                    for name in NAMES
                ),
                epsilon=Fraction(1),
                method=method,
                aggregation=Aggregation(aggregation),
                encoding="own" if method == "subn+" else encoding,
            )

            with (warming_up if repetition == 0 else local).measured():
                run = run_study(study, run_of, tables, identities, source=OsRandomSource())
            steps = len(run.steps)
            if repetition > 0:
                over_grpc(folder, ring, rings, study, tables, network)
    return Comparison(method, aggregation, codes.rows, steps, local, network)


def main() -> None:
    """Run both for every method and aggregation, print the ratios, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default=IN_BITS, help="of benchmarks.subn_data")
    parser.add_argument("--rows", type=int, default=30_000, help="of simulated people")
    parser.add_argument("--methods", nargs="+", default=["subn+", "dp-subn"])
    parser.add_argument("--aggregations", nargs="+", default=["paillier", "masked"])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(f"{options.table}, K = {len(NAMES)}, 2048-bit keys, median of {options.repetitions}")
    titles = ("method", "sums", "steps", "in process", "over gRPC", "ratio", "CPU ratio")
    print(" ".join(f"{title:>{width}}" for title, width in zip(titles, WIDTHS, strict=True)))
    results = []
    for method in options.methods:
        for aggregation in options.aggregations:
            found = compare(options, method, aggregation)
            ratios = {"ratio": found.ratio, "cpu_ratio": found.cpu_ratio}
            results.append(dataclasses.asdict(found) | ratios)
            print(
                f"{method:>12} {aggregation:>10} {found.steps:>6} {found.local.shown:>14} "
                f"{found.grpc.shown:>14} {found.ratio:>7.2f} {found.cpu_ratio:>9.2f}",
                flush=True,
            )
    keep("transport", results)


if __name__ == "__main__":
    main()
