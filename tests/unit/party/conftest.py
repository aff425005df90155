"""A small study for the shell's tests: a role that charges, draws, seals and remembers."""

import datetime as dt
import hashlib
import os
from fractions import Fraction
from types import SimpleNamespace

import pytest

from common.errors import RemoteProtocolError
from common.privacy.randomness import OsRandomSource
from common.service.database import Database
from common.study.messages import (
    ResultPublished,
    StepOpened,
    StudyFinished,
    StudyOpened,
)
from common.wire import codec
from party.journal import Journal
from party.ledger import Caps, Ledger
from party.node import PartyNode
from party.role import ChargeBudget, SendToCurator
from party.sources.source import Snapshot
from tests.harness.rounds import say

STUDY = hashlib.sha256(b"a study").digest()
STEPS = 3


class FakeRole:
    """Answers each step with what it drew, a nonce as sealing adds one, and a memory of it all."""

    phase = "counting"

    def __init__(self, source_for_step, epsilon=Fraction(1, 4)):
        self.source_for_step = source_for_step
        self.epsilon = epsilon
        self.memory = hashlib.sha256()

    def receive(self, message):
        match message:
            case StepOpened():
                if message.digest != bytes(32):
                    raise RemoteProtocolError("that is not the step this study implies")
                return self.answer(message.step)
            case ResultPublished():
                self.memory.update(message.result)
        return []

    def answer(self, step):
        source = self.source_for_step(step)
        noise = source.random_bytes(16) + self.source_for_step(step).random_bytes(16)
        before = self.memory.digest()
        self.memory.update(noise)
        sealed = os.urandom(16)  # differs on replay, as a sealed envelope does
        return [
            ChargeBudget(step=f"step {step}", mechanism="Laplace", epsilon=self.epsilon),
            SendToCurator(message=say("masked input", 0, before + noise, study=STUDY, step=step)),
            SendToCurator(message=say("envelope", sealed, study=STUDY, step=step, peer="b")),
        ]


def script():
    """Everything the curator says in the study, in order."""
    spoken = [StudyOpened(study=STUDY, public_key=b"key")]
    for step in range(STEPS):
        spoken.append(StepOpened(study=STUDY, step=step, digest=bytes(32), opening=b""))
        spoken.append(ResultPublished(study=STUDY, step=step, result=bytes([step])))
    return [*spoken, StudyFinished(study=STUDY)]


@pytest.fixture
def stage(quick_folder):
    """Opens a node on the same file again and again: `stage.node()`; `stage.sent` is the wire."""
    result = SimpleNamespace(
        path=quick_folder / "party.db",
        sent=[],
        opened=[],
        study=STUDY,
        codec=codec.TO_PARTY,
        script=[codec.TO_PARTY.encode(message) for message in script()],
        caps=Caps(per_study=Fraction(1), in_total=Fraction(2)),
        agreed=SimpleNamespace(digest=STUDY, name="a study", person_rows=0, owners_per_person=1),
        snapshot=Snapshot(rows=1, digest="d1", as_of=None),
    )

    def node(*, send=None, role=FakeRole, source=None, consents=lambda: True):
        database = Database(result.path, logged=True)
        result.opened.append(database)
        result.database = database
        result.journal = Journal(database, source or OsRandomSource())
        result.ledger = Ledger(database)
        return PartyNode(
            result.agreed,
            result.snapshot,
            party="a",
            role=role,
            journal=result.journal,
            ledger=result.ledger,
            caps=lambda: result.caps,
            clock=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            send=send or result.sent.append,
            consents=consents,
        )

    result.node = node
    yield result
    for database in result.opened:
        database.close()
