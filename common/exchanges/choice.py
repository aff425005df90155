"""One party's own differentially private choice: the party sends it, and it is published."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from common.crypto.framing import frame
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource
from common.study.document import Study
from common.study.messages import StepMessage
from common.study.requests import Attributes, PartyRows
from common.study.sides import CuratorSide, Move, PartySide, Post
from common.study.steps import Exchange, OnePlace, Result, Step, StepAtCurator, StepAtParty

CHOICE = "choice"  # the outcome of the mechanism


class Choice(Protocol):
    """A mechanism that one party runs on its own rows."""

    @property
    def canonical(self) -> bytes:
        """The mechanism in full, as unambiguous bytes."""

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Choose; the outcome is published."""

    def without_rows(self, source: RandomSource) -> bytes:
        """Return an outcome that the mechanism can have, for a dry run to go on with."""

    def check(self, payload: bytes) -> None:
        """Refuse a payload that is no outcome of the mechanism, with RemoteProtocolError."""

    def links(self, payload: bytes) -> Sequence[Attributes]:
        """Return the sets of variables that the outcome puts together."""


def choice_step(
    *,
    name: str,
    phase: str,
    party: str,
    choice: Choice,
    epsilon: Fraction,
    mechanism: str,
    shapes_steps: bool = True,
) -> Step:
    """Return a step that asks one party for its choice, which costs its rows epsilon.

    `shapes_steps` says whether later steps depend on the outcome; if not, a dry run goes through
    our choices only.
    """
    return Step(
        name=name,
        phase=phase,
        parties=(party,),
        exchange=OwnChoice(choice, party, shapes_steps),
        mechanism=mechanism,
        epsilon=epsilon,
    )


@dataclass(frozen=True)
class OwnChoice(Exchange):
    """What a mechanism chose on the rows of one party."""

    choice: Choice
    chooser: str  # the party that sends the outcome
    shapes_steps: bool = True

    def canonical(self, step: Step) -> bytes:
        ratio = frame((step.epsilon or Fraction(0)).as_integer_ratio())
        return frame(("choice", step.name, self.chooser, self.choice.canonical, ratio))

    def party(self, context: StepAtParty) -> PartySide:
        return Chooser(self.choice, context)

    def curator(self, context: StepAtCurator) -> CuratorSide:
        return Publisher(self, context.step.parties)

    def without_rows(self, step: Step, source: RandomSource) -> Result:
        return self.choice.without_rows(source)

    def in_one_place(self, step: Step, place: OnePlace) -> Result:
        return place.choose(step, self.choice.run)

    def read(self, step: Step, study: Study, data: bytes) -> Result:
        return data

    def check(self, step: Step, result: Result) -> None:
        if not isinstance(result, bytes):
            raise LocalError(f"step {step.name!r} is a choice, and its result is a sum")
        self.choice.check(result)

    def owners_with(self, step: Step, party: str) -> int:
        """Return 0: nothing is added up."""
        return 0

    def links_in(self, result: bytes) -> Sequence[Attributes]:
        return self.choice.links(result)


class Chooser(PartySide):
    """The party that chooses. It publishes what it chose and nothing else."""

    def __init__(self, choice: Choice, context: StepAtParty) -> None:
        self._name = context.name
        self._chosen = choice.run(context.data, context.source)

    def begin(self) -> list[Post]:
        return [Post(round=CHOICE, payload=(self._chosen,))]

    def check_result(self, result: bytes) -> None:
        require_own(result, self._chosen, name=self._name)


class Publisher(CuratorSide):
    """Takes the outcome that the chooser sends."""

    awaits: Collection[str] = (CHOICE,)

    def __init__(self, exchange: OwnChoice, parties: tuple[str, ...]) -> None:
        self._exchange, self._parties = exchange, parties
        self._chosen: bytes | None = None

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return self._parties if self._chosen is None else ()

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        if sender != self._exchange.chooser:
            raise RemoteProtocolError(f"it is not the turn of {sender!r} to choose")
        (payload,) = message.parts(bytes)
        self._exchange.choice.check(payload)
        self._chosen = payload
        return []

    def result(self) -> bytes:
        if self._chosen is None:
            raise LocalError("a choice is published before it is made")
        return self._chosen


def require_own(result: bytes, chosen: bytes | None, *, name: str) -> None:
    """Raise RemoteProtocolError unless a published choice is the one that this party made."""
    if chosen is not None and result != chosen:
        raise RemoteProtocolError(f"the choice that is published is not the one {name!r} made")
