"""How `parley` ends: one table, for the command, its help, the reference and the tests."""

from __future__ import annotations

from enum import IntEnum

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
    """What a script may rely on; `MEANINGS` says it in words."""

    DONE = 0
    DEFECT = 1
    USAGE = 2
    INPUT = 3
    REFUSED = 4
    PEER = 5
    OTHER_VERSION = 6
    WARNED = 7
    NOT_COUNTERSIGNED = 8
    UNKNOWN_SIGNER = 9
    INTERRUPTED = interrupts.EXIT_CODE
    OUTPUT_CLOSED = 141


MEANINGS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.DEFECT: "a defect of parley, with a stack trace: please report it",
    ExitCode.USAGE: "the command line was not understood",
    ExitCode.INPUT: "the input cannot be used, or `doctor` found something wrong",
    ExitCode.REFUSED: "refused by a budget or a policy",
    ExitCode.PEER: "a peer cannot be reached, or broke the protocol",
    ExitCode.OTHER_VERSION: "a later version of parley made the release, in a format of its own",
    ExitCode.WARNED: "`doctor --monitor` found something worth a look, and nothing wrong",
    ExitCode.NOT_COUNTERSIGNED: "an owner did not countersign a release; the release is kept",
    ExitCode.UNKNOWN_SIGNER: "the release is signed by keys that its study does not name; "
    "it is not verified",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C, SIGTERM); nothing is left half-written",
    ExitCode.OUTPUT_CLOSED: "whatever read the output stopped reading, as `| head` does",
}

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
