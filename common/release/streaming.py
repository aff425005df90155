"""Synthetic rows in blocks: drawn, decoded and formatted on every core, written as they come.

A release of more rows than fit into memory differs in nothing from a small one but in how it is
written. Every block has a random source of its own: a stream is never shared between threads. With
a seed, the rows depend on the seed and not on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from common.marginals.threads import map_in_threads, worker_count
from common.privacy.randomness import source_of
from common.release.fitted import FittedModel
from common.release.progress import Reporter, silent
from common.release.released_table import BLOCK_ROWS, KEPT_ROWS
from common.release.table_files import CsvFile, ParquetFile
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.schema.decoder import decode_to_arrow
from common.wording import many


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a release: each is made on its own, by a thread or by another machine."""

    fitted: FittedModel
    rows: int

    @property
    def count(self) -> int:
        """How many there are: one at least."""
        return max(1, -(-self.rows // BLOCK_ROWS))

    def drawn(self, number: int) -> tuple[Codes, pa.Table]:
        """The rows of a block, as codes and as values."""
        size = min(BLOCK_ROWS, self.rows - number * BLOCK_ROWS)
        codes = self.fitted.draw(size, source_of(self.fitted.seed, f"rows/{number}"))
        inside = source_of(self.fitted.seed, f"numbers/{number}")
        return codes, decode_to_arrow(self.fitted.schema, codes, inside)


def write_stream(
    path: Path,
    fitted: FittedModel,
    rows: int,
    *,
    threads: int | None = None,
    tell: Reporter = silent,
) -> Codes:
    """Draw rows into a file, in memory that does not depend on their number.

    Returns:
        The first of the rows: whole blocks, until there are `KEPT_ROWS`.
    """
    fitted.draw(1, source_of(fitted.seed, "rows"))  # what threads share is made before them
    kind = CsvFile if path.suffix == ".csv" else ParquetFile
    blocks = Blocks(fitted, rows)
    kept: list[Codes] = []
    done = 0
    with kind(path, fitted.schema, fitted.decode(one_of_each(fitted.schema))) as file:

        def block(number: int) -> tuple[Codes, object]:
            codes, table = blocks.drawn(number)
            return codes, file.formatted(table)

        numbers = range(blocks.count)
        for codes, formatted in map_in_threads(block, numbers, worker_count(threads)):
            file.write(formatted)
            if done < KEPT_ROWS:
                kept.append(codes)
            done += codes.rows
            tell(done / max(rows, 1), many(done, "row"))
    return concatenate(kept)


def one_of_each(schema: Schema) -> Codes:
    """A few rows in which every code of every attribute occurs: they show the types of columns."""
    rows = np.arange(max(schema.sizes))
    return Codes.from_columns([rows % size for size in schema.sizes], schema.sizes)
