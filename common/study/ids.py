"""Names for the bytes and words that are easily taken for each other."""

from __future__ import annotations

from typing import NewType

StudyId = NewType("StudyId", bytes)
"""The digest of the agreed document: which study a message, a charge or an approval belongs to."""


def short_id(study: StudyId) -> str:
    """A study in logs and errors: as much of its digest as tells it from all others here."""
    return study.hex()[:16]


def study_id(text: str) -> StudyId:
    """A study by its digest in hexadecimal digits."""
    return StudyId(bytes.fromhex(text))
