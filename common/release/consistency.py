"""What is known about a release without deriving it: its files by name, and who made it.

Apart from `common.release.derive`, which needs whatever makes releases, and takes a while to load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.privacy.statement import versions
from common.release import folder as release
from common.release.checking import Kind, Problem
from common.release.manifest import Manifest
from common.study.document import Study


@dataclass(slots=True)
class Agreement:
    """What was found.

    Attributes:
        study: what the owners agreed on, if there were several.
        privacy: the privacy statement.
        results: what was published during the study.
        derived: whether statement and model follow from the study and the results.
        problems: files that contradict another one.
        not_checked: what could not be looked at, and why.
    """

    study: Study | None = None
    privacy: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[bytes] = ()
    derived: bool = False
    problems: list[Problem] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def blame(self, file: str, why: str) -> None:
        """A file that is not what the others say it must be."""
        self.problems.append(Problem(file, Kind.INCONSISTENT, why))


def other_version(manifest: Manifest) -> str | None:
    """The version of parley that made a release, if it is not the one that runs here."""
    made_by = str(manifest.versions.get("parley"))
    return None if made_by == versions()["parley"] else made_by


def name_problems(manifest: Manifest) -> list[Problem]:
    """Files that a release of this kind does not have, though listed; and files that it must."""
    listed, tables = manifest.files.keys(), release.table_names()
    needed = release.files_besides_the_table(listed, study=manifest.study is not None)
    problems = [
        Problem(name, Kind.MISSING, "is missing: every release of this kind has it")
        for name in sorted(needed - listed)
    ]
    problems += [
        Problem(name, Kind.EXTRA, "is extra: no release of this kind has such a file")
        for name in sorted(listed - needed - set(tables))
    ]
    if len(listed & set(tables)) != 1:
        words = f"a release has exactly one of {', '.join(tables)}"
        problems.append(Problem(tables[0], Kind.MISSING, words))
    return problems
