"""Names for the bytes and words that are easily taken for each other."""

from __future__ import annotations

from typing import NewType

StudyId = NewType("StudyId", bytes)
"""The digest of the agreed document: which study a message, a charge or an approval belongs to."""

HistoryDigest = NewType("HistoryDigest", bytes)
"""The running hash of all that was published in a study."""
NO_HISTORY = HistoryDigest(b"")  # where sums are looked at, and none is run

StepDigest = NewType("StepDigest", bytes)
"""What curator and party compare before a step: the history, its number and what it asks."""


def short_id(study: StudyId) -> str:
    """A study in logs and errors: as much of its digest as tells it from all others here."""
    return study.hex()[:16]


def study_id(text: str) -> StudyId:
    """A study by its digest in hexadecimal digits."""
    return StudyId(bytes.fromhex(text))
