"""The two sides of an exchange, without I/O: what a role asks of them, and they of a role.

An exchange (`common.study.steps.Exchange`) has a side at every party and one at the curator. A side
is fed what reaches it and answers with `Post`s. The roles do the rest: they open steps, compare
digests, charge before anything of the rows leaves, and publish results. A side that raises has not
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.crypto.identities.identity import LocalParty
from common.errors import RemoteProtocolError
from common.study.messages import Part, StepMessage

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message that a side sends."""

    round: str  # of the exchange
    payload: tuple[Part, ...]
    to: str = ""  # the party that it is for; empty for the curator
    sender: str = ""  # the party that it is from, where the curator relays it
    # Whether anything of the sender's rows is in it: the step is charged before it leaves.
    of_rows: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Expel:
    """A party proved to be at fault leaves the study; `payload`, the proof, goes to all parties."""

    party: str
    reason: str  # for people
    round: str
    payload: tuple[Part, ...]
    facts: Mapping[str, str]  # for the privacy statement


@dataclass(frozen=True, slots=True)
class BeginAgain:
    """The step is opened again, without the parties that left."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Words for the curator's operator."""

    words: str


Move = Post | Expel | BeginAgain | Notice


class ExchangeState:
    """What exchanges keep at a party from one step to the next, by its class. Secret."""

    def __init__(self) -> None:
        self._things: dict[type, Any] = {}

    def keep(self, thing: object) -> None:
        self._things[type(thing)] = thing

    def get(self, kind: type[_T]) -> _T | None:
        """Return the state of a class; None before it is kept."""
        return self._things.get(kind)

    def __repr__(self) -> str:
        return f"ExchangeState({', '.join(kind.__name__ for kind in self._things)})"


@dataclass(slots=True)
class Memory:
    """What a party has for every exchange of a study: keys, and what exchanges keep. Secret."""

    member: LocalParty
    state: ExchangeState = field(default_factory=ExchangeState)


class _Side:
    @property
    def awaits(self) -> Collection[str]:
        """The rounds that it takes now."""
        return ()

    @property
    def absent(self) -> Collection[str]:
        """The parties of the step that are not in its result."""
        return ()


class PartySide(_Side):
    """A party's side; this one is of a party that has no part in the exchange."""

    @property
    def done(self) -> bool:
        """Whether it has given all that is asked of it: then it awaits nothing."""
        return not self.awaits

    @property
    def may_begin_again(self) -> bool:
        """Whether the step may be opened again now."""
        return False

    @property
    def at_fault(self) -> Collection[str]:
        """The parties that this party saw proved to be at fault."""
        return ()

    def begin(self) -> list[Post]:
        """Return what leaves as soon as the step is open."""
        return []

    def receive(self, message: StepMessage) -> list[Post]:
        """Take one of the awaited rounds; return what leaves."""
        raise RemoteProtocolError(f"{message.round}: this party takes no part in the step")

    def check_result(self, result: bytes) -> None:
        """Refuse a published result that cannot be that of this exchange."""


class CuratorSide(_Side):
    """The curator's side."""

    opening = b""  # what every party is told when the step is opened

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The parties whose message it waits for."""
        return ()

    @property
    def done(self) -> bool:
        """Whether it has all that it asked for: then it waits for no party."""
        return not self.waiting_for

    @property
    def collects(self) -> bool:
        """Whether it waits for what holds rows, and not for keys or signatures."""
        return True

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        """Take one of the awaited rounds; return what follows."""
        raise NotImplementedError

    def without(self, party: str) -> list[Move]:
        """Go on without a party that left."""
        return []

    def result(self) -> bytes:
        """Return the result as it is published, once this side is done."""
        raise NotImplementedError


def relayed(sender: str, message: StepMessage) -> Post:
    return Post(round=message.round, payload=message.payload, to=message.peer, sender=sender)
