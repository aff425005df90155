"""A method of a study as one object, and the settings that a study gives it.

Settings are the table of study.toml that has the method's name. Every method with settings has a
`Setting` for each and puts what is read into a frozen dataclass of its own,
so that a new method with new settings is one file. Values are texts and whole numbers; they are in
the study's canonical bytes as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from common.errors import InputError
from common.privacy.budget import parse_epsilon
from common.schema.toml import Parser, read_table
from common.study.document import ENCODINGS, Study
from common.study.script import Fit, Script, ScriptRun


@dataclass(frozen=True, slots=True)
class PublicDecision:
    """One thing that a method settles before any row is looked at, from public facts."""

    name: str
    value: str
    caution: str | None = None  # what a user has to know: that a cap made it smaller


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is forecast of one declared analysis, before anything is spent."""

    analysis: str  # in words
    within: float  # half the width of its interval
    unit: str  # what the width is of
    how: str  # which tables it rests on

    @property
    def words(self) -> str:
        return f"{self.how}; {self.unit} within about +-{self.within:.2g}"


@dataclass(frozen=True, slots=True)
class Setting:
    """What may be chosen about a method: a key of its table in study.toml, and of --set."""

    read: Parser
    default: str  # as it is written; in words where a method finds it out
    meaning: str


def no_decisions(study: Study) -> Sequence[PublicDecision]:
    """Refuse settings; there is nothing to tell."""
    read_settings(study, {})
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What a study's `method` names."""

    name: str  # as it stands in study.toml
    summary: str  # a line of help
    script: Callable[[Study], Script[Fit]]  # its steps, and the model that comes of them
    # Of the steps and the model that follow from a study and its results: a change of either is a
    # new version, and releases of older ones are no longer derived again (`parley verify` says so).
    version: int = 1
    # Whether the parties' answers are added up; else each publishes a model of its own.
    sums: bool = True
    # Whether it asks single parties for a choice: it cannot do without one.
    single_turns: bool = False
    replaces_noise: bool = False  # whether profile `paper` lets one party's noise replace another's
    encodings: Sequence[str] = ENCODINGS  # how it can take attributes
    parties: int | None = None  # how many parties it is for; None for any number
    settings: Mapping[str, Setting] = field(default_factory=dict)
    # Its settings and what follows from them; refuses settings that it does not have.
    decisions: Callable[[Study], Sequence[PublicDecision]] = no_decisions
    # At most how many tables its steps ask for, where one step may have too many to be made; 0
    # where the steps show their tables one after the other, and none is made in vain.
    tables: Callable[[Study], int] = lambda study: 0
    # Settings of a new study that its proposer leaves open, by public facts. They become part of
    # the document; a study without them keeps the meaning that it had when it was agreed on.
    forecast: Callable[[Study], Mapping[str, str | int]] = lambda study: {}
    # A new study under the promise that shows more, if a stronger one than it asks for does.
    clearest: Callable[[Study], Study] = lambda study: study
    # What protection from other parties rests on besides its sums; "" if on nothing.
    assumes: Callable[[Study], str] = lambda study: ""
    linked: bool = False  # whether it can take people with their events: schemas with [events]
    analyses: bool = False  # whether it measures what a study's analyses need first
    # Of a study that declares some: their forecasts, and for each the epsilon and the rows that
    # would halve its interval, as far as any would.
    prospects: Callable[[Study], Sequence[Prospect]] = lambda study: ()
    halving: Callable[[Study], Sequence[tuple[Fraction | None, int | None]]] = lambda study: ()
    # What would make a study clearer, if anything is forecast to.
    advice: Callable[[Study], Sequence[str]] = lambda study: ()
    # Whether every step is a sum, so that it can keep a promise with a delta; other mechanisms
    # promise pure epsilon.
    only_sums: bool = False
    publishes_rows: bool = True  # whether a release has a table of synthetic rows
    place: int = 100  # where it stands in lists, smallest first

    def run(self, study: Study) -> ScriptRun:
        """Begin a fresh copy of the script; InputError if the method cannot do what is asked."""
        if study.encoding not in self.encodings:
            raise InputError(
                f"encoding: {self.name} cannot take {study.encoding!r}; use encoding = "
                f'"{self.encodings[0]}"'
            )
        if study.schema.events is not None and not self.linked:
            raise InputError(
                f"method: {self.name} is for single tables, and the schema has [events]. Use "
                "method subn+ or floor"
            )
        if study.analyses and not self.analyses:
            raise InputError(
                f"analysis: {self.name} measures nothing first. Leave the analyses out, or use "
                "method subn+ or answers"
            )
        if self.parties not in (None, len(study.members)):
            raise InputError(
                f"party: {self.name} is for {self.parties} parties, not {len(study.members)}. "
                "Use another method"
            )
        self.decisions(study)
        if study.may_miss and self.single_turns:
            raise InputError(
                f"may_miss: {self.name} asks single parties for a turn of their own, so it cannot "
                "do without one. Use may_miss = 0, or another method"
            )
        return ScriptRun(
            self.script(study),
            study.rows_of,
            possible=study.schema.possible,
            protected_rows=study.promise.protected_rows,
            tables=self.tables(study),
        )


def read_settings(
    study: Study, settings: Mapping[str, Setting], *, required: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the settings that a study has; InputError names the key and what would do."""
    if study.settings and not settings:
        keys = ", ".join(key for key, _ in study.settings)
        raise InputError(
            f"[{study.method}]: the method has no settings, and the study gives {keys}. "
            "Leave the table out"
        )
    parsers = {key: setting.read for key, setting in settings.items()}
    return read_table(dict(study.settings), parsers, inside=study.method, required=required)


def between(low: int, high: int) -> Parser:
    """Take a whole number between two others, both included."""

    def parse(value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise InputError(f"expected a whole number from {low} to {high}, got {value!r:.100}")
        return value

    return parse


def above_zero(value: str | int) -> Fraction:
    """Take a number above zero, written as a text or a whole number."""
    try:
        return parse_epsilon(value)
    except InputError:
        raise InputError(f"expected a number above 0, got {value!r:.100}") from None


def parts(count: int) -> Parser:
    """Take so many numbers above zero with colons between them, such as "1:1:2:4"."""

    def parse(value: object) -> tuple[Fraction, ...]:
        written = str(value).split(":")
        if len(written) != count:
            raise InputError(f"{value!r:.100} has {len(written)} parts, not {count}")
        return tuple(above_zero(part.strip()) for part in written)

    return parse
