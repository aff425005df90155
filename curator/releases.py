"""The release of a study, where it lies."""

from __future__ import annotations

from pathlib import Path

from curator.store.records import StudyState


def release_folder(state: StudyState, place: str) -> Path | None:
    """Where the release is, if it can be handed out."""
    if state is not StudyState.DONE or not place:
        return None
    folder = Path(place)
    return folder if folder.is_dir() and not folder.is_symlink() else None
