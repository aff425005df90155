"""Pairwise masks that add up to zero: noise for everybody who does not hold all of them.

Two parties share an X25519 secret (`Identity.agree`). HKDF-SHA256 turns it into an AES-256
key for ONE sum: the digest of its plan (study, round, parties, cells, scales) is the salt, and the
two identities are in `info`. The AES-CTR stream under that key is added by the party that comes
first in the plan and subtracted by the other, so over all parties the masks cancel. Which pairs do
so is in `mask_graph`, with the proof that a coalition of the curator and as many parties as the
study tolerates learns the honest parties' total and nothing else
[Bonawitz17, section 4, without recovery: every party must answer].

Two moduli. `ring_masks` are integers modulo a Paillier modulus n, one per ciphertext: 128 bits
more than n are drawn and reduced, so each is within 2^-128 of uniform. `word_masks` are 64-bit
words, one per cell, exactly uniform.

A mask must serve one contribution only: two different vectors under the same mask show their
difference. The plan's digest sees to it as long as an owner never answers one plan twice with
different vectors; `SumParty` answers each chunk once, and a party's journal repeats stored bytes.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.identities.identity import Member, PublicIdentity
from common.crypto.sums.mask_graph import partners
from common.errors import LocalError

_AES_BLOCK_BYTES = 16
_STATISTICAL_SLACK_BYTES = 16


class PairwiseMasks:
    """One party's masks for one sum. Holds secrets; drop it when the sum is done."""

    def __init__(self, *, before: list[bytes], after: list[bytes]) -> None:
        """Take the keys shared with the parties before and after this one in the plan."""
        self._signed_keys = [(-1, key) for key in before] + [(1, key) for key in after]

    @classmethod
    def agree(
        cls, member: Member, *, plan_digest: bytes, order: tuple[str, ...], colluders: int
    ) -> PairwiseMasks:
        """Agree on one member's masks with the parties of `order`, for the plan of this digest.

        Nothing but the total of the others is learnt by up to max(colluders, 31) of them.
        """
        if member.name not in order:
            raise LocalError(f"{member.name!r} takes no part in a sum of {', '.join(order)}")
        own = order.index(member.name)
        before, after = list[bytes](), list[bytes]()
        for place in partners(own, parties=len(order), colluders=colluders):
            key = _pair_key(
                member.agree(order[place]),
                plan_digest,
                first=member.peer(order[min(own, place)]),
                second=member.peer(order[max(own, place)]),
            )
            (before if place < own else after).append(key)
        return cls(before=before, after=after)

    def ring_masks(self, modulus: int, *, first: int, count: int) -> list[int]:
        """Return masks modulo `modulus` for the ciphertexts first..first+count-1 of the sum."""
        width = (modulus.bit_length() + 7) // 8 + _STATISTICAL_SLACK_BYTES
        width += -width % _AES_BLOCK_BYTES
        totals = [0] * count
        for sign, key in self._signed_keys:
            stream = _stream(key, b"ring", first * width, count * width)
            for index in range(count):
                value = int.from_bytes(stream[index * width : (index + 1) * width], "big")
                totals[index] += sign * value
        return [total % modulus for total in totals]

    def word_masks(self, *, first: int, count: int) -> NDArray[np.uint64]:
        """Return 64-bit masks for the cells first..first+count-1 of the sum; `first` is even."""
        total = np.zeros(count, dtype=np.uint64)
        for sign, key in self._signed_keys:
            words = np.frombuffer(_stream(key, b"word", first * 8, count * 8), dtype="<u8")
            if sign > 0:
                total += words  # unsigned arithmetic wraps modulo 2^64, which is what is wanted
            else:
                total -= words
        return total

    def __repr__(self) -> str:
        return f"PairwiseMasks({len(self._signed_keys)} peers)"


def _pair_key(
    secret: bytes, plan_digest: bytes, *, first: PublicIdentity, second: PublicIdentity
) -> bytes:
    info = frame(("parley pairwise mask 1", first.encoded, second.encoded))
    return HKDF(algorithm=SHA256(), length=32, salt=plan_digest, info=info).derive(secret)


def _stream(key: bytes, purpose: bytes, start: int, count: int) -> bytes:
    """Return bytes start..start+count-1 of the keystream; `start` is at an AES block."""
    if start % _AES_BLOCK_BYTES:
        raise LocalError("a mask stream is entered at a block boundary")
    # The purpose is the upper half of the counter block: the two moduli's streams never meet.
    counter = purpose.ljust(8, b"\0") + (start // _AES_BLOCK_BYTES).to_bytes(8, "big")
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(count))
