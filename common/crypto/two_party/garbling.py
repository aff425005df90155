"""Garbled gates: one party hides what each wire says, the other computes on it regardless [Yao86].

For every wire the garbler has two labels of 128 bits, for 0 and for 1, that differ by a secret
`offset`, the same for all wires [KolesnikovSchneider08]: exclusive or costs nothing. The evaluator
holds one label of each wire and cannot tell which of the two it is. An `and` of two wires takes
two labels in the message [ZahurRosulekEvans15, half gates]. The last bit of the offset is 1, so the
last bits of the two labels differ: they tell the evaluator which row of a gate to use.

The hash is H(x, i) = P(P(x) ^ i) ^ P(x) with P = AES under a fixed key [GuoKatzWangYu20, TMMO]. It
has what half gates need: it is circular correlation robust for every tweak i. No tweak is used
twice.

[Yao86] Yao: How to generate and exchange secrets, FOCS 1986. [KolesnikovSchneider08] Improved
garbled circuit: free XOR gates, ICALP 2008. [ZahurRosulekEvans15] Two halves make a whole,
EUROCRYPT 2015. [GuoKatzWangYu20] Efficient and secure multiparty computation from fixed-key block
ciphers, IEEE S&P 2020.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from common.crypto.two_party.gates import Bits, Wire
from common.errors import RemoteProtocolError
from common.privacy.randomness import RandomSource

LABEL_BYTES = 16
Labels = NDArray[np.uint64]  # shape (numbers, 2)

_FIXED_KEY = b"parley two-party"
_CIPHER = Cipher(algorithms.AES128(_FIXED_KEY), modes.ECB())  # noqa: S305  # a permutation


def last_bits(labels: Labels) -> Bits:
    """Return the bit of each label that tells the two of a wire apart."""
    return (labels[:, 0] & np.uint64(1)).astype(np.bool_)


def to_labels(data: bytes | NDArray[np.uint8]) -> Labels:
    return np.frombuffer(bytes(data), "<u8").reshape(-1, 2).astype(np.uint64)


def to_bytes(labels: Labels) -> bytes:
    return labels.astype("<u8").tobytes()


class Garbler:
    """Makes the gates; knows both labels of every wire, and calls a wire by its label for 0."""

    def __init__(self, offset: Labels) -> None:
        self.offset = offset  # between the two labels of every wire: secret
        self._used = 0
        self._rows: list[bytes] = []

    def both(self, one: Wire, other: Wire) -> Wire:
        """Make gates for `and`; what the evaluator needs of them is kept for `rows`."""
        tweaks = _tweaks(self._used, len(one))
        self._used += len(one)
        first, second = (np.concatenate([zero, zero ^ self.offset]) for zero in (one, other))
        a0, a1 = np.split(_hashed(first, np.tile(tweaks[0], (2, 1))), 2)
        b0, b1 = np.split(_hashed(second, np.tile(tweaks[1], (2, 1))), 2)
        generated = a0 ^ a1 ^ _where(last_bits(other), self.offset)
        evaluated = b0 ^ b1 ^ one
        self._rows += to_bytes(generated), to_bytes(evaluated)
        left = a0 ^ _where(last_bits(one), generated)
        return left ^ b0 ^ _where(last_bits(other), evaluated ^ one)

    def flipped(self, wire: Wire) -> Wire:
        """Return `not`: what stood for 1 stands for 0."""
        return wire ^ self.offset

    def constant(self, bits: Bits) -> Wire:
        """Return a wire of public bits, whose label is zero."""
        return _where(bits, self.offset)

    def rows(self) -> bytes:
        """Return what the evaluator needs of all gates, in order."""
        return b"".join(self._rows)


class Evaluator:
    """Computes on one label of every wire."""

    def __init__(self, rows: bytes) -> None:
        if len(rows) % (2 * LABEL_BYTES):
            raise RemoteProtocolError("the gates of a two-party computation are cut short")
        self._rows, self._used = to_labels(rows), 0

    def both(self, one: Wire, other: Wire) -> Wire:
        lanes, start = len(one), 2 * self._used
        generated = self._rows[start : start + lanes]
        evaluated = self._rows[start + lanes : start + 2 * lanes]
        if len(evaluated) < lanes:
            raise RemoteProtocolError("a two-party computation has fewer gates than its circuit")
        tweaks = _tweaks(self._used, lanes)
        self._used += lanes
        left = _hashed(one, tweaks[0]) ^ _where(last_bits(one), generated)
        return left ^ _hashed(other, tweaks[1]) ^ _where(last_bits(other), evaluated ^ one)

    def flipped(self, wire: Wire) -> Wire:
        """Return `not`: the garbler's labels have changed their meaning."""
        return wire

    def constant(self, bits: Bits) -> Wire:
        """Return a wire of public bits, whose label is zero."""
        return np.zeros((len(bits), 2), np.uint64)

    def finish(self) -> None:
        """Refuse gates that the circuit does not have."""
        if 2 * self._used != len(self._rows):
            raise RemoteProtocolError("a two-party computation has more gates than its circuit")


def draw_offset(source: RandomSource) -> Labels:
    """Draw the difference of a wire's labels."""
    return source.words(2).reshape(1, 2) | np.array([[1, 0]], np.uint64)


def draw_labels(count: int, source: RandomSource) -> Labels:
    """Draw labels for 0."""
    return source.words(2 * count).reshape(-1, 2)


def _tweaks(used: int, count: int) -> tuple[Labels, Labels]:
    numbers = 2 * np.arange(used, used + count, dtype=np.uint64)
    zeros = np.zeros_like(numbers)
    return np.stack([numbers, zeros], axis=1), np.stack([numbers + np.uint64(1), zeros], axis=1)


def _hashed(labels: Labels, tweaks: Labels) -> Labels:
    permuted = _permuted(labels)
    return _permuted(permuted ^ tweaks) ^ permuted


def _permuted(labels: Labels) -> Labels:
    return to_labels(_CIPHER.encryptor().update(to_bytes(labels)))


def _where(bits: Bits, labels: Labels) -> Labels:
    return np.where(bits[:, None], labels, np.uint64(0))
