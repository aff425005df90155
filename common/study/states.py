"""The states of a study, and every transition between them.

Two rules, after h11. Everything that moves a role from one state to another is in `TRANSITIONS`,
and what is not there is refused. This module does not know which role asks: the curator moves when
it sends `StudyOpened`, and a party when it receives it.

Where the exchange of a step stands is known to its side alone (`common.study.sides`), which says
three things that transitions depend on: the rounds it awaits, whether it is done, and whether the
step may be begun again.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from common.errors import RemoteProtocolError
from common.study.messages import (
    Message,
    PartyRefused,
    ResultPublished,
    StepMessage,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    name_of,
)
from common.study.sides import CuratorSide, PartySide


class RoleState(enum.Enum):
    """Where a study stands for one of its roles; the value is what the role waits for."""

    NOT_OPEN = "the study to open"
    SETTING_UP = "the first step"
    BETWEEN_STEPS = "the next step"
    IN_STEP = "the result of the step"
    FINISHED = "nothing: the release is made"
    ABORTED = "nothing: the study was aborted"


class If(enum.Enum):
    """What must be true of the open exchange for a transition."""

    ANYHOW = enum.auto()
    AWAITED = enum.auto()  # it takes this round now
    DONE = enum.auto()  # this role has given, or has, all that the exchange asks for
    BEGUN_AGAIN = enum.auto()  # it may be opened again


class Transition(NamedTuple):
    """Where a message leads, and on which condition."""

    to: RoleState
    condition: If = If.ANYHOW


_ABORT: Mapping[type[Message], Transition] = {StudyAborted: Transition(RoleState.ABORTED)}
TRANSITIONS: Mapping[RoleState, Mapping[type[Message], Transition]] = {
    RoleState.NOT_OPEN: {StudyOpened: Transition(RoleState.SETTING_UP), **_ABORT},
    RoleState.SETTING_UP: {
        StepMessage: Transition(RoleState.SETTING_UP, If.AWAITED),
        StepOpened: Transition(RoleState.IN_STEP, If.DONE),
        StudyFinished: Transition(RoleState.FINISHED, If.DONE),  # of a study without steps
        PartyRefused: Transition(RoleState.SETTING_UP),
        **_ABORT,
    },
    RoleState.IN_STEP: {
        StepMessage: Transition(RoleState.IN_STEP, If.AWAITED),
        StepOpened: Transition(RoleState.IN_STEP, If.BEGUN_AGAIN),
        ResultPublished: Transition(RoleState.BETWEEN_STEPS, If.DONE),
        PartyRefused: Transition(RoleState.IN_STEP),
        **_ABORT,
    },
    RoleState.BETWEEN_STEPS: {
        StepOpened: Transition(RoleState.IN_STEP),
        StudyFinished: Transition(RoleState.FINISHED),
        **_ABORT,
    },
    RoleState.FINISHED: {},
    RoleState.ABORTED: {},
}


def following(
    state: RoleState,
    message: Message,
    side: PartySide | CuratorSide | None,
    *,
    who: str,
    sender: str = "",
) -> RoleState:
    """Return the state after a message; RemoteProtocolError if it is not expected.

    `side` is that of the open exchange, if there is one; `who` is the role, for the error.
    """
    move = TRANSITIONS[state].get(type(message))
    if move is None or not _holds(move.condition, message, side):
        waits = ", ".join(side.awaits) if side is not None else ""
        raise RemoteProtocolError(
            f"{name_of(message)}{f' of {sender!r}' if sender else ''} is not expected: {who} is "
            f"waiting for {waits or state.value}"
        )
    return move.to


def _holds(condition: If, message: Message, side: PartySide | CuratorSide | None) -> bool:
    match condition:
        case If.ANYHOW:
            return True
        case If.AWAITED:
            rounds = () if side is None else side.awaits
            return isinstance(message, StepMessage) and message.round in rounds
        case If.DONE:
            return side is None or side.done
        case If.BEGUN_AGAIN:
            return isinstance(side, CuratorSide) or (side is not None and side.may_begin_again)
