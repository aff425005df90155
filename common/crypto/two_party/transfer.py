"""Oblivious transfer: the receiver gets one of two labels for each bit of its input.

The sender does not learn which, and the receiver does not learn the other one. The two labels of a
bit differ by the sender's offset. 128 transfers by exponentiation [BellareMicali89, NaorPinkas01]
are stretched to as many as the input has bits [IshaiKilianNissimPetrank03]. In the stretching both
sides change places: the offset's bits choose, and so the labels come out with that difference.

    ask      sender to receiver   128 group elements: y = g^k, or c / g^k where a bit of the offset
                                  is 1. No side knows the logarithm of c.
    answer   receiver to sender   g^r, and for each of the 128 columns the exclusive or of two
                                  streams and the input's bits. The streams' seeds are hashes of y^r
                                  and (c / y)^r: the sender knows one of them.
    finish   sender               the labels for 0.

The group has the 2,048-bit prime of RFC 3526, and exponents of 256 bits, more than twice the
strength of the group, as in RFC 7919. Honest but curious parties: neither side proves that it
followed the protocol.

[BellareMicali89] Non-interactive oblivious transfer, CRYPTO 1989. [NaorPinkas01] Efficient
oblivious transfer protocols, SODA 2001. [IshaiKilianNissimPetrank03] Extending oblivious transfers
efficiently, CRYPTO 2003.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from common.crypto.two_party.garbling import Labels, to_labels
from common.crypto.two_party.gates import Bits
from common.errors import RemoteProtocolError
from common.privacy.randomness import RandomSource

COLUMNS = 128
_PRIME = mpz(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)
_GENERATOR = mpz(2)
_ELEMENT_BYTES = 256
_EXPONENT_BYTES = 32
# A square, so in the group; a hash, so of unknown logarithm.
_C = gmpy2.powmod(
    mpz(int.from_bytes(hashlib.shake_256(b"parley transfer").digest(_ELEMENT_BYTES + 16), "big")),
    2,
    _PRIME,
)


class TransferSender:
    """Holds the offset; gets the labels for 0."""

    def __init__(self, offset: Labels, source: RandomSource) -> None:
        self._offset = offset
        self._bits = _unpacked(offset.astype("<u8").view(np.uint8).reshape(1, -1))[0]
        self._exponents = [_exponent(source) for _ in range(COLUMNS)]

    def ask(self) -> bytes:
        """Return the first message."""
        powers = [gmpy2.powmod(_GENERATOR, k, _PRIME) for k in self._exponents]
        keys = [
            _C * gmpy2.invert(power, _PRIME) % _PRIME if bit else power
            for bit, power in zip(self._bits, powers, strict=True)
        ]
        return b"".join(map(_to_bytes, keys))

    def finish(self, answer: bytes, count: int) -> Labels:
        """Return the label for 0 of each of `count` bits, of the answer to `ask`."""
        length = -(-count // 8)
        if len(answer) != transfer_bytes(count)[1]:
            raise RemoteProtocolError(f"a transfer of {count} bits has {len(answer)} bytes")
        (element,) = _elements(answer[:_ELEMENT_BYTES])
        masked = np.frombuffer(answer[_ELEMENT_BYTES:], np.uint8).reshape(COLUMNS, length)
        seeds = [
            _seed(column, gmpy2.powmod(element, k, _PRIME))
            for column, k in enumerate(self._exponents)
        ]
        columns = _streams(seeds, length) ^ masked * self._bits[:, None]
        return _rows(columns, count)


def answer(bits: Bits, request: bytes, source: RandomSource) -> tuple[bytes, Labels]:
    """Return the receiver's message, and its label of each of its bits."""
    if len(request) != COLUMNS * _ELEMENT_BYTES:
        raise RemoteProtocolError(f"the opening of a transfer has {len(request)} bytes")
    k = _exponent(source)
    powers = [gmpy2.powmod(key, k, _PRIME) for key in _elements(request)]
    whole = gmpy2.powmod(_C, k, _PRIME)
    others = [whole * gmpy2.invert(power, _PRIME) % _PRIME for power in powers]
    packed = np.packbits(bits, bitorder="little")
    zeros, ones = (
        _streams([_seed(column, secret) for column, secret in enumerate(keys)], len(packed))
        for keys in (powers, others)
    )
    sent = _to_bytes(gmpy2.powmod(_GENERATOR, k, _PRIME)) + (zeros ^ ones ^ packed).tobytes()
    return sent, _rows(zeros, len(bits))


def transfer_bytes(count: int) -> tuple[int, int]:
    """Return the lengths of the two messages of a transfer of so many bits."""
    return COLUMNS * _ELEMENT_BYTES, _ELEMENT_BYTES + COLUMNS * -(-count // 8)


def _exponent(source: RandomSource) -> mpz:
    return mpz(int.from_bytes(source.random_bytes(_EXPONENT_BYTES), "big"))


def _to_bytes(element: mpz) -> bytes:
    return int(element).to_bytes(_ELEMENT_BYTES, "big")


def _elements(data: bytes) -> list[mpz]:
    """Read group elements; 0, 1 and -1 hide nothing."""
    starts = range(0, len(data), _ELEMENT_BYTES)
    elements = [mpz(int.from_bytes(data[at : at + _ELEMENT_BYTES], "big")) for at in starts]
    if any(not 1 < element < _PRIME - 1 for element in elements):
        raise RemoteProtocolError("a transfer has a number that is no element of its group")
    return elements


def _seed(column: int, element: mpz) -> bytes:
    return hashlib.sha256(column.to_bytes(2, "big") + _to_bytes(element)).digest()


def _streams(seeds: Sequence[bytes], length: int) -> NDArray[np.uint8]:
    """Return a row of pseudorandom bytes for each seed."""
    streams = b"".join(hashlib.shake_128(seed).digest(length) for seed in seeds)
    return np.frombuffer(streams, np.uint8).reshape(len(seeds), length)


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.unpackbits(packed, axis=1, bitorder="little")


def _rows(columns: NDArray[np.uint8], count: int) -> Labels:
    """Turn 128 columns of bits into a label for each of the bits."""
    return to_labels(np.packbits(_unpacked(columns)[:, :count].T, axis=1, bitorder="little"))
