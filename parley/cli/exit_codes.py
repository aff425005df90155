"""How `parley` ends: one table, for the command, its help, the reference and the tests."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

from common.errors import (
    LocalError,
    NotCountersignedError,
    OtherVersionError,
    ParleyError,
    PolicyError,
    RemoteProtocolError,
    UnknownSignerError,
)
from parley.cli import interrupts


class ExitCode(IntEnum):
    """What a script may rely on, each with what it means in words."""

    words: str

    def __new__(cls, number: int, words: str) -> Self:
        code = int.__new__(cls, number)
        code._value_, code.words = number, words
        return code

    DONE = 0, "done"
    DEFECT = 1, "a defect of parley, with a stack trace: please report it"
    USAGE = 2, "the command line was not understood"
    INPUT = 3, "the input cannot be used, or `doctor` found something wrong"
    REFUSED = 4, "refused by a budget or a policy"
    PEER = 5, "a peer cannot be reached, or broke the protocol"
    OTHER_VERSION = 6, "a later version of parley made the release, in a format of its own"
    WARNED = 7, "`doctor --monitor` found something worth a look, and nothing wrong"
    NOT_COUNTERSIGNED = 8, "an owner did not countersign a release; the release is kept"
    UNKNOWN_SIGNER = (
        9,
        ("the release is signed by keys that its study does not name; it is not verified"),
    )
    INTERRUPTED = (
        interrupts.EXIT_CODE,
        ("interrupted (Ctrl-C, SIGTERM); nothing is left half-written"),
    )
    OUTPUT_CLOSED = 141, "whatever read the output stopped reading, as `| head` does"


_FAMILIES: tuple[tuple[type[ParleyError], ExitCode], ...] = (
    (NotCountersignedError, ExitCode.NOT_COUNTERSIGNED),  # a PolicyError, too
    (PolicyError, ExitCode.REFUSED),
    (RemoteProtocolError, ExitCode.PEER),
    (OtherVersionError, ExitCode.OTHER_VERSION),
    (UnknownSignerError, ExitCode.UNKNOWN_SIGNER),
    (LocalError, ExitCode.INPUT),
)


def exit_code_of(error: ParleyError) -> ExitCode:
    """Return the code of the error's family; an error of no family is a defect."""
    return next((code for family, code in _FAMILIES if isinstance(error, family)), ExitCode.DEFECT)
