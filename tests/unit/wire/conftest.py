"""Examples of every message that travels."""

import pytest

from common.study import messages
from tests.harness.rounds import say

DIGEST = bytes(range(32))
NO_PEER = {"study": DIGEST, "step": 2}


@pytest.fixture(scope="session")
def to_party():
    """Make every kind of message to a party once, with every field set to something."""
    return (
        messages.StudyOpened(study=DIGEST, public_key=b"key"),
        messages.StepOpened(study=DIGEST, step=0, digest=DIGEST[::-1], opening=b""),
        messages.ResultPublished(study=DIGEST, step=2, result=bytes(100)),
        say("envelope", b"sealed", study=DIGEST, step=1, peer="nörd"),
        say("share keys", ("east", "nörd"), b"keys", **NO_PEER),
        say("consistency check", ("east",), **NO_PEER),
        say("unmask", bytes(64), **NO_PEER),
        say("open box", "east", bytes(64), **NO_PEER),
        say("judge", "nörd", "east", b"box", bytes(64), bytes(32), **NO_PEER),
        say("of a new exchange", b"x", "text", 7, study=DIGEST, step=2, peer="east"),
        messages.StudyFinished(study=DIGEST, missing=("west",)),
        messages.StudyAborted(study=DIGEST, reason="north left\nthe study"),
    )


@pytest.fixture(scope="session")
def to_curator():
    """The same of messages to the curator."""
    return (
        say("envelope", b"", study=DIGEST, step=3, peer="south"),
        say("masked input", 0, b"\x00\xff", **NO_PEER),
        say("share keys", b"boxes", **NO_PEER),
        say("accuse", "nörd", bytes(64), **NO_PEER),
        say("open box", "east", bytes(32), **NO_PEER),
        say("consistency check", bytes(64), **NO_PEER),
        say("unmask", b"shares", **NO_PEER),
        say("choice", b"7", **NO_PEER),
        say("of a new exchange", **NO_PEER),
        messages.PartyRefused(study=DIGEST, step=6, reason=""),
    )
