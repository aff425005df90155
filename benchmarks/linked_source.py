"""How long an owner's node takes to join people with many events, and in how much memory.

    python -m benchmarks.linked_source --people 1000000 --events 5000000

Parquet files of simulated people and of their events in random order are joined, as a node does
when it opens them, and all tables of a study over people and events are counted once. Printed are
seconds of the processor and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common.methods.subn_plus.linked.requests import AveragedTables, NextTables
from common.schema import Schema
from party.sources.settings import owners_table

_PART = 1_000_000
_PEOPLE, _EVENTS, _MOST, _SIZE = 6, 4, 8, 10


def _schema() -> Schema:
    column = 'name = "{}{}"\nkind = "integer"\nmin = 0\nmax = 9\n'
    people = "".join("[[attribute]]\n" + column.format("p", n) for n in range(_PEOPLE))
    events = "".join("[[events.attribute]]\n" + column.format("e", n) for n in range(_EVENTS))
    return Schema.from_toml(
        f'{people}[events]\nname = "visits"\nmost = {_MOST}\norder = "day"\n{events}'
    )


def _write(path: Path, rows: int, letter: str, columns: int, *, people: int) -> None:
    """Write a table in parts; of events, of random people on random days."""
    rng, writer = np.random.default_rng(rows), None
    for start in range(0, rows, _PART):
        size = min(_PART, rows - start)
        cells = {f"{letter}{n}": rng.integers(0, _SIZE, size) for n in range(columns)}
        cells["id"] = np.arange(start, start + size)
        if letter == "e":
            cells["id"], cells["day"] = rng.integers(0, people, size), rng.integers(0, 3650, size)
        table = pa.table(cells)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _report(what: str, since: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {time.process_time() - since:.1f} s of the processor, {peak:,.0f} MiB so far")


def main() -> None:
    """Write, join and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=5_000_000)
    given, schema = parser.parse_args(), _schema()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write(folder / "people.parquet", given.people, "p", _PEOPLE, people=given.people)
        _write(folder / "visits.parquet", given.events, "e", _EVENTS, people=given.people)
        table = {"kind": "parquet", "person": "id"}
        settings = owners_table(
            {**table, "path": "people.parquet", "events": {**table, "path": "visits.parquet"}},
            folder=folder,
            environment={},
        )
        _report("written", 0.0)
        started = time.process_time()
        source = settings.open(schema)
        _report(f"joined {given.people:,} people and {given.events:,} events", started)
        sizes = [_SIZE] * _PEOPLE + [_MOST + 1] + [_SIZE] * _EVENTS
        groups = tuple(tuple(range(size)) for size in sizes)
        pairs = tuple(p for p in combinations(range(len(sizes)), 2) if p[1] >= _PEOPLE)
        for request in (
            AveragedTables(pairs, groups, _PEOPLE + 1, _MOST),
            NextTables(groups[_PEOPLE + 1 :], _MOST),
        ):
            started = time.process_time()
            request.answer(source)
            _report(f"counted {len(request.sets)} tables", started)


if __name__ == "__main__":
    main()
