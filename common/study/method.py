"""A method of a study as one object: everything that the rest of the program asks about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.errors import InputError
from common.study.document import ENCODINGS, Study
from common.study.script import Fit, Script, ScriptRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What a study's `method` names.

    Attributes:
        name: as it stands in study.toml.
        summary: a line of help.
        script: its steps, and the model that comes of them.
        sums: whether the parties' answers are added up; else each publishes a model of its own.
        single_turns: whether it asks single parties for a choice: it cannot do without one.
        replaces_noise: whether profile `paper` lets one party's noise replace another's.
        encodings: how it can take attributes.
        only_sums: whether every step is a sum, so that it can keep a promise with a delta; other
            mechanisms promise pure epsilon.
        place: where it stands in lists, smallest first.
    """

    name: str
    summary: str
    script: Callable[[Study], Script[Fit]]
    sums: bool = True
    single_turns: bool = False
    replaces_noise: bool = False
    encodings: Sequence[str] = ENCODINGS
    only_sums: bool = False
    place: int = 100

    def run(self, study: Study) -> ScriptRun:
        """Begin a fresh copy of the script that the study implies.

        Raises:
            InputError: the method cannot do what the study asks of it.
        """
        if study.encoding not in self.encodings:
            raise InputError(
                f"encoding: {self.name} cannot take {study.encoding!r}; use encoding = "
                f'"{self.encodings[0]}"'
            )
        if study.may_miss and self.single_turns:
            raise InputError(
                f"may_miss: {self.name} asks single parties for a turn of their own, so it cannot "
                "do without one. Use may_miss = 0, or another method"
            )
        rows = {member.name: member.rows for member in study.members}
        return ScriptRun(self.script(study), rows, possible=study.schema.possible)
