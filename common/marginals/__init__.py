"""Counting: integer marginals of encoded rows, additive over chunks of rows.

`count` serves any request, `count_chunks` the same from a stream, `count_streams` from several that
the threads produce. Who asks often of the same rows
holds a `Counter`; who needs all small tables of binary attributes holds `BinarySubsets`. All give
the same exact integers and differ in speed only.
"""

from common.marginals.binary import BinarySubsets
from common.marginals.counting import count, count_chunks
from common.marginals.distinct import Counter, distinct_rows
from common.marginals.streams import count_streams
from common.marginals.tables import MAX_CELLS, cell_count, project

__all__ = [
    "MAX_CELLS",
    "BinarySubsets",
    "Counter",
    "cell_count",
    "count",
    "count_chunks",
    "count_streams",
    "distinct_rows",
    "project",
]
