"""The files of a release that follow from its other files: made again, and compared.

report.html and network.svg are made of the synthetic rows, the model and the statement by the code
that wrote them, so one byte that differs is not theirs. ranges.zip is written again from what was
read of it, so that nothing else is in it. In transcript.json the rounds follow from the study; how
many bytes were sent is what the curator counted, and nothing in a release tells.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import InputError
from common.release import folder as release
from common.release.checking import Checked
from common.release.contents import Contents, copy_into
from common.release.fitted_privelet import FittedPrivelet
from common.release.manifest import sha256_of
from common.release.released_table import ReleasedTable
from common.release.writing import Fitted, pages_of
from common.study.accounting import missing_in
from common.study.document import Study
from common.study.steps import Step
from common.study.transcript import SETTING_UP, PhaseTraffic, transcript_of, without_times


def differing_pages(checked: Checked, fitted: Fitted, table: ReleasedTable) -> list[str]:
    """The pages that are not, byte for byte, what the other files imply."""
    try:
        pages = pages_of(fitted, table.rows, table.kept, date=checked.manifest.date)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{release.STATEMENT}: no report can be made of it: {error!r}") from None
    return [
        name
        for name, text in pages.files.items()
        if hashlib.sha256(text.encode()).hexdigest() != checked.manifest.files[name].sha256
    ]


def read_ranges(contents: Contents, checked: Checked) -> FittedPrivelet:
    """The range counts of a release, from a scratch copy that is gone afterwards.

    Raises:
        InputError: they are damaged, or something else is in the file.
    """
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        there = copy_into(Path(scratch), contents, release.RANGES)
        again = Path(scratch) / "again.zip"
        try:
            fitted = FittedPrivelet.load(there)
        except InputError as error:
            raise InputError(str(error).replace(str(there), release.RANGES)) from None
        fitted.save(again)
        with again.open("rb") as stream:
            if sha256_of(stream) != checked.manifest.files[release.RANGES]:
                raise InputError(f"{release.RANGES}: holds something besides the noisy counts")
    return fitted


def check_transcript(data: bytes, study: Study, steps: Sequence[Step]) -> dict[str, object]:
    """The transcript of a study, if nothing is in it but counted bytes.

    Raises:
        InputError: it is not what `transcript_of` makes of these steps and any counts of bytes.
    """
    rounds_of = {SETTING_UP: 0} | Counter(step.phase for step in steps)  # as a transcript has them
    try:
        found = json.loads(data)
        phases = {
            phase: _traffic(found["phases"][phase], rounds, study)
            for phase, rounds in rounds_of.items()
        }
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{release.TRANSCRIPT}: not a transcript: {error!r}") from None
    missing = missing_in(study, [step.parties for step in steps])
    again = without_times(transcript_of(study, phases, missing))
    if release.json_text(again).encode() != data:
        raise InputError(f"{release.TRANSCRIPT}: is not a transcript of {release.STUDY}")
    return again


def _traffic(counted: Mapping[str, Any], rounds: int, study: Study) -> PhaseTraffic:
    names = {member.name for member in study.members}
    sent, received = (dict(counted[key]) for key in ("bytes_sent", "bytes_received"))
    for party, size in [*sent.items(), *received.items()]:
        if party not in names or type(size) is not int or size < 0:
            raise ValueError(f"{size!r} bytes of {party!r}")
    return PhaseTraffic(rounds=rounds, sent=Counter(sent), received=Counter(received))
