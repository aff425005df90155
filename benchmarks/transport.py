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
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measuring import Row, Spent, demo_population, keep, show, spending
from benchmarks.subn_data import IN_BITS, setting_of, settings
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.sums.plan import Aggregation
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from parley.simulation.in_process import run_study
from party.journal import JournalState
from party.owner.dry_run import PlannedStep
from tests.harness.consortium import Consortium, Party

NAMES = ("north", "east", "south")


def attend(party: Party, consortium: Consortium) -> None:
    """Take part in the study as one party, from the first call to the end."""
    with party.context() as context:
        endings = party.manager(context, look_again_s=1.0).run(
            once=True, only=consortium.study.digest
        )
    if endings != {consortium.study.digest: JournalState.FINISHED}:
        raise RuntimeError(f"{party.name}: the study did not end in a release: {endings}")


def over_grpc(consortium: Consortium) -> Spent:
    """Run a study from the first call of a party to the end for all of them."""
    curator, parties = consortium.curator, consortium.parties.values()
    curator.begin = run_of
    curator.keys = OsRandomSource()
    for party in parties:
        party.begin, party.keys, party.blinder_of = run_of, OsRandomSource(), FixedBaseBlinder
        party.forecast = lambda study, _: [PlannedStep(phase="all", cost=study.epsilon)]
    curator.start()
    try:
        curator.studies.propose(consortium.study)
        with ThreadPoolExecutor(len(parties)) as threads, spending() as spent:
            for attending in [threads.submit(attend, party, consortium) for party in parties]:
                attending.result()
    finally:
        curator.stop()
    return spent


@dataclass(frozen=True)
class Comparison:
    """A study both ways, as often as asked for."""

    method: str
    aggregation: str
    rows: int
    steps: int
    in_process: list[Spent]
    over_grpc: list[Spent]

    def line(self) -> Row:
        """Return the medians by clock and processor, and their ratios."""
        found: Row = {"method": self.method, "sums": self.aggregation, "steps": self.steps}
        for figure in ("seconds", "processor_seconds"):
            local, network = (
                median(getattr(each, figure) for each in runs)
                for runs in (self.in_process, self.over_grpc)
            )
            found |= {
                f"in process, {figure}": local,
                f"over gRPC, {figure}": network,
                f"ratio of {figure}": network / local,
            }
        return found


def rows_of(table: str, rows: int) -> tuple[Schema, Codes, str]:
    """Return schema, rows and encoding: Adult in bits, or simulated people where it is not here."""
    found, _ = settings()
    if table in found:
        codes = found[table].dataset.codes
        return setting_of(table, codes).schema, codes, found[table].encoding
    print(f"{table} is not on this machine: simulated people in its place")
    return (*demo_population(rows), "binary")


def compare(options: argparse.Namespace, method: str, aggregation: str) -> Comparison:
    """Run both ways in turn; a first in-process run warms up and is not counted."""
    schema, codes, encoding = rows_of(options.table, options.rows)
    parts = np.array_split(np.random.default_rng(0).permutation(codes.rows), len(NAMES))
    tables = {name: codes.take(np.sort(part)) for name, part in zip(NAMES, parts, strict=True)}
    local, network, steps = list[Spent](), list[Spent](), 0
    for repetition in range(options.repetitions + 1):
        with tempfile.TemporaryDirectory() as folder:
            consortium = Consortium(
                Path(folder),
                NAMES,
                tables=tables,
                schema=schema,
                epsilon=Fraction(1),
                method=method,
                aggregation=Aggregation(aggregation),
                encoding="own" if method == "subn+" else encoding,
            )
            study = consortium.study
            keys = {name: party.identity for name, party in consortium.parties.items()}
            with spending() as spent:
                run = run_study(study, run_of, tables, keys, source=OsRandomSource())
            steps = len(run.steps)
            if repetition > 0:
                local.append(spent)
                network.append(over_grpc(consortium))
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
    found = [
        compare(options, method, aggregation)
        for method in options.methods
        for aggregation in options.aggregations
    ]
    title = f"{options.table}, K = {len(NAMES)}, 2048-bit keys, median of {options.repetitions}"
    show([each.line() for each in found], title)
    keep("transport", found)


if __name__ == "__main__":
    main()
