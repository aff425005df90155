"""Counting: integer marginals of encoded rows, additive over chunks of rows."""

from common.marginals.counting import count, count_chunks
from common.marginals.tables import MAX_CELLS, cell_count, project

__all__ = ["MAX_CELLS", "cell_count", "count", "count_chunks", "project"]
