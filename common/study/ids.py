"""The id of a study: how the other modules pass it around, print it and read it."""

from __future__ import annotations

from typing import NewType

StudyId = NewType("StudyId", bytes)
"""The digest of the agreed document: which study a message, a charge or an approval belongs to."""


def short_id(study: StudyId) -> str:
    """Return a study's name in logs and errors: the first digits of its digest."""
    return study.hex()[:16]


def study_id(text: str) -> StudyId:
    """Return a study by its digest in hexadecimal digits."""
    return StudyId(bytes.fromhex(text))
