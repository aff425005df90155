"""A digest of a multiset of rows: the same whatever the order and the chunks they come in.

A database gives the rows of a query in any order it likes, so a digest of a byte stream would not
do. Each row becomes a 64-bit word by tabulation hashing (one table of fixed random words per
column, combined by exclusive or); the words go through two different mixers, and each mixer's
outputs are added up modulo 2^64. The sums are independent of the order, and a row that is changed,
added or lost changes them except with probability about 2^-64.

The digest notices accidents and ordinary updates. It does not withstand an adversary who constructs
tables with equal digests: only the owner of the table could, and an owner may choose any table.
The digest depends on the rows alone, so it stays at the party.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError
from common.schema.codes import CodeColumn, Codes
from common.schema.linked import LinkedCodes

_Words = NDArray[np.uint64]
_MIXERS = (
    # The finalisers of splitmix64 and of MurmurHash3: shift, multiply, shift, multiply, shift.
    (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31),
    (33, 0xFF51AFD7ED558CCD, 33, 0xC4CEB9FE1A85EC53, 33),
)
_BLOCK_ROWS = 1 << 15


class RowDigest:
    """Takes chunks in any order; `hexdigest` stands for all rows so far.

    With `rows_only` it counts them, and there is no digest.
    """

    def __init__(self, sizes: tuple[int, ...], *, rows_only: bool = False) -> None:
        self.rows = 0
        self._sizes, self._rows_only = sizes, rows_only
        self._lock = threading.Lock()
        self.sums = [0 for _ in _MIXERS]  # modulo 2^64; digests of parts of a table add up
        self._tables = [_table(position, size) for position, size in enumerate(sizes)]

    def add(self, codes: Codes) -> None:
        rows = 0 if self._rows_only else codes.rows
        for start in range(0, rows, _BLOCK_ROWS):  # blocks that stay in the cache
            block = slice(start, start + _BLOCK_ROWS)
            words = _combined(self._tables, [column[block] for column in codes.columns])
            self._add_words(words)
        self.rows += codes.rows

    def _add_words(self, words: _Words) -> None:
        for place, mixer in enumerate(_MIXERS):
            total = int(_mixed(words, mixer).sum(dtype=np.uint64))
            self.sums[place] = (self.sums[place] + total) % (1 << 64)

    def following(self, chunks: Iterable[Codes]) -> Iterator[Codes]:
        """Yield chunks, unchanged, for one of several threads; count them when they end."""
        of_thread = RowDigest(self._sizes, rows_only=self._rows_only)
        for chunk in chunks:
            of_thread.add(chunk)
            yield chunk
        with self._lock:
            self.merge(of_thread)

    def merge(self, other: RowDigest) -> None:
        """Take in the rows of another digest of the same domains."""
        self.rows += other.rows
        self.sums = [
            (mine + more) % (1 << 64) for mine, more in zip(self.sums, other.sums, strict=True)
        ]

    def repeat(self, times: int) -> None:
        """Have all rows so far be there so many times."""
        self.rows *= times
        self.sums = [total * times % (1 << 64) for total in self.sums]

    def hexdigest(self) -> str:
        """Return the SHA-256 of the domains, the number of rows and the sums."""
        if self._rows_only:
            raise LocalError("the rows were counted only; there is no digest of them")
        content = f"parley rows 1 {self._sizes} {self.rows} {self.sums}"
        return hashlib.sha256(content.encode()).hexdigest()


class LinkedDigest(RowDigest):
    """A digest of people with their events: the same for people in any order.

    A person's events are added up to one word, each with its place among them, and that word is a
    part of the person's: events of two people cannot be exchanged.
    """

    def __init__(self, codes: LinkedCodes) -> None:
        super().__init__((*codes.sizes, codes.most + 1, *codes.events.sizes))

    def add(self, codes: Codes) -> None:
        if not isinstance(codes, LinkedCodes):
            raise LocalError("these are not people with their events")
        width, most = codes.width, codes.most
        within = np.arange(codes.events.rows) - np.repeat(codes.starts, codes.numbers)
        places = _table(len(self._sizes), most).take(within)
        events = _mixed(
            places ^ _combined(self._tables[width + 1 :], codes.events.columns), _MIXERS[1]
        )
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(events, dtype=np.uint64)])
        histories = sums[codes.starts + codes.numbers] - sums[codes.starts]  # modulo 2^64
        people = codes.with_number
        words = _combined(self._tables[: width + 1], people.columns) ^ _mixed(histories, _MIXERS[0])
        self._add_words(words)
        self.rows += codes.rows


def row_words(codes: Codes, salts: _Words) -> _Words:
    """Return a word for every row that looks random: of its codes and its salt."""
    tables = [_table(position, size) for position, size in enumerate(codes.sizes)]
    return _mixed(salts ^ _combined(tables, codes.columns), _MIXERS[0])


def _combined(tables: Sequence[_Words], columns: Sequence[CodeColumn]) -> _Words:
    words = tables[0].take(columns[0])
    for table, column in zip(tables[1:], columns[1:], strict=True):
        words ^= table.take(column)
    return words


def _table(position: int, size: int) -> _Words:
    """Fixed words that look random: the same in every process, for every study."""
    label = f"parley rows 1, column {position}"
    return np.frombuffer(hashlib.shake_128(label.encode()).digest(8 * size), dtype="<u8")


def _mixed(words: _Words, mixer: tuple[int, int, int, int, int]) -> _Words:
    first, multiplier, second, other_multiplier, third = (np.uint64(number) for number in mixer)
    words = (words ^ (words >> first)) * multiplier
    words = (words ^ (words >> second)) * other_multiplier
    words ^= words >> third
    return words
