"""Pairwise masks that add up to zero: noise to all who do not hold all of them.

Two parties share a secret (`LocalParty.agree`): of X25519, or of X25519 and a seed that travelled
under ML-KEM-768 (`agreement`). HKDF-SHA256 turns it into an AES-256 key for ONE sum: the digest of
its plan (study, step, parties, cells, scales) is the salt, and the two identities are in `info`.
The AES-CTR stream under that key is added by the party that comes first in the plan and subtracted
by the other, so over all parties the masks cancel. A coalition of the curator and as many parties
as the study tolerates learns the honest parties' total and nothing else [Bonawitz17, section 4,
without recovery: every party must answer].

Two moduli. `ring_masks` are integers modulo a Paillier modulus n, one per ciphertext: 128 bits
more than n are drawn and reduced, so each is within 2^-128 of uniform. `word_masks` are 64-bit
words, one per cell, exactly uniform.

A mask must serve one contribution only: two different vectors under the same mask show their
difference. The plan's digest sees to it as long as an owner never answers one plan twice with
different vectors: it answers each chunk once, and its journal repeats stored bytes.

**Who shares a mask with whom.** The parties stand in a circle, in the order of the plan, and share
a mask with the h next ones on either side. 2h is the larger of t + 1, for the t colluders of the
study, and 32, rounded up to an even number: without any 2h - 1 parties the circle is connected, and
then the others' masked vectors are uniform among all vectors with the same total (docs/proofs.md,
"Who shares masks with whom"; this is Harary's graph of connectivity 2h). So up to 33 parties no
coalition learns more than the others' total; beyond that, none of up to max(t, 31) parties does,
certainly, not just probably. Unlike random graphs [Bell20] it needs no assumption about how
colluders are spread. A party's work does not depend on K.

Where d parties may go missing, h is at least 2 (t + d) + 1: see `recovery`, whose proof needs it.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.identities.identity import LocalParty
from common.errors import LocalError

LEAST_CONNECTIVITY = 32
"""So many parties must collude to single a party out, even in a study that names fewer colluders.

32 masks cost a party a quarter of a microsecond a cell, however many parties there are.
"""
_AES_BLOCK_BYTES = 16
_STATISTICAL_SLACK_BYTES = 16


def partners(
    place: int, *, parties: int, colluders: int, may_miss: int = 0, in_later_sums: bool = False
) -> list[int]:
    """Return the places with which the party at `place` shares a mask, ascending.

    Up to `colluders` of the parties may pool what they know, among themselves and with the curator;
    up to `may_miss` may go missing during the sum. `in_later_sums` adds the partners that a party
    can have when that many are missing and the circle has closed.
    """
    if not 0 <= place < parties:
        raise LocalError(f"a sum of {parties} parties has no place {place}")
    reach = (max(colluders + 1, LEAST_CONNECTIVITY) + 1) // 2
    if may_miss:
        reach = max(reach, 2 * (colluders + may_miss) + 1) + may_miss * in_later_sums
    if 2 * reach + 1 >= parties:
        return [other for other in range(parties) if other != place]
    return sorted((place + step) % parties for step in range(-reach, reach + 1) if step)


class PairwiseMasks:
    """One party's masks for one sum. Holds secrets; drop it when the sum is done."""

    def __init__(self, *, before: list[bytes], after: list[bytes]) -> None:
        """Take the keys shared with the parties before and after this one in the plan."""
        self._signed_keys = [(-1, key) for key in before] + [(1, key) for key in after]

    @classmethod
    def agree(
        cls, party: LocalParty, *, plan_digest: bytes, order: tuple[str, ...], colluders: int
    ) -> PairwiseMasks:
        """Agree on one party's masks with the parties of `order`, for the plan of this digest.

        Nothing but the total of the others is learnt by up to max(colluders, 31) of them.
        """
        if party.name not in order:
            raise LocalError(f"{party.name!r} takes no part in a sum of {', '.join(order)}")
        position = order.index(party.name)
        before, after = list[bytes](), list[bytes]()
        for place in partners(position, parties=len(order), colluders=colluders):
            ends = [party.peer(order[end]).encoded for end in sorted((position, place))]
            info = frame(("parley pairwise mask 1", *ends))
            key = derived_key(party.agree(order[place]), salt=plan_digest, info=info)
            (before if place < position else after).append(key)
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


def derived_key(secret: bytes, *, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(secret)


def _stream(key: bytes, purpose: bytes, start: int, count: int) -> bytes:
    """Return bytes start..start+count-1 of the keystream; `start` is at an AES block."""
    if start % _AES_BLOCK_BYTES:
        raise LocalError("a mask stream is entered at a block boundary")
    # The purpose is the upper half of the counter block: the two moduli's streams never meet.
    counter = purpose.ljust(8, b"\0") + (start // _AES_BLOCK_BYTES).to_bytes(8, "big")
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(bytes(count))
