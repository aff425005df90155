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

from common.crypto.sums.masks import PairwiseMasks
from common.crypto.sums.plan import Aggregation, ContributionSubmitted, Noise, SumPlan
from common.errors import LocalError, RemoteProtocolError

_VERSION = b"\x01"
_DIGEST_PREFIX = 16
_HEADER_BYTES = 1 + _DIGEST_PREFIX


class WordContributor:
    """One party's words. Holds its counts: secret."""

    def __init__(
        self,
        plan: SumPlan,
        *,
        name: str,
        values: NDArray[np.int64],
        noise: NDArray[np.int64],
        masks: PairwiseMasks | None,
    ) -> None:
        """Add it all up; masks are what makes `Aggregation.MASKED` different from clear."""
        if (masks is not None) != (plan.aggregation is Aggregation.MASKED):
            raise LocalError("the plan's aggregation says whether words are masked")
        # In the clear no side hides whose share of noise is used: it is the first party's.
        silent = plan.noise is Noise.ONE_SHARE and plan.place_of(name) > 0
        words = (values if silent else values + noise).astype(np.uint64)  # modulo 2^64
        if masks is not None:
            words += masks.word_masks(first=0, count=plan.cells)
        self._plan, self._words = plan, words
        self._chunks: set[int] = set()

    def prepare(self) -> None:
        """Do nothing: all was prepared when the contributor was made."""

    def contribute(self, chunk: int, incoming: bytes | None) -> bytes:
        """Return the words of one chunk; each chunk once. Nothing comes in: there is no ring."""
        if incoming is not None:
            raise LocalError("words are not passed from party to party")
        if chunk in self._chunks:
            raise LocalError(f"chunk {chunk} was contributed already")
        words = self._words[self._plan.cells_of(chunk)].astype("<u8").tobytes()
        self._chunks.add(chunk)
        return _VERSION + self._plan.digest[:_DIGEST_PREFIX] + words

    def __repr__(self) -> str:
        return f"WordContributor(secret, {self._plan.cells} cells)"


class WordCollector:
    """The curator's end: adds up modulo 2^64, and answers only when every party is in."""

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        self._sum = np.zeros(plan.cells, dtype=np.uint64)
        self._received: set[tuple[str, int]] = set()

    def accept(self, message: ContributionSubmitted) -> None:
        """Take one chunk of one party in, or raise RemoteProtocolError and change nothing."""
        words = self.read(message)
        self._sum[self._plan.cells_of(message.chunk)] += words
        self._received.add((message.sender, message.chunk))

    def read(self, message: ContributionSubmitted) -> NDArray[np.uint64]:
        """Read the words of one chunk; RemoteProtocolError if they are not of this sum."""
        sender, chunk = message.sender, message.chunk
        if sender not in self._plan.parties:
            raise RemoteProtocolError(f"{sender!r} takes no part in this sum")
        if not 0 <= chunk < self._plan.chunks or (sender, chunk) in self._received:
            raise RemoteProtocolError(f"chunk {chunk} of {sender!r} is not expected here")
        cells = self._plan.cells_of(chunk)
        payload = message.payload
        if payload[:1] != _VERSION or len(payload) != _HEADER_BYTES + 8 * (
            cells.stop - cells.start
        ):
            raise RemoteProtocolError(f"{sender!r} sent no words of version 1 for chunk {chunk}")
        if payload[1:_HEADER_BYTES] != self._plan.digest[:_DIGEST_PREFIX]:
            raise RemoteProtocolError(f"{sender!r} answers another plan than this sum's")
        return np.frombuffer(payload, dtype="<u8", offset=_HEADER_BYTES)

    def missing(self) -> list[str]:
        """Return the parties that have not sent everything."""
        return [
            name
            for name in self._plan.parties
            if any((name, chunk) not in self._received for chunk in range(self._plan.chunks))
        ]

    def total(self) -> NDArray[np.int64]:
        """Return the sum with its noise, shape (cells,), once nothing is missing."""
        return as_total(self._plan, self._sum)


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
