"""The shell around the real role: a party that dies before every message changes nothing."""

import datetime as dt
from collections import deque
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from common.wire import codec
from curator.role import SendToParty
from party.journal import Journal, JournalState
from party.ledger import Caps, Ledger
from party.node import PartyNode
from party.sources.source import Snapshot
from tests.harness.roles import curator_role, party_role
from tests.harness.small_study import EveryKindOfStep, make_study

CAPS = Caps(per_study=Fraction(100), in_total=Fraction(100))


class Party:
    """A node on a file of its own, with numbered deliveries in both directions."""

    def __init__(self, path, name, study, identity, table):
        self.path, self.name = path, name
        self.study, self.identity, self.table = study, identity, table
        self.keys = SeededRandomSource(name)  # survives, so that two runs draw the same keys
        self.delivered = 0
        self.sent = deque()
        self.database = None
        self.start()

    def start(self):
        if self.database is not None:
            self.database.close()
        self.database = Database(self.path, logged=True)
        self.ledger = Ledger(self.database)
        self.journal = Journal(self.database, self.keys)
        self.node = PartyNode(
            self.study,
            Snapshot(rows=1, digest="d", as_of=None),
            party="a",
            role=self.make_role,
            journal=self.journal,
            ledger=self.ledger,
            caps=lambda: CAPS,
            clock=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            send=self.sent.append,
            consents=lambda: True,
        )

    def make_role(self, source_for_step):
        return party_role(
            self.study, EveryKindOfStep, self.name, self.identity, self.table,
            source_of=source_for_step,
        )  # fmt: skip

    def deliver(self, message):
        self.delivered += 1
        self.node.receive(self.delivered, codec.TO_PARTY.encode(message))


def run(folder, study, people, data, key, *, mortal=()):
    """The released results, and the parties."""
    folder.mkdir()
    curator = curator_role(study, EveryKindOfStep, key=key)
    parties = {
        name: Party(folder / f"{name}.db", name, study, people[name], data[name]) for name in data
    }
    waiting = deque(curator.start())
    while waiting:
        effect = waiting.popleft()
        if not isinstance(effect, SendToParty):
            continue
        party = parties[effect.to]
        if party.name in mortal:
            party.start()
        party.deliver(effect.message)
        while party.sent:
            waiting.extend(
                curator.receive(party.name, codec.TO_CURATOR.decode(party.sent.popleft().body))
            )
    return curator.model().results, parties


@pytest.mark.parametrize(
    ("aggregation", "noise", "profile", "mortal"),
    [
        (Aggregation.MASKED, Noise.DISTRIBUTED, "sound", ("north", "east", "south")),
        pytest.param(
            Aggregation.PAILLIER, Noise.ONE_SHARE, "paper", ("east",), marks=pytest.mark.slow
        ),
    ],
)
def test_a_party_that_dies_before_every_message_comes_to_the_same_release(
    tmp_path, identities, rows, tables, paillier_key, aggregation, noise, profile, mortal
):  # fmt: skip
    study = make_study(identities, rows, aggregation=aggregation, noise=noise, profile=profile)
    steady, before = run(tmp_path / "steady", study, identities, tables, paillier_key)
    shaken, after = run(tmp_path / "shaken", study, identities, tables, paillier_key, mortal=mortal)
    assert len(steady) == len(shaken) > 4
    for first, second in zip(steady, shaken, strict=True):
        assert np.array_equal(first, second)
    for name, party in after.items():
        assert party.node.state is JournalState.FINISHED
        assert party.ledger.spent() == before[name].ledger.spent() > 0
        party.database.close()
        before[name].database.close()
