"""The bytes of a published sum.

Every cell is a little-endian signed integer, as wide as the largest needs: each party receives each
result, so in a study of many turns these are most of the bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.errors import RemoteProtocolError


def encode_cells(total: NDArray[np.int64]) -> bytes:
    largest = max(int(total.max(initial=0)), -1 - int(total.min(initial=0)))
    width = largest.bit_length() // 8 + 1
    return total.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def read_cells(data: bytes, cells: int) -> NDArray[np.int64]:
    """Read a published sum; RemoteProtocolError if `encode_cells` would write it otherwise."""
    width, rest = divmod(len(data), cells)
    if rest or not 1 <= width <= 8:
        raise RemoteProtocolError(f"a sum of {cells} cells has {len(data)} bytes")
    wide = np.zeros((cells, 8), np.uint8)
    wide[:, 8 - width :] = np.frombuffer(data, np.uint8).reshape(cells, width)
    total = np.asarray(wide.view("<i8")[:, 0] >> 8 * (8 - width), dtype=np.int64)
    if encode_cells(total) != data:
        raise RemoteProtocolError(f"a sum of {cells} cells is not written as short as it can be")
    return total
