"""Synthetic rows drawn into a file, in blocks: drawn, decoded and formatted on every core.

One thread writes the blocks as they come. Every block has a random source of its own: a stream is
never shared between threads. With a seed, the rows depend on the seed and not on the number of
threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from common.fitted.model import FittedModel
from common.marginals.threads import map_in_threads, worker_count
from common.methods.conditional import Draw
from common.privacy.randomness import source_of
from common.release.synthetic_table import BLOCK_ROWS, KEPT_ROWS, new_file, one_of_each
from common.schema import Codes
from common.schema.codes import concatenate
from common.schema.decoder import decode_to_arrow
from common.wording import Reporter, many, silent


@dataclass(frozen=True, slots=True)
class ReleaseBlocks:
    """The blocks of a release: each is made on its own, by a thread or by another machine."""

    fitted: FittedModel
    rows: int
    draw: Draw | None = None  # of rows that satisfy a condition; None for all

    @property
    def count(self) -> int:
        """The number of blocks: one at least."""
        return max(1, -(-self.rows // BLOCK_ROWS))

    def drawn(self, number: int) -> tuple[Codes, pa.Table]:
        """Draw the rows of a block, as codes and as values."""
        size = min(BLOCK_ROWS, self.rows - number * BLOCK_ROWS)
        draw = self.draw or self.fitted.draw
        codes = draw(size, source_of(self.fitted.seed, f"rows/{number}"))
        inside = source_of(self.fitted.seed, f"numbers/{number}")
        return codes, decode_to_arrow(self.fitted.schema, codes, inside, self.fitted.inside)


def write_stream(
    path: Path | BinaryIO,
    fitted: FittedModel,
    rows: int,
    *,
    draw: Draw | None = None,
    threads: int | None = None,
    tell: Reporter = silent,
) -> Codes:
    """Draw rows into a file, in memory that does not depend on their number.

    An open file gets CSV. `draw` draws rows that satisfy a condition (`FittedModel.draw_where`).
    What is returned are the first rows: whole blocks, until there are `KEPT_ROWS`.
    """
    fitted.schema.require_one_table()
    blocks = ReleaseBlocks(fitted, rows, draw)
    (draw or fitted.draw)(1, source_of(fitted.seed, "rows"))  # made before the threads that share
    like = fitted.decode(one_of_each(fitted.schema))
    first_blocks: list[Codes] = []
    written = 0
    with new_file(path, fitted.schema, like) as file:

        def block(number: int) -> tuple[Codes, object]:
            codes, table = blocks.drawn(number)
            return codes, file.formatted(table)

        numbers = range(blocks.count)
        for codes, formatted in map_in_threads(block, numbers, worker_count(threads)):
            file.write(formatted)
            if written < KEPT_ROWS:
                first_blocks.append(codes)
            written += codes.rows
            tell(written / max(rows, 1), f"writing rows: {many(written, 'row')}")
    return concatenate(first_blocks)
