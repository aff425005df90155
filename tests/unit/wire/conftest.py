"""Examples of every message that travels."""

import pytest

from common.study import messages

DIGEST = bytes(range(32))


@pytest.fixture(scope="session")
def one_of_each():
    """Make every kind of message once, with every field set to something."""
    return (
        messages.StudyOpened(study=DIGEST, public_key=b"key"),
        messages.StepOpened(study=DIGEST, step=0, digest=DIGEST[::-1], opening=b""),
        messages.EnvelopeRelayed(study=DIGEST, step=1, sender="nörd", envelope=b"sealed"),
        messages.ResultPublished(study=DIGEST, step=2, result=bytes(100)),
        messages.KeysRelayed(study=DIGEST, step=2, missing=("east", "nörd"), payload=b"keys"),
        messages.ListPublished(study=DIGEST, step=2, missing=("east",)),
        messages.SignaturesRelayed(study=DIGEST, step=2, payload=bytes(64)),
        messages.BoxDisputed(study=DIGEST, step=2, receiver="east", signature=bytes(64)),
        messages.BoxJudged(
            study=DIGEST,
            step=2,
            dealer="nörd",
            receiver="east",
            evidence=b"box",
            signature=bytes(64),
            secret=bytes(32),
        ),
        messages.StudyFinished(study=DIGEST, missing=("west",)),
        messages.StudyAborted(study=DIGEST, reason="north left\nthe study"),
        messages.EnvelopePosted(study=DIGEST, step=3, recipient="south", envelope=b""),
        messages.ShareSubmitted(study=DIGEST, step=4, chunk=0, payload=b"\x00\xff"),
        messages.KeysDealt(study=DIGEST, step=4, payload=b"boxes"),
        messages.BoxRefused(study=DIGEST, step=4, dealer="nörd", signature=bytes(64)),
        messages.BoxOpened(study=DIGEST, step=4, receiver="east", secret=bytes(32)),
        messages.ListSigned(study=DIGEST, step=4, signature=bytes(64)),
        messages.MasksRevealed(study=DIGEST, step=4, payload=b"shares"),
        messages.ChoiceSubmitted(study=DIGEST, step=5, payload=b"7"),
        messages.PartyRefused(study=DIGEST, step=6, reason=""),
    )
