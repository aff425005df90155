"""Replicates of a release: what it might have been, had the owners' rows been drawn once more.

A parametric bootstrap of model and mechanism [Ferrando22]: for each replicate, as many rows as
there were real rows are drawn from the released model, the method runs on them again with fresh
noise (`FittedModel.refit`), and a table is drawn from the model that comes out. The rows are drawn
one by one, with replacement, from many rows of the model, the reference: a model may draw its rows
in strata, which scatter less than people in a sample do. Replicates scatter
around the released model as releases scatter around the population: by the sampling of real rows,
by the noise, and by the sampling of synthetic rows. Nothing but published files is read, so
replicates cost no budget.

Replicates are kept in a folder beside the release, under a name that stands for the release, the
version and the seed; each file is written whole or not at all.

[Ferrando22] Ferrando, Wang, Sheldon: Parametric bootstrap for differentially private confidence
intervals. AISTATS 2022.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common import files
from common.analysis.statistics import CodedTable
from common.errors import InputError, LocalError
from common.fitted.model import FittedModel
from common.privacy.randomness import KeyedRandomSource, SeededRandomSource, uniforms
from common.schema import Codes, Schema
from common.schema.codes import CodeColumn
from common.schema.decoder import Insides
from common.schema.linked import LinkedCodes
from common.wording import Reporter, many, silent

SEED = 1
TABLES = 20
LEAST_TABLES = 5  # fewer say nothing of a spread
MOST_TABLES = 999
_REFERENCE_ROWS = 300_000
_PER_ROW = 20  # rows of the reference for one of the release
_TRIED = 2  # tables made in this process, to see how long the others will take
_WORTH_S = 6.0  # of work for each process
_PROCESSES = 8  # at most: each holds the reference in memory
_SHUFFLE = b"parley: an order for each column"  # public: estimates can be repeated
_SCRATCH = "parley-replicates-"
_WORKER = "from common.analysis.replicates import work; work()"


@dataclass(frozen=True)
class Replicates:
    """A release and its replicates."""

    schema: Schema
    released: Codes
    reference: Codes  # many rows of the released model: what the replicates scatter around
    tables: tuple[Codes, ...]
    inside: Insides = field(default_factory=dict)  # where in their bins numbers are
    refitted: bool = True  # whether each table is of a model that was fitted again


def coded(replicates: Replicates, codes: Codes, seed: str) -> CodedTable:
    """Return rows with their values, numbers in bins as the release has them."""
    return CodedTable(replicates.schema, codes, seed, replicates.inside)


def shuffled(codes: Codes) -> Codes:
    """Shuffle each column by itself, so that no column depends on another; events' ones, too."""
    source = KeyedRandomSource(_SHUFFLE, private=False)

    def apart(columns: Sequence[CodeColumn]) -> tuple[CodeColumn, ...]:
        return tuple(codes[np.argsort(uniforms(len(codes), source))] for codes in columns)

    if not isinstance(codes, LinkedCodes):
        return Codes(apart(codes.columns), codes.sizes)
    *people, numbers = apart(codes.with_number.columns)
    events = Codes(apart(codes.events.columns), codes.events.sizes)
    return LinkedCodes(tuple(people), codes.sizes, events, numbers.astype(np.int64), codes.most)


