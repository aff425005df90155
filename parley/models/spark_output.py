"""Synthetic rows drawn by a Spark cluster: one folder of Parquet files, written by its executors.

A partition makes some of the blocks that `common.release.synthetic_table` makes in threads. With a
seed the rows are the same rows, in the same order of files; without one every block has the
operating system's generator of the machine it is drawn on.

    >>> write_on_spark(start_session("spark://host:7077"), "hdfs://name/synthetic", fitted, 10**10)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

import common
import curator
import parley
import party
from common.errors import InputError
from common.fitted.drawing import ReleaseBlocks
from common.fitted.model import FittedModel
from common.privacy.randomness import source_of
from common.release.synthetic_table import BLOCK_ROWS, one_of_each
from common.schema.columns import is_text
from party.sources.kinds.spark import quiet, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITION_BLOCKS = 64  # 8 million rows, a file of some 200 MB


def write_on_spark(
    session: SparkSession,
    folder: str,
    fitted: FittedModel,
    rows: int,
    *,
    partition_blocks: int = _PARTITION_BLOCKS,
) -> None:
    """Draw rows into a new folder of Parquet files anywhere Spark can write.

    `party.sources.kinds.spark.start_session` makes a session; the model travels to its executors. A
    file has `partition_blocks` blocks of 131,072 rows.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    ship(session, common, party, curator, parley)
    fitted.draw(1, source_of(fitted.seed, "rows"))  # what is made once travels along
    blocks = ReleaseBlocks(fitted, rows)
    files = -(-blocks.count // partition_blocks)
    drawer = PartitionDrawer(blocks, _spark_schema(fitted))
    try:
        with quiet():
            numbers = session.range(0, blocks.count, numPartitions=files)
            frame = numbers.mapInArrow(drawer, from_arrow_schema(drawer.schema))
            frame.write.parquet(folder)
    except PySparkException as error:
        raise InputError(f"{folder}: Spark cannot write there: {error}") from None


@dataclass(frozen=True, slots=True)
class PartitionDrawer:
    """The rows of the blocks whose numbers a partition holds."""

    blocks: ReleaseBlocks
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                _, table = self.blocks.drawn(number)
                columns = table.select(self.schema.names)
                yield from columns.cast(self.schema).combine_chunks().to_batches(BLOCK_ROWS)


def _spark_schema(fitted: FittedModel) -> pa.Schema:
    """Return the columns of a release in order, in the types of Spark nearest to their own."""
    published = pa.Schema.from_pandas(
        fitted.decode(one_of_each(fitted.schema)), preserve_index=False
    )
    return pa.schema([(field.name, _spark_type(field.type)) for field in published])


def _spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    return pa.string() if is_text(kind) else kind
