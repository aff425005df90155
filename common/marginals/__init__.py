"""Counting: integer marginals of encoded rows, additive over chunks of rows.

`count` serves any request, `count_streams` requests to streams of rows that the threads produce.
`BinarySubsets` holds all small tables of binary attributes. All give the same exact integers and
differ in speed only.
"""

from common.marginals.binary import BinarySubsets
from common.marginals.counting import count, count_streams
from common.marginals.tables import project

__all__ = ["BinarySubsets", "count", "count_streams", "project"]
