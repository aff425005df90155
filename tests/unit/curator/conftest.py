"""A curator's node on a file, and everything that the parties of a small study say to it."""

import datetime as dt
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from common.study import approval
from common.wire import codec
from common.wire.pki.keyring import init_curator
from curator.store.store import Store
from curator.studies import Studies
from parley.simulation.in_process import RowsInMemory
from party.effects import Send
from party.role import PartyRole
from tests.harness.small_study import EveryKindOfStep, make_study

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def stage(quick_folder, identities, rows):
    """Opens studies on the same file again and again."""
    two = {name: identities[name] for name in ("north", "east")}
    result = SimpleNamespace(
        path=quick_folder / "curator.db",
        study=make_study(two, rows),
        identities=two,
        outcomes=[],
        opened=[],
        now=NOW,
    )

    def publish(outcome):
        result.outcomes.append(outcome)
        return Path("release")

    def studies(*, publish=publish, later=lambda task: task(), source=None, begin=EveryKindOfStep):
        database = Database(result.path)
        result.opened.append(database)
        result.database = database
        result.store = Store(database, source or SeededRandomSource("curator"))
        made = Studies(
            result.store, begin=begin, publish=publish, clock=lambda: result.now,
            later=later,
        )  # fmt: skip
        made.open()
        return made

    def signature(name, study=None):
        digest = (study or result.study).digest
        return two[name].sign(approval.statement(study=digest, party=name))

    result.studies, result.signature = studies, signature
    yield result
    for database in result.opened:
        database.close()


@pytest.fixture
def ring(tmp_path):
    """The curator's keys."""
    now = dt.datetime.now(dt.UTC)
    return init_curator(tmp_path / "hub", "hub", ("127.0.0.1",), now=now, external=False)


class Parties:
    """Every party's role, over a node's queues."""

    def __init__(self, study, people, data, node, store):
        self.study, self.node, self.store = study, node, store
        self.roles = {
            name: PartyRole(
                study=study,
                run=EveryKindOfStep(study),
                name=name,
                identity=people[name],
                data=RowsInMemory(data[name]),
                source_of=lambda step, name=name: SeededRandomSource(f"{name} {step}"),
            )
            for name in people
        }
        self.taken = dict.fromkeys(people, 0)
        self.said = dict.fromkeys(people, 0)

    def step(self):
        """Everybody takes the next message; what is said in answer, as (party, number, bytes)."""
        answers = []
        for name, role in self.roles.items():
            self.node.called(name)
            queued = self.store.outbox.next(self.study.digest, name, after=self.taken[name])
            if queued is None:
                continue
            self.taken[name] = queued.sequence
            for effect in role.receive(codec.decode_to_party(queued.body)):
                if isinstance(effect, Send):
                    self.said[name] += 1
                    body = codec.encode_to_curator(effect.message)
                    answers.append((name, self.said[name], body))
        return answers

    def run(self):
        """To the end; everything that was said, in order."""
        said = []
        for _ in range(1000):
            answers = self.step()
            for answer in answers:
                self.node.receive(*answer)
            said += answers
            if self.node.record.state.over and not answers:
                break
        return said
