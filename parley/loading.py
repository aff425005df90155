"""Reading back what a fitted model saved, or what is in a release folder."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from common.errors import InputError
from parley.privbayes import FORMAT, METHOD, FittedPrivBayes
from parley.privelet import FittedPrivelet
from parley.release import MODEL, RANGES


def load(path: Path | str) -> FittedPrivBayes | FittedPrivelet:
    """The model in a file that `save` wrote, or of a release folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    target = Path(path)
    if target.is_dir():
        names = [name for name in (RANGES, MODEL) if (target / name).is_file()]
        if not names:
            raise InputError(f"{target} is not a release: it has no {MODEL}")
        target = target / names[0]
    if not target.is_file():
        raise InputError(f"{target}: no such file")
    if zipfile.is_zipfile(target):
        return FittedPrivelet.load(target)
    try:
        document = json.loads(target.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{target}: not a model: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{target}: not a model of this version of parley ({FORMAT!r})")
    if document.get("method") != METHOD:
        raise InputError(f"{target} only describes a release; load the folder it is in")
    return FittedPrivBayes.from_json(document, where=str(target))
