"""Counting: integer marginals of encoded rows, additive over chunks of rows.

`count` serves any request, `count_streams` the same from streams of rows that the threads produce.
`BinarySubsets` holds all small tables of binary attributes. All give the same exact integers and
differ in speed only.
"""

from common.marginals.binary import BinarySubsets
from common.marginals.counting import count
from common.marginals.streams import count_streams
from common.marginals.tables import MAX_CELLS, cell_count, project

__all__ = [
    "MAX_CELLS",
    "BinarySubsets",
    "cell_count",
    "count",
    "count_streams",
    "project",
]
