"""Replicates of a release: what it might have been, had the owners' rows been drawn once more.

A parametric bootstrap of model and mechanism [Ferrando22]: for each replicate, as many rows as
there were real ones are drawn from the released model, the method runs on them again with fresh
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
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common import files
from common.errors import InputError, LocalError
from common.privacy.randomness import SeededRandomSource, uniforms
from common.release.progress import Reporter, silent
from common.schema import Codes, Schema
from common.wording import many

if TYPE_CHECKING:
    from common.release.fitted import FittedModel

TABLES = 20
LEAST_TABLES = 5  # fewer say nothing of a spread
MOST_TABLES = 999
_REFERENCE_ROWS = 300_000
_PER_ROW = 20  # rows of the reference for one of the release
_TRIED = 2  # tables made in this process, to see how long the others will take
_WORTH_S = 8.0  # of work ahead, for which another process is started
_WORKER = "from common.release.replicates import work; work()"


@dataclass(frozen=True)
class Replicates:
    """A release and its replicates.

    Attributes:
        schema: the public domains.
        released: the synthetic rows of the release.
        reference: many rows of the released model: what the replicates scatter around.
        tables: the replicates, each of as many rows as the release has.
        rows: how many real rows there were.
    """

    schema: Schema
    released: Codes
    reference: Codes
    tables: tuple[Codes, ...]
    rows: int


@dataclass(frozen=True)
class Replicator:
    """Makes the replicates of one release.

    Attributes:
        fitted: the released model.
        released: the synthetic rows of the release.
        seed: the same seed makes the same replicates.
        cache: the folder to keep them in; None keeps nothing.
        processes: how many to work in.
    """

    fitted: FittedModel
    released: Codes
    seed: int = 1
    cache: Path | None = None
    processes: int = 2
    _kept: dict[int, Codes] = field(default_factory=dict)

    def run(self, tables: int = TABLES, *, tell: Reporter = silent) -> Replicates:
        """The first replicates of this seed; those that are kept are not made again.

        Raises:
            InputError: a number of tables that cannot be had.
        """
        check_tables(tables)
        numbers = range(tables + 1)  # 0 is the reference
        for number in numbers:
            self._read(number)
        missing = [number for number in numbers if number not in self._kept]
        for done, number in enumerate(self._make(missing), start=1):
            tell(done / len(missing), f"refitting: {done} of {len(missing)}")
            if self.cache is not None:
                with suppress(InputError, OSError):  # a place that cannot be written keeps nothing
                    _write(self.cache, number, self._kept[number])
        return Replicates(
            schema=self.fitted.schema,
            released=self.released,
            reference=self._kept[0],
            tables=tuple(self._kept[number] for number in numbers[1:]),
            rows=self.fitted.rows,
        )

    def table(self, number: int) -> Codes:
        """One replicate, made in this process; 0 is the reference."""
        source = SeededRandomSource(f"replicate/{self.seed}/{number}")
        if number == 0:
            rows = max(self.released.rows, min(_PER_ROW * self.fitted.rows, _REFERENCE_ROWS))
            return self.fitted.draw(rows, source)
        if 0 not in self._kept:
            self._kept[0] = self.table(0)
        places = (uniforms(self.fitted.rows, source) * self._kept[0].rows).astype(np.intp)
        repeated = self.fitted.refit(self._kept[0].take(places), source)
        return repeated.draw(self.released.rows, source)

    def _make(self, numbers: Sequence[int]) -> Iterator[int]:
        """Fill `_kept`; tells each number when it is there."""
        first, rest = numbers[:_TRIED], numbers[_TRIED:]
        started = time.monotonic()
        yield from self._make_here(first)
        ahead = (time.monotonic() - started) / _TRIED * len(rest)
        if self.processes < 2 or ahead < _WORTH_S:
            yield from self._make_here(rest)
            return
        with (
            tempfile.TemporaryDirectory(prefix="parley-replicates-") as scratch,
            _Worker(self, rest[1::2], Path(scratch)) as worker,
        ):
            yield from self._make_here(rest[::2])
            for number in worker.finished():
                self._kept[number] = _load(Path(scratch) / _name(number), self.fitted.schema)
                yield number

    def _make_here(self, numbers: Sequence[int]) -> Iterator[int]:
        for number in numbers:
            self._kept[number] = self.table(number)
            yield number

    def _read(self, number: int) -> None:
        if number in self._kept or self.cache is None:
            return
        path = self.cache / _name(number)
        if path.is_file():
            self._kept[number] = _load(path, self.fitted.schema)


def check_tables(tables: int) -> None:
    """Refuse a number of replicates that says nothing, or is never needed.

    Raises:
        InputError: naming the limits.
    """
    if not LEAST_TABLES <= tables <= MOST_TABLES:
        raise InputError(f"tables: {tables} is not in {LEAST_TABLES}..{MOST_TABLES:,}")


class _Worker:
    """Another process that makes some of the replicates.

    It is a fresh interpreter, so that a script that asks for replicates is not run again in it.
    """

    def __init__(self, replicator: Replicator, numbers: Sequence[int], scratch: Path) -> None:
        bare = Replicator(replicator.fitted, replicator.released, replicator.seed)
        self._numbers = numbers
        job = scratch / "job"
        job.write_bytes(pickle.dumps((bare, list(numbers), scratch)))
        self._process = subprocess.Popen(  # noqa: S603  (this interpreter, our own words)
            [sys.executable, "-c", _WORKER, str(job)], stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> _Worker:
        return self

    def finished(self) -> Iterator[int]:
        """The numbers whose tables are written."""
        if self._process.stdout is None:  # pragma: no cover  (asked for above)
            raise LocalError("replicates: the other process has no output")
        found = 0
        for line in self._process.stdout:
            found += 1
            yield int(line)
        if self._process.wait() or found != len(self._numbers):
            raise LocalError(f"replicates: the other process ended after {many(found, 'table')}")

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def work() -> None:
    """Make the replicates of a job that the process which started this one has written."""
    replicator, numbers, scratch = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301
    for number in numbers:
        _write(scratch, number, replicator.table(number))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def _name(number: int) -> str:
    return f"{number:04}.npz"


def _write(folder: Path, number: int, codes: Codes) -> None:
    """A table, whole or not at all."""
    content = io.BytesIO()
    np.savez_compressed(content, *codes.columns)
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / _name(number), content.getvalue())


def _load(path: Path, schema: Schema) -> Codes:
    """A table that `_write` wrote.

    Raises:
        InputError: it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = [stored[f"arr_{place}"] for place in range(len(schema.sizes))]
        return Codes.from_columns(columns, schema.sizes)
    except (OSError, ValueError, KeyError, EOFError, LocalError) as error:
        raise InputError(
            f"{path}: not a replicate of this release ({error}). Delete it, and it is made again"
        ) from None
