"""Names for the bytes and words that are easily taken for each other."""

from __future__ import annotations

from typing import NewType

StudyId = NewType("StudyId", bytes)
"""The digest of the agreed document: which study a message, a charge or an approval belongs to."""
