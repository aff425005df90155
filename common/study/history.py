"""The history of a study: all that was published in it so far, as one running hash.

A curator could tell each party another story: another key, another result, another party's choice.
Each party would then follow its own plan, and the sum of their answers would be nothing that an
owner approved. So the hash of all that was published, the history, is in the digest of the next
step. That digest is in the keys, masks and envelopes of the step's sum
(`common.exchanges.sums`): parties that were told different things cannot finish a sum
together, and nothing is learnt from the attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NewType

from common.crypto.framing import frame
from common.study.ids import StudyId

HistoryDigest = NewType("HistoryDigest", bytes)
"""The running hash of all that was published in a study."""
NO_HISTORY = HistoryDigest(b"")  # where sums are looked at, and none is run

StepDigest = NewType("StepDigest", bytes)
"""What curator and party compare before a step: the history, its number and what it asks."""


class History:
    """What was published in a study, as one side knows it."""

    def __init__(self, study: StudyId) -> None:
        self._digest = hashlib.sha256(frame(("parley history 1", study))).digest()

    @property
    def digest(self) -> HistoryDigest:
        """Stands for all that was published: equal only on sides that were told the same."""
        return HistoryDigest(self._digest)

    def add_key(self, public_key: bytes) -> None:
        """Add the key that the study was opened with; empty if it uses none."""
        self._extend("key", public_key)

    def add_tables(self, commitments: bytes) -> None:
        """Add the commitments to tables; only for studies that have them."""
        self._extend("tables", commitments)

    def add_result(self, number: int, result: bytes, contributions: Sequence[bytes] = ()) -> None:
        """Add a result, and the commitments to contributions, in studies that have them."""
        self._extend("result", number, result)
        if contributions:
            self._extend("contributions", number, *contributions)

    def add_missing(self, number: int, missing: Iterable[str]) -> None:
        """Add the parties that a step's sum leaves out; only for studies that may miss some."""
        self._extend("missing", number, *missing)

    def _extend(self, *fields: bytes | str | int) -> None:
        self._digest = hashlib.sha256(frame((self._digest, *fields))).digest()
