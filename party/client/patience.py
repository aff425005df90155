"""How long to wait between two attempts, and when to give up.

Waiting times double from one attempt to the next up to a limit, with a random part, so that the
parties of a curator that comes back do not all call in the same moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from common.privacy.randomness import RandomSource, below
from common.wire.catalogue import ErrorCode, WireError

_FEW = 10
_WAITING_HELPS = (ErrorCode.UNAVAILABLE, ErrorCode.TOO_MANY_CALLS)
_FEW_TIMES = (ErrorCode.INTERNAL, ErrorCode.OUT_OF_ORDER)  # trying again is safe, and may help


@dataclass(slots=True, kw_only=True)
class Patience:
    """Counts failures since the last progress.

    Attributes:
        first_s: the first waiting time.
        longest_s: the longest.
        attempts: how many times in a row the curator may be out of reach.
        sleep: waits; returns true if it was told to stop meanwhile.
        source: of the random part; nothing depends on its being secret.
    """

    first_s: float
    longest_s: float
    attempts: int
    sleep: Callable[[float], bool]
    source: RandomSource
    failed: int = field(default=0, init=False)
    _last: ErrorCode | None = field(default=None, init=False)

    def progressed(self) -> None:
        """The study went on: begin to count anew."""
        self.failed = 0

    def reached(self) -> None:
        """The curator answered; that is progress if it could not be reached before."""
        if self._last is ErrorCode.UNAVAILABLE:
            self.failed = 0

    def wait_after(self, error: WireError) -> bool:
        """Wait as long as it is worth it; true if told to stop.

        Raises:
            WireError: the error, if waiting does not help or did not for too long.
        """
        self.failed += 1
        self._last = error.code
        if self.failed >= self._most(error.code):
            raise error
        return self.sleep(self.next_wait_s())

    def _most(self, code: ErrorCode) -> int:
        if code in _WAITING_HELPS:
            return self.attempts
        return min(_FEW, self.attempts) if code in _FEW_TIMES else 0

    def next_wait_s(self) -> float:
        """Between half of the doubled time and all of it."""
        full = min(self.longest_s, self.first_s * 2.0 ** min(self.failed - 1, 30))
        return full * (0.5 + below(1 << 20, self.source) / (1 << 21))
