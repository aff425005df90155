"""Retry with backoff: how long to wait between two attempts, and when to give up.

Waits double from one attempt to the next up to a limit, with a random part, so that the parties of
a curator that comes back do not all call in the same moment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from common.privacy.randomness import RandomSource, below
from common.wire.catalogue import ErrorCode, WireError

_FEW = 10
_FEW_TIMES = (ErrorCode.INTERNAL, ErrorCode.OUT_OF_ORDER)  # trying again is safe, and may help
_OUT_OF_REACH = (ErrorCode.UNAVAILABLE, ErrorCode.TOO_MANY_CALLS)


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Counts failures since the last progress."""

    first_s: float  # the first wait; waits double
    longest_s: float
    attempts: int  # how many times in a row the curator may be out of reach
    source: RandomSource  # of the random part; nothing depends on its being secret
    failed: int = field(default=0, init=False)

    def progressed(self) -> None:
        self.failed = 0

    def after(
        self, error: WireError, *, out_of_reach: Collection[ErrorCode] = _OUT_OF_REACH
    ) -> float:
        """Return how many seconds to wait after an error.

        `attempts` applies to the codes in `out_of_reach`.

        Raises:
            WireError: the error, if waiting does not help or did not for too long.
        """
        self.failed += 1
        if self.failed >= self._most(error.code, out_of_reach):
            raise error
        return self._wait_s()

    def _most(self, code: ErrorCode, out_of_reach: Collection[ErrorCode]) -> int:
        if code in out_of_reach:
            return self.attempts
        return min(_FEW, self.attempts) if code in _FEW_TIMES else 0

    def _wait_s(self) -> float:
        """Between half of the doubled wait and all of it."""
        full = min(self.longest_s, self.first_s * 2.0 ** min(self.failed - 1, 30))
        return full * (0.5 + below(1 << 20, self.source) / (1 << 21))