@dataclass(frozen=True)
class Replicator:
    """Makes the replicates of one release."""

    fitted: FittedModel  # the released model
    released: Codes  # the synthetic rows of the release
    seed: int = SEED  # equal seeds make equal replicates
    cache: Path | None = None  # the folder to keep them in; None keeps nothing
    # how many to work in, at most
    processes: int = field(default_factory=lambda: min(len(os.sched_getaffinity(0)), _PROCESSES))
    _by_number: dict[int, Codes] = field(default_factory=dict)

    def run(self, tables: int = TABLES, *, tell: Reporter = silent) -> Replicates:
        """Make the first replicates of this seed; those that are kept are not made again."""
        check_tables(tables)
        numbers = range(tables + 1)  # 0 is the reference
        for number in numbers:
            self._read(number)
        missing = [number for number in numbers if number not in self._by_number]
        for so_far, number in enumerate(self._make(missing), start=1):
            there = sum(number in self._by_number for number in numbers[1:])
            tell(so_far / len(missing), f"fitting replicates, kept for later: {there} of {tables}")
            if self.cache is not None:
                with suppress(InputError, OSError):  # a place that cannot be written keeps nothing
                    _write(self.cache, number, self._by_number[number])
        return Replicates(
            schema=self.fitted.schema,
            released=self.released,
            reference=self._by_number[0],
            tables=tuple(self._by_number[number] for number in numbers[1:]),
            inside=self.fitted.inside,
        )

    def reference(self) -> Codes:
        """Return many rows of the released model: what the replicates scatter around."""
        self._read(0)
        if 0 not in self._by_number:
            self._by_number[0] = self.table(0)
        return self._by_number[0]

    def table(self, number: int) -> Codes:
        """Make one replicate in this process; 0 is the reference."""
        source = SeededRandomSource(f"replicate/{self.seed}/{number}")
        if number == 0:
            rows = max(self.released.rows, min(_PER_ROW * self.fitted.rows, _REFERENCE_ROWS))
            return self.fitted.draw(rows, source)
        reference = self.reference()
        places = (uniforms(self.fitted.rows, source) * reference.rows).astype(np.intp)
        repeated = self.fitted.refit(reference.take(places), source)
        return repeated.draw(self.released.rows, source)

    def _make(self, numbers: Sequence[int]) -> Iterator[int]:
        """Fill `_by_number`, and yield each number when it is there."""
        first, rest = numbers[:_TRIED], numbers[_TRIED:]
        started = time.monotonic()
        yield from self._make_here(first)
        ahead = (time.monotonic() - started) / _TRIED * len(rest)
        parts = min(self.processes, math.ceil(ahead / _WORTH_S))
        if parts < 2:
            yield from self._make_here(rest)
            return
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_SCRATCH)))
            workers = [
                stack.enter_context(_Worker(self, rest[part::parts], scratch / str(part)))
                for part in range(1, parts)
            ]
            for number in rest[::parts]:
                yield from self._make_here([number])
                for worker in workers:
                    yield from self._take(worker)
            for worker in workers:
                worker.wait()
                yield from self._take(worker)

    def _take(self, worker: _Worker) -> Iterator[int]:
        """Read what a worker has written since the last look."""
        for number, path in worker.finished():
            self._by_number[number] = _load(path, self.fitted.schema)
            yield number

    def _make_here(self, numbers: Sequence[int]) -> Iterator[int]:
        for number in numbers:
            self._by_number[number] = self.table(number)
            yield number

    def _read(self, number: int) -> None:
        if number in self._by_number or self.cache is None:
            return
        path = self.cache / _name(number)
        if path.is_file():
            self._by_number[number] = _load(path, self.fitted.schema)


def check_tables(tables: int) -> None:
    """Refuse a number of replicates that is too small to tell a spread, or too large."""
    if not LEAST_TABLES <= tables <= MOST_TABLES:
        raise InputError(f"tables: {tables} is not in {LEAST_TABLES}..{MOST_TABLES:,}")


class _Worker:
    """Another process that makes some of the replicates and writes each into a folder.

    It is a fresh interpreter, so that a script that asks for replicates is not run again in it.
    """

    def __init__(self, replicator: Replicator, numbers: Sequence[int], folder: Path) -> None:
        known = {number: codes for number, codes in replicator._by_number.items() if number == 0}
        bare = Replicator(replicator.fitted, replicator.released, replicator.seed, _by_number=known)
        self._folder, self._ahead = folder, list(numbers)
        folder.mkdir()
        job = folder / "job"
        job.write_bytes(pickle.dumps((bare, numbers, folder)))
        words = [sys.executable, "-c", _WORKER, str(job)]
        self._process = subprocess.Popen(words)  # noqa: S603  (this interpreter, our own words)

    def __enter__(self) -> _Worker:
        return self

    def finished(self) -> Iterator[tuple[int, Path]]:
        """Yield the tables that were written since the last call, and their files."""
        while self._ahead and (path := self._folder / _name(self._ahead[0])).is_file():
            yield self._ahead.pop(0), path

    def wait(self) -> None:
        """Wait until all are written; LocalError if the process ends before."""
        if self._process.wait():
            left = many(len(self._ahead), "table")
            raise LocalError(f"replicates: another process ended with {left} to make")

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def work() -> None:
    """Make the replicates of a job, in the file that the first argument names."""
    replicator, numbers, folder = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301
    for number in numbers:
        _write(folder, number, replicator.table(number))


def _name(number: int) -> str:
    return f"{number:04}.npz"


def _write(folder: Path, number: int, codes: Codes) -> None:
    """Write a table, whole or not at all."""
    content = io.BytesIO()
    linked = (codes.numbers, *codes.events.columns) if isinstance(codes, LinkedCodes) else ()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for place, column in enumerate(
            (*codes.columns, *linked)
        ):  # as numpy does, in a third of its time
            with archive.open(f"arr_{place}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, column, allow_pickle=False)
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / _name(number), content.getvalue())


def _load(path: Path, schema: Schema) -> Codes:
    """Read a table that `_write` wrote; raise InputError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = [stored[f"arr_{place}"] for place in range(len(stored.files))]
        width = len(schema.sizes)
        people = Codes.from_columns(columns[:width], schema.sizes)
        if schema.events is None:
            return people
        events = Codes.from_columns(columns[width + 1 :], schema.of_events.sizes)
        return LinkedCodes(people.columns, people.sizes, events, columns[width], schema.events.most)
    except (OSError, ValueError, KeyError, EOFError, LocalError) as error:
        raise InputError(
            f"{path}: not a replicate of this release ({error}). Delete it, and it is made again"
        ) from None
