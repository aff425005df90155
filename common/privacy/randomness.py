"""Where every random bit comes from.

A mechanism never makes randomness: it is handed a `RandomSource`. Noise has three:
`OsRandomSource` is an AES-256-CTR keystream whose key comes from the operating system's generator
and is replaced after every 2^32 bytes. `KeyedRandomSource` is such a keystream under a key that the
caller drew from an `OsRandomSource` and keeps on disk until its answer is safe, so that a service
that crashed comes to the same answer again instead of drawing another. `SeededRandomSource` repeats
itself, for tests and experiments; whatever used it is not private, and `private` says so all the
way into the privacy statement. An `AgreedRandomSource` draws no noise: parties that share a key
draw the same permutation from it.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from common.errors import LocalError

KEY_BYTES = 32
_REKEY_AFTER_BYTES = 1 << 32
_ZEROS = bytes(1 << 16)
_SLACK = 15  # bytes of room that `update_into` asks for beyond what it writes


class RandomSource(ABC):
    """A stream of independent uniform bits: bytes and words are one stream, never copied."""

    private = True  # False for a seeded source: its noise protects no row

    @abstractmethod
    def _read(self, count: int) -> NDArray[np.uint8]:
        """Return the next bytes."""

    def random_bytes(self, count: int) -> bytes:
        return self._read(count).tobytes()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw `count` uniform 64-bit words."""
        return self._read(8 * count).view("<u8")

    def __reduce__(self) -> str:
        """Refuse to copy: a copy would repeat the stream."""
        raise LocalError("a random source is not copied; make a new one where it is needed")


SourceOfStep = Callable[[int], RandomSource]
"""Gives the randomness of a step of a study, by its number."""


class _Keystream:
    """AES-256-CTR under one key, from counter zero."""

    def __init__(self, key: bytes) -> None:
        self._encryptor: CipherContext = Cipher(
            algorithms.AES256(key), modes.CTR(bytes(16))
        ).encryptor()

    def read(self, count: int) -> NDArray[np.uint8]:
        """Read on, piece by piece into one array: large strings of bytes are slow."""
        buffer = np.empty(count + _SLACK, dtype=np.uint8)
        for start in range(0, count, len(_ZEROS)):
            zeros = _ZEROS if count - start >= len(_ZEROS) else _ZEROS[: count - start]
            self._encryptor.update_into(zeros, buffer[start:].data)
        return buffer[:count]


class OsRandomSource(RandomSource):
    """The operating system's generator, stretched by AES-256-CTR: for every release."""

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        self._stream = _Keystream(os.urandom(KEY_BYTES))
        self._left = _REKEY_AFTER_BYTES
        self._owner = os.getpid()

    def _read(self, count: int) -> NDArray[np.uint8]:
        # A forked child must not repeat its parent's stream.
        if count > self._left or self._owner != os.getpid():
            self._rekey()
        self._left -= count
        return self._stream.read(count)


class KeyedRandomSource(RandomSource):
    """A keystream that repeats under the same key: for steps that may have to be run again.

    As good as `OsRandomSource` as long as the key came from there, is used for one step only, and
    stays secret; `private` is false if the key came from elsewhere. Under one key the same sequence
    of reads gives the same bytes. `drawn_bytes` is how much was read so far.
    """

    def __init__(self, key: bytes, *, private: bool = True) -> None:
        if len(key) != KEY_BYTES:
            raise LocalError(f"a random source's key has {KEY_BYTES} bytes, not {len(key)}")
        self.private = private
        self.drawn_bytes = 0
        self._key = key
        self._owner = os.getpid()
        self._segment = -1
        self._next_segment()

    def _next_segment(self) -> None:
        """Take a fresh AES key after 2^32 bytes, so that no single one is used for too long."""
        self._segment += 1
        label = b"parley keyed source\0" + self._segment.to_bytes(8, "big")
        self._stream = _Keystream(hashlib.sha256(label + self._key).digest())
        self._left = _REKEY_AFTER_BYTES

    def _read(self, count: int) -> NDArray[np.uint8]:
        if self._owner != os.getpid():
            raise LocalError("a random source was carried into another process by a fork")
        if count > self._left:
            self._next_segment()
        self._left -= count
        self.drawn_bytes += count
        return self._stream.read(count)


class AgreedRandomSource(RandomSource):
    """The keystream of a key that several parties share: they draw the same."""

    def __init__(self, key: bytes) -> None:
        self._stream = _Keystream(key)

    def _read(self, count: int) -> NDArray[np.uint8]:
        return self._stream.read(count)


class SeededRandomSource(AgreedRandomSource):
    """A stream that repeats for the same seed. NOT PRIVATE: tests and experiments only."""

    private = False

    def __init__(self, seed: int | str) -> None:
        super().__init__(hashlib.sha256(b"parley seeded source\0" + str(seed).encode()).digest())


def below(bound: int, source: RandomSource) -> int:
    """Draw a uniform integer in 0..bound-1, exactly, for a bound of any size."""
    if bound < 1:
        raise LocalError(f"there is no integer in 0..{bound - 1}")
    bits = (bound - 1).bit_length()
    length = (bits + 7) // 8
    while True:  # each try succeeds with probability above one half
        value = int.from_bytes(source.random_bytes(length), "little") & ((1 << bits) - 1)
        if value < bound:
            return value


def permutation(count: int, source: RandomSource) -> list[int]:
    """Draw a uniform permutation of 0..count-1 (Fisher-Yates)."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        chosen = below(last + 1, source)
        order[last], order[chosen] = order[chosen], order[last]
    return order


def uniforms(count: int, source: RandomSource) -> NDArray[np.float64]:
    """Draw uniform doubles in [0, 1) on a grid of 2^-53: for synthetic rows, not for noise."""
    return (source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def source_of(seed: int | None, purpose: str) -> RandomSource:
    """Return the operating system's generator; with a seed, one that repeats and protects no row.

    A seeded run has a stream of its own for each purpose.
    """
    return OsRandomSource() if seed is None else SeededRandomSource(f"{seed}/{purpose}")
