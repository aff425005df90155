"""What every party has been told in a study so far, as one running hash.

A curator could tell each party another story: another key, another result, another party's choice.
Each of them would then follow its own plan, and the sum of their answers would be nothing that
anybody approved. So the hash of all that was told is in the digest of the next step, which is in
the keys, masks and envelopes of that step's sum (`common.study.sums.sum_plan_of`): parties that
were told different things cannot finish a sum together, and nothing is learnt from the attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from common.crypto.framing import frame
from common.study.ids import HistoryDigest, StudyId


class History:
    """The story as one side knows it: the study, then what was published, in order."""

    def __init__(self, study: StudyId) -> None:
        """Nothing was told yet but the study, by its digest."""
        self._digest = hashlib.sha256(frame(("parley history 1", study))).digest()

    @property
    def digest(self) -> HistoryDigest:
        """Stands for everything so far: equal on two sides only if they were told the same."""
        return HistoryDigest(self._digest)

    def add_key(self, public_key: bytes) -> None:
        """The key that the study was opened with; empty if it uses none."""
        self._extend("key", public_key)

    def add_result(self, number: int, result: bytes) -> None:
        self._extend("result", number, result)

    def add_missing(self, number: int, missing: Iterable[str]) -> None:
        """The parties that are not in the sum of a step; only studies that may miss some say so."""
        self._extend("missing", number, *missing)

    def _extend(self, *fields: bytes | str | int) -> None:
        self._digest = hashlib.sha256(frame((self._digest, *fields))).digest()
