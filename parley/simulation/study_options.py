"""What may be chosen about a study, in the words of the command line and of the Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError
from common.privacy.budget import parse_delta, parse_epsilon
from common.schema import Schema
from common.study.criteria import read_criteria
from common.study.document import Member, Study, settings_of

DEFAULT_METHOD = "subn+"

_Word = TypeVar("_Word", Noise, Aggregation)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """A study without its schema and its parties; see `common.study.document.Study`.

    Attributes:
        epsilon: what each owner's rows may cost.
        delta: the probability outside of which epsilon holds; 0 for pure epsilon.
        noise: "distributed" or "one-share"; None for what the profile calls for.
        output_rows: how many synthetic rows; None for as many as there are real ones.
        settings: of the method, by name: texts and whole numbers.
        criteria: the tables of [[criterion]].
        criteria_epsilon: the part of epsilon that they cost; 0 if there are none.
    """

    epsilon: str | Fraction | int | float
    name: str = "simulation"
    method: str = DEFAULT_METHOD
    profile: str = "sound"
    noise: str | None = None
    aggregation: str = "paillier"
    colluders: int = 1
    may_miss: int = 0
    cohorts: int = 1
    key_bits: int = 2048
    encoding: str = "own"
    output_rows: int | None = None
    settings: Mapping[str, str | int] = field(default_factory=dict)
    delta: str | Fraction | int | float = 0
    rows_per_person: int = 0
    owners_per_person: int = 1
    criteria: Sequence[Mapping[str, object]] = ()
    criteria_epsilon: str | Fraction | int | float = 0

    def study(self, schema: Schema, members: Sequence[Member]) -> Study:
        """The study of these parties.

        Raises:
            InputError: the choices contradict each other.
        """
        return Study(
            name=self.name,
            schema=schema,
            members=tuple(members),
            epsilon=parse_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            method=self.method,
            profile=self.profile,
            noise=_noise(self.noise, self.profile),
            aggregation=_word(Aggregation, "aggregation", self.aggregation),
            colluders=self.colluders,
            may_miss=self.may_miss,
            cohorts=self.cohorts,
            key_bits=self.key_bits,
            encoding=self.encoding,
            output_rows=0 if self.output_rows is None else self.output_rows,
            rows_per_person=self.rows_per_person,
            owners_per_person=self.owners_per_person,
            settings=settings_of(self.settings, where=f"[{self.method}]"),
            criteria=read_criteria(self.criteria),
            criteria_epsilon=parse_epsilon(self.criteria_epsilon)
            if self.criteria_epsilon
            else Fraction(0),
        )


def _noise(written: str | None, profile: str) -> Noise:
    if written is None:
        return Noise.ONE_SHARE if profile == "paper" else Noise.DISTRIBUTED
    return _word(Noise, "noise", written)


def _word(kind: type[_Word], key: str, written: str) -> _Word:
    try:
        return kind(written)
    except ValueError:
        raise InputError(
            f"{key}: {written!r} is not one of {', '.join(word.value for word in kind)}"
        ) from None
