"""commitments.json: what the owners of a study committed to, as it was published to all of them.

It has each owner's commitment to its table with the owner's signature, and for each step one
commitment for each of its parties, in order. Its bytes follow from its content: nothing else fits
into it.
"""

from __future__ import annotations

from typing import Any

from common.errors import InputError
from common.release.contents import Contents, read_whole
from common.release.folder import COMMITMENTS
from common.release.manifest import json_text, strict_json
from common.study.commitments import Commitments, TableCommitment
from common.study.document import Study

_FORMAT = "parley commitments"
_VERSION = 1
_MOST_BYTES = 256 << 20


def commitments_text(commitments: Commitments) -> str:
    return json_text(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "tables": {
                name: {
                    "commitment": commitment.value.hex(),
                    "signature": commitment.signature.hex(),
                }
                for name, commitment in commitments.tables.items()
            },
            "contributions": [
                [value.hex() for value in step] for step in commitments.contributions
            ],
        }
    )


def read_commitments(contents: Contents, study: Study) -> Commitments | None:
    """Read the commitments in a release; None if the study has none."""
    if not study.commitments:
        return None
    data = read_whole(contents, COMMITMENTS, most=_MOST_BYTES)
    with contents.blaming(COMMITMENTS):
        commitments = _commitments_in(strict_json(data, COMMITMENTS))
        if commitments_text(commitments).encode() != data:
            raise InputError("not written as parley writes commitments")
        return commitments


def _commitments_in(document: dict[str, Any]) -> Commitments:
    if (document.get("format"), document.get("version")) != (_FORMAT, _VERSION):
        raise InputError(f"not {_FORMAT} of version {_VERSION}")
    try:
        tables = {
            name: TableCommitment(
                bytes.fromhex(entry["commitment"]), bytes.fromhex(entry["signature"])
            )
            for name, entry in document["tables"].items()
        }
        steps = document["contributions"]
        return Commitments(tables, tuple(tuple(map(bytes.fromhex, step)) for step in steps))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not commitments: {error!r}") from None
