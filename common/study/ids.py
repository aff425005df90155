"""The id of a study: how the other modules pass it around, print it and read it."""

from __future__ import annotations

import re
from typing import NewType

StudyId = NewType("StudyId", bytes)
"""The digest of the agreed document: which study a message, a charge or an approval belongs to."""


def short_id(study: StudyId) -> str:
    """Return a study's name in logs and errors: the first digits of its digest."""
    return study.hex()[:16]


def folder_name(name: str, study: StudyId) -> str:
    """Join a study's name for people with enough of its digest to be unique."""
    words = re.sub(r"\W+", "-", name).strip("-")[:40]
    return f"{words or 'study'}-{short_id(study)}"


def study_id(text: str) -> StudyId:
    """Return a study by its digest in hexadecimal digits."""
    return StudyId(bytes.fromhex(text))
