"""The compiled inner loops of encoding; see `common.schema.compilation`.

A null cell is told by Arrow's bitmap of valid cells: one bit a row, from bit `first_bit` on. An
empty bitmap means that no cell is null. A code of `REFUSED` stands for a cell that the schema does
not allow; the kernels only tell whether they met one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.schema.codes import CodeColumn

REFUSED = 1 << 16  # one more than the largest code


def look_up(
    values: NDArray[np.signedinteger[Any]],
    low: int,
    table: NDArray[np.uint32],
    null_code: int,
    validity: NDArray[np.uint8],
    first_bit: int,
    codes: CodeColumn,
) -> bool:
    """Codes from a table: its first entry is of all values below `low`, its last of all above.

    `low` is at most 2^62 from zero, so that differences from it can be told apart in 64 bits.

    Returns:
        Whether every cell is allowed.
    """
    below = np.int64(low) - 1
    last = np.uint64(len(table) - 1)
    seen = np.uint32(0)
    if len(validity) == 0 and table[0] == table[last]:
        for row in range(len(values)):
            # As an unsigned number, what is below is far above: one comparison finds both.
            place = np.uint64(np.int64(values[row])) - np.uint64(below)
            code = table[min(place, last)]
            seen |= code
            codes[row] = code
        return bool(seen < REFUSED)
    for row in range(len(values)):
        bit = np.uint64(first_bit + row)
        code = np.uint32(null_code)
        if len(validity) == 0 or (validity[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & 1:
            value = min(max(np.int64(values[row]), below), below + np.int64(last))
            code = table[np.uint64(value - below)]
        seen |= code
        codes[row] = code
    return bool(seen < REFUSED)


def into_bins(
    numbers: NDArray[np.float64] | NDArray[np.int64],
    first: NDArray[np.float64] | NDArray[np.int64],
    last: NDArray[np.float64] | NDArray[np.int64],
    bins_per_unit: float,
    special_codes: NDArray[np.uint32],
    validity: NDArray[np.uint8],
    first_bit: int,
    codes: CodeColumn,
) -> bool:
    """The bins of numbers, by the smallest and largest number of every bin.

    Args:
        numbers: a NaN is an empty cell.
        first: the smallest number of each bin.
        last: the largest.
        bins_per_unit: of equal bins, a guess that is at most one bin off; 0 to search.
        special_codes: of a number below the range, of one above, and of an empty cell.
        validity: see the module.
        first_bit: see the module.
        codes: filled.

    Returns:
        Whether every cell is allowed.
    """
    bins = len(first)
    low, high = first[0], last[bins - 1]
    below, above, empty = special_codes[0], special_codes[1], special_codes[2]
    seen = np.uint32(0)
    for row in range(len(numbers)):
        number = numbers[row]
        bit = np.uint64(first_bit + row)
        if len(validity) and not (validity[bit >> np.uint64(3)] >> (bit & np.uint64(7))) & 1:
            code = empty
        elif number < low:
            code = below
        elif number > high:
            code = above
        elif not number >= low:  # NaN
            code = empty
        elif bins_per_unit > 0:
            guess = min(np.uint64((number - low) * bins_per_unit), np.uint64(bins - 1))
            code = np.uint32(guess)
            if number < first[guess]:
                code -= np.uint32(1)
            elif number > last[guess]:
                code += np.uint32(1)
        else:
            start, stop = 0, bins  # the last bin that starts at the number or before is in here
            while stop - start > 1:
                middle = (start + stop) // 2
                if first[middle] <= number:
                    start = middle
                else:
                    stop = middle
            code = np.uint32(start)
        seen |= code
        codes[row] = code
    return bool(seen < REFUSED)
