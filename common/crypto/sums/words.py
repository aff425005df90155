"""Sums of 64-bit words: masked mode, for many parties, and clear mode, for experiments.

Masked: party k sends counts + its Polya share + its pairwise masks modulo 2^64, straight to the
curator, who adds up; the masks cancel. No homomorphic encryption, no ring, the same distribution of
the result. What one party sends is uniform without its masks. Every party must answer, or the
curator refuses to finish: a missing one leaves masks in the sum. Sums that can do without some
parties are in `recovery`.

Clear: the same words without masks. The curator sees every contribution: NOT PRIVATE.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.crypto.identities.identity import LocalParty
from common.crypto.sums.masks import PairwiseMasks
from common.crypto.sums.plan import Noise, SumPlan, check_values, draw_noise
from common.errors import RemoteProtocolError
from common.privacy.randomness import RandomSource

_VERSION = b"\x01"
_DIGEST_PREFIX = 16
_HEADER_BYTES = 1 + _DIGEST_PREFIX


def contributed_words(
    plan: SumPlan, party: LocalParty, values: NDArray[np.int64], source: RandomSource
) -> list[bytes]:
    """Draw one party's noise, once, and return its words, chunk after chunk."""
    check_values(plan, party.name, values)
    masks = agreed_masks(plan, party)
    return word_chunks(
        plan, name=party.name, values=values, noise=draw_noise(plan, source), masks=masks
    )


def agreed_masks(plan: SumPlan, party: LocalParty) -> PairwiseMasks | None:
    """Return a party's masks for a sum; None for a sum without."""
    if not plan.masked:
        return None
    return PairwiseMasks.agree(
        party, plan_digest=plan.digest, order=plan.parties, colluders=plan.colluders
    )


def word_chunks(
    plan: SumPlan,
    *,
    name: str,
    values: NDArray[np.int64],
    noise: NDArray[np.int64],
    masks: PairwiseMasks | None,
) -> list[bytes]:
    """Return the words of counts, noise and masks, chunk after chunk."""
    # In the clear no side hides whose share of noise is used: it is the first party's.
    silent = plan.noise is Noise.ONE_SHARE and plan.place_of(name) > 0
    words = (values if silent else values + noise).astype(np.uint64)  # modulo 2^64
    if masks is not None:
        words += masks.word_masks(first=0, count=plan.cells)
    head = _VERSION + plan.digest[:_DIGEST_PREFIX]
    cells = map(plan.cells_of, range(plan.chunks))
    return [head + words[part].astype("<u8").tobytes() for part in cells]


def read_words(plan: SumPlan, sender: str, chunk: int, payload: bytes) -> NDArray[np.uint64]:
    """Read the words of one chunk; RemoteProtocolError if they are not of this sum."""
    if sender not in plan.parties or not 0 <= chunk < plan.chunks:
        raise RemoteProtocolError(f"{sender!r} takes no part in this sum, or has no chunk {chunk}")
    cells = plan.cells_of(chunk)
    if payload[:1] != _VERSION or len(payload) != _HEADER_BYTES + 8 * (cells.stop - cells.start):
        raise RemoteProtocolError(f"{sender!r} sent no words of version 1 for chunk {chunk}")
    if payload[1:_HEADER_BYTES] != plan.digest[:_DIGEST_PREFIX]:
        raise RemoteProtocolError(f"{sender!r} answers another plan than this sum's")
    return np.frombuffer(payload, dtype="<u8", offset=_HEADER_BYTES)


def as_total(plan: SumPlan, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Read the unmasked sum of all words; RemoteProtocolError if honest parties cannot reach it."""
    total = words.view(np.int64)
    bound = plan.total_bound
    if int(total.max()) > bound or int(total.min()) < -bound:
        raise RemoteProtocolError(
            f"a total is outside +-{bound}: the masks do not cancel, or a party contributed "
            "more than its limit; nothing is released"
        )
    return total
