"""results.bin: what was published during a study, step after step.

Everything in it went to every party, and carries the noise that the privacy statement counts. With
the study it determines the steps, their cost and the model, so a reader can derive those again; and
a party can tell whether these are the results that it saw.

Layout: the line `parley results 2`, then for every step its length (8 bytes, big-endian) and its
bytes: for a sum little-endian signed integers, all as wide as the largest needs; for a choice the
published payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.errors import InputError
from common.release.contents import Contents

RESULTS = "results.bin"
_HEAD = b"parley results 2\n"
_LENGTH_BYTES = 8
_MOST = 1 << 30


def write_results(path: Path, results: Sequence[bytes]) -> None:
    """The results of a study, in the order of its steps."""
    with path.open("wb") as file:
        file.write(_HEAD)
        for result in results:
            file.write(len(result).to_bytes(_LENGTH_BYTES, "big"))
            file.write(result)


def read_results(contents: Contents) -> tuple[bytes, ...]:
    """The results in a release; InputError if they are too many, cut short, or not results."""
    size = contents.sizes().get(RESULTS, 0)
    if size > _MOST:
        raise InputError(f"{RESULTS}: {size:,} bytes are more than {_MOST:,}")
    with contents.open(RESULTS) as stream:
        if stream.read(len(_HEAD)) != _HEAD:
            raise InputError(f"{RESULTS}: not published results of version 2")
        results, left = [], size - len(_HEAD)
        while left > 0:
            length = int.from_bytes(stream.read(_LENGTH_BYTES), "big")
            left -= _LENGTH_BYTES + length
            if left < 0:  # before anything of that length is read
                break
            results.append(stream.read(length))
        if left != 0 or stream.read(1):
            raise InputError(f"{RESULTS}: cut short, or longer than it says")
    return tuple(results)
