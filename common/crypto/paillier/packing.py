"""Many signed counts in one Paillier plaintext, with room so that no slot can reach its neighbour.

A vector v is packed as the signed integer sum_i v_i * 2^(slot_bits * i). Packing is linear: the sum
of packed vectors, or an integer multiple of one, is the packed sum or multiple, with no bookkeeping
of who contributed. So everything the protocol does to plaintexts works on packs: adding a pack that
is negative, adding masks modulo n that cancel in the total, raising a ciphertext of 0 or 1 to a
packed power. Only the total has to fit:

    |total of a slot| <= total_bound = rows + parties * noise_bound < 2^(slot_bits - 2),

which every honest party ensures before it encrypts (`pack` refuses anything else), so overflow is
impossible by construction. The last factor of two is a guard bit: `unpack` refuses a total outside
+-total_bound, and a plaintext that is not a sum of honest packs (wrong key, garbage, masks that do
not cancel) passes that check in each of the slots with probability below one half.

A party that meets a noise draw beyond the bound of its law stops; it must not draw again, which
would change the noise's law (`common.privacy.noise_law`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError, RemoteProtocolError

_WIDEST_SLOT = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The layout of vectors in plaintexts. Every value in it is public."""

    plaintext_bits: int  # signed integers below 2^(plaintext_bits - 1) fit into a plaintext
    rows: int  # the largest total of honest counts in one cell, over all parties
    parties: int  # how many contributions are summed at most
    noise_bound: int  # the largest absolute value of one party's noise in one cell

    def __post_init__(self) -> None:
        if self.rows < 0 or self.parties < 1 or self.noise_bound < 0:
            raise LocalError("packing needs rows >= 0, parties >= 1 and noise_bound >= 0")
        if self.slot_bits > min(_WIDEST_SLOT, self.plaintext_bits):
            raise InputError(
                f"a cell of up to {self.total_bound} does not fit into a slot of {_WIDEST_SLOT} "
                "bits; the noise scale is too large for any useful release"
            )

    @property
    def total_bound(self) -> int:
        """No honest total of a cell is larger in absolute value."""
        return self.rows + self.parties * self.noise_bound

    @property
    def slot_bits(self) -> int:
        """Bits per cell: magnitude, sign, and the guard bit that detects nonsense."""
        return self.total_bound.bit_length() + 2

    @property
    def slots(self) -> int:
        return self.plaintext_bits // self.slot_bits

    def plaintexts_for(self, count: int) -> int:
        return -(-count // self.slots)

    def pack(self, values: NDArray[np.int64], *, rows: int, shares: int) -> list[int]:
        """Pack one party's contribution, shape (count,); the integers may be negative.

        The values count `rows` rows, and have so many `shares` of noise in each: 0 for exact
        counts. One that is larger could overflow the total: then nothing is sent, and noise is not
        drawn again.
        """
        if not (0 <= rows <= self.rows and 0 <= shares <= self.parties):
            raise LocalError(
                f"{rows} rows and {shares} shares are not within the {self.rows} rows and "
                f"{self.parties} parties of the packing"
            )
        limit = rows + shares * self.noise_bound
        if values.size and (int(values.min()) < -limit or int(values.max()) > limit):
            raise LocalError(
                f"a value to pack is outside +-{limit} ({rows} rows, {shares} draws of noise): "
                "stop, and send nothing"
            )
        plaintexts = self.plaintexts_for(values.size)
        half = 1 << (self.slot_bits - 1)
        # Digits are shifted by half to be unsigned; unused slots hold exactly half, so zero.
        digits = np.full(plaintexts * self.slots, half, dtype="<u8")
        digits[: values.size] += values.astype(np.uint64)  # wraps for negatives, as intended
        bits = np.unpackbits(digits.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        used = bits[:, : self.slot_bits].reshape(plaintexts, self.slots * self.slot_bits)
        packed = np.packbits(used, axis=1, bitorder="little")
        offset = self._offset()
        return [int.from_bytes(row.tobytes(), "little") - offset for row in packed]

    def unpack(self, plaintexts: Sequence[int], count: int) -> NDArray[np.int64]:
        """Return the totals of `count` cells; RemoteProtocolError if they are no honest sum."""
        if len(plaintexts) != self.plaintexts_for(count):
            raise RemoteProtocolError(
                f"{count} cells take {self.plaintexts_for(count)} plaintexts, not {len(plaintexts)}"
            )
        used = self.slots * self.slot_bits
        width = (used + 7) // 8
        offset = self._offset()
        shifted = [plaintext + offset for plaintext in plaintexts]
        if any(not 0 <= total < 1 << used for total in shifted):
            raise RemoteProtocolError(self._nonsense())
        data = b"".join(total.to_bytes(width, "little") for total in shifted)
        packed = np.frombuffer(data, dtype=np.uint8).reshape(len(plaintexts), width)
        bits = np.unpackbits(packed, axis=1, bitorder="little", count=used)
        octets = np.packbits(bits.reshape(-1, self.slot_bits), axis=1, bitorder="little")
        digits = np.zeros((octets.shape[0], 8), dtype=np.uint8)
        digits[:, : octets.shape[1]] = octets
        values = digits.view("<i8").reshape(-1).astype(np.int64)
        values -= 1 << (self.slot_bits - 1)
        if np.any(np.abs(values) > self.total_bound) or np.any(values[count:]):
            raise RemoteProtocolError(self._nonsense())
        return values[:count]

    def _offset(self) -> int:
        """Return the packed vector whose every slot is half of the slot's range."""
        ones = ((1 << (self.slots * self.slot_bits)) - 1) // ((1 << self.slot_bits) - 1)
        return ones << (self.slot_bits - 1)

    def _nonsense(self) -> str:
        return (
            f"a decrypted total is outside +-{self.total_bound}: it is no sum of honest "
            "contributions (another key, damaged ciphertexts, or masks that do not cancel)"
        )
