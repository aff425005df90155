"""A study of a curator on a file, and everything that the parties of a small study say to it."""

import datetime as dt
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.privacy.randomness import SeededRandomSource
from common.service.database import Database
from common.study.signatures import approval_statement
from common.wire import codec
from curator.dashboard.serving import serving_dashboard
from curator.dashboard.site import WatchedService
from curator.metrics import CallCounter
from curator.settings import CuratorSettings
from curator.store.records import StudyState
from curator.store.store import Store
from curator.studies import Studies
from party.role import SendToCurator
from tests.harness.consortium import authority
from tests.harness.roles import party_role
from tests.harness.rounds import say
from tests.harness.small_study import EveryKindOfStep, make_study
from tests.unit.service.web.conftest import Client

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
        set_by=dt.timedelta(),  # how far the wall clock was set, without time passing
    )

    def monotonic():
        return (result.now - NOW - result.set_by).total_seconds()

    def set_clock(by):
        result.now += by
        result.set_by += by

    def publish(outcome):
        result.outcomes.append(outcome)
        return Path("release")

    def studies(*, publish=publish, later=lambda task: task(), source=None, begin=EveryKindOfStep):
        database = Database(result.path, logged=True)
        result.opened.append(database)
        result.database = database
        result.store = Store(database, source or SeededRandomSource("curator"))
        made = Studies(
            result.store, begin=begin, publish=publish, clock=lambda: result.now,
            later=later, monotonic=monotonic,
        )  # fmt: skip
        made.open()
        return made

    def signature(name, study=None):
        digest = (study or result.study).digest
        return two[name].sign(approval_statement(study=digest, party=name))

    result.studies, result.signature, result.set_clock = studies, signature, set_clock
    yield result
    for database in result.opened:
        database.close()


@pytest.fixture
def ring(tmp_path):
    """Make the curator's keys."""
    return authority(tmp_path / "hub")


class Parties:
    """Every party's role, over a session's queues."""

    def __init__(self, study, people, data, session, store):
        self.study, self.session, self.store = study, session, store
        self.roles = {
            name: party_role(study, EveryKindOfStep, name, people[name], data[name])
            for name in people
        }
        self.taken = dict.fromkeys(people, 0)
        self.said = dict.fromkeys(people, 0)

    def step(self):
        """Everybody takes the next message; what is said in answer, as (party, number, bytes)."""
        answers = []
        for name, role in self.roles.items():
            self.session.called(name)
            queued = self.store.outbox.next(self.study.digest, name, after=self.taken[name])
            if queued is None:
                continue
            self.taken[name] = queued.sequence
            for effect in role.receive(codec.TO_PARTY.decode(queued.body)):
                if isinstance(effect, SendToCurator):
                    self.said[name] += 1
                    body = codec.TO_CURATOR.encode(effect.message)
                    answers.append((name, self.said[name], body))
        return answers

    def run(self):
        """To the end; everything that was said, in order."""
        said = []
        for _ in range(1000):
            answers = self.step()
            for answer in answers:
                self.session.receive(*answer)
            said += answers
            if self.session.record.state.over and not answers:
                break
        return said


@pytest.fixture
def shown(stage, ring, tmp_path, caplog):
    """Starts dashboards over the stage's file; each gives a client that is logged in."""
    caplog.set_level("INFO")
    held = []

    def start(*, actions=False, signer=None, operators=None, **changes):
        studies = stage.studies(**changes)
        settings = CuratorSettings(
            folder=stage.path.parent, keys=ring.folder, releases=tmp_path, dashboard=True,
            dashboard_listen="127.0.0.1:0", dashboard_operators=operators,
            dashboard_actions=actions, dashboard_offers=signer is not None,
        )  # fmt: skip
        service = WatchedService(
            studies=studies, calls=CallCounter(), files=ring.files,
            clock=lambda: dt.datetime.now(dt.UTC), software="parley test", settings=settings,
            identity=signer,
        )  # fmt: skip
        context = serving_dashboard(service)
        context.__enter__()
        held.append(context)
        port = int(re.findall(r"dashboard on \S+:(\d+)/", caplog.text)[-1])
        client = Client(port)
        token = (settings.folder / "dashboard.token").read_text().strip()
        return SimpleNamespace(
            studies=studies, service=service, client=client, token=token, port=port
        )

    yield start
    for context in held:
        context.__exit__(None, None, None)


def document(page, state=None):
    """Return what the page draws; the only study is in that state."""
    answer = page.client.ask("GET", "/state")
    values = json.loads(answer.body)
    assert state is None or [study["state"] for study in values["studies"]] == [state]
    return values


def begin(page, stage):
    session = page.studies.propose(stage.study)
    for name in session.names:
        session.approve(name, stage.signature(name))
    return session


HOUR = dt.timedelta(hours=1)


def look_for(stage, upkeep, length, *, every=dt.timedelta(seconds=30)):
    """Look again and again, as a running curator does, while so much time passes."""
    until = stage.now + length
    while stage.now < until:
        stage.now = min(until, stage.now + every)
        upkeep.look()


def end_one(stage, tables):
    """Make a study with its release; no party acknowledges it by itself."""
    studies = stage.studies()
    session = start(stage, studies)
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    assert session.record.state is StudyState.DONE
    return studies


def names(studies, party="north", *, with_ended=False):
    return [each.name for each in studies.summaries(party, with_ended=with_ended)]


def acknowledge_all(stage, party):
    digest = stage.study.digest
    stage.store.acknowledge(digest, party, stage.store.outbox.newest(digest, party))


def start(stage, studies):
    session = studies.propose(stage.study)
    for name in session.names:
        session.approve(name, stage.signature(name))
    return session


def queues(stage):
    """Return every message to every party, by its digest."""
    return stage.database.rows("SELECT recipient, sequence, digest FROM outgoing ORDER BY 1, 2")


def share(stage, step=0, payload=b"x"):
    message = say("masked input", 0, payload, study=stage.study.digest, step=step)
    return codec.TO_CURATOR.encode(message)
