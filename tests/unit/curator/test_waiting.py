"""A step is opened, and so charged, when every owner of it is there; the store knows what waits."""

import datetime as dt
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import LocalError
from common.service.alerts import Hook
from common.study.messages import PartyRefused, StepOpened, StudyAborted
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from common.wording import moment
from curator.alerting import Alerting
from curator.metrics import CallCounter, curator_samples
from curator.presence import ONLINE_FOR
from curator.store.records import StudyState, Word
from curator.upkeep import Upkeep, WaitingLimits
from curator.waiting import in_words
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import NOW, Parties
from tests.unit.curator.test_node import queues, share, start

HOUR = dt.timedelta(hours=1)


def messages(stage, party):
    """Everything in a party's queue."""
    found, after = [], 0
    while (queued := stage.store.outbox.next(stage.study.digest, party, after=after)) is not None:
        found.append(codec.decode_to_party(queued.body))
        after = queued.sequence
    return found


def opened(stage, party):
    """The steps that a party may be charged for."""
    return [each.step for each in messages(stage, party) if isinstance(each, StepOpened)]


def awaited(stage):
    return [(each.party, each.word, each.since) for each in stage.store.awaited(stage.study.digest)]


def approved_but_east_is_gone(stage):
    studies = stage.studies()
    node = studies.propose(stage.study)
    node.approve("east", stage.signature("east"))
    stage.now += ONLINE_FOR
    node.approve("north", stage.signature("north"))
    return studies, node


def test_a_step_is_opened_for_everybody_when_the_last_of_its_owners_calls(stage, tables):
    studies, node = approved_but_east_is_gone(stage)
    assert node.record.state is StudyState.RUNNING
    assert node.waiting_for == ("east",)
    assert opened(stage, "north") == opened(stage, "east") == []
    waits = stage.store.awaited(stage.study.digest)
    since = stage.now.isoformat()
    assert in_words(waits, step=0) == (
        f"east to call before step 1 is opened, since {moment(since)}"
    )
    studies.open()
    assert opened(stage, "north") == []
    studies.called("east")
    assert opened(stage, "north") == opened(stage, "east") == [0]
    assert awaited(stage) == [(name, Word.ANSWER, since) for name in ("east", "north")]
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    assert node.record.state is StudyState.DONE


def test_a_curator_that_restarted_waits_for_everybody_to_call(stage, tables):
    approved_but_east_is_gone(stage)
    studies = stage.studies()
    node = studies.node(stage.study.digest, "north")
    assert node.waiting_for == ("north", "east")
    studies.called("north")
    assert (node.waiting_for, opened(stage, "north")) == (("east",), [])
    studies.called("east")
    assert opened(stage, "north") == opened(stage, "east") == [0]
    Parties(stage.study, stage.identities, tables, node, stage.store).run()
    assert node.record.state is StudyState.DONE


def test_the_messages_are_those_of_a_study_that_never_waited(stage, tables):
    node = start(stage, stage.studies())
    said = Parties(stage.study, stage.identities, tables, node, stage.store).run()
    steady = queues(stage)
    stage.path.unlink()
    stage.now = NOW
    _, node = approved_but_east_is_gone(stage)
    for name, sequence, body in said:
        # A new curator every time, which no party has called: every step is held at first.
        node = stage.studies().node(stage.study.digest, name)
        for each in node.names:
            node.called(each)
        node.receive(name, sequence, body)
        stage.opened.pop().close()
    assert stage.studies().node(stage.study.digest, "east").record.state is StudyState.DONE
    assert queues(stage) == steady


def test_a_party_that_hung_up_is_gone_until_it_calls_again(stage):
    studies = stage.studies()
    node = studies.propose(stage.study)
    node.approve("east", stage.signature("east"))
    with studies.presence.listening("east"):
        pass  # it died while it waited for work
    node.approve("north", stage.signature("north"))
    assert node.waiting_for == ("east",)
    assert opened(stage, "north") == []
    studies.called("east")
    assert opened(stage, "north") == [0]


def test_a_message_for_a_step_that_is_not_open_is_out_of_turn_and_a_refusal_counts(stage):
    _, node = approved_but_east_is_gone(stage)
    refused = codec.encode_to_curator(
        PartyRefused(study=stage.study.digest, step=0, reason="no budget left")
    )
    with pytest.raises(WireError) as refusal:
        node.receive("north", 1, share(stage))
    assert refusal.value.code is ErrorCode.OUT_OF_TURN
    node.receive("north", 1, refused)
    assert node.record.state is StudyState.REFUSED
    assert opened(stage, "north") == opened(stage, "east") == []
    assert isinstance(messages(stage, "east")[-1], StudyAborted)


def test_a_study_that_ends_while_its_step_is_held_never_opens_it(stage):
    studies, node = approved_but_east_is_gone(stage)
    node.abort("enough")
    studies.called("east")
    assert opened(stage, "north") == opened(stage, "east") == []
    assert awaited(stage) == []
    assert stage.store.held(stage.study.digest) is None


def test_an_answer_ends_the_wait_for_its_party_and_leaves_the_others_times(stage, tables):
    studies = stage.studies()
    node = start(stage, studies)
    parties = Parties(stage.study, stage.identities, tables, node, stage.store)
    answers = []
    while not answers:
        answers = parties.step()
    stage.now += dt.timedelta(seconds=30)
    node.receive(*next(answer for answer in answers if answer[0] == "north"))
    assert awaited(stage) == [("east", Word.ANSWER, NOW.isoformat())]
    again = stage.studies().node(stage.study.digest, "north")
    assert again.waiting_for == ("east",)


def samples(stage, certified):
    return {
        (each.name, each.labels.get("party")): each.value
        for each in curator_samples(
            stage.store, CallCounter(), certified, deadline=HOUR, now=stage.now
        )
        if "waiting" in each.name or "overdue" in each.name
    }


def warnings(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_an_overdue_study_is_said_once_measured_and_ended_only_if_asked(stage, ring, caplog):
    studies = stage.studies()
    node = start(stage, studies)
    label = stage.study.digest.hex()[:16]
    upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR, end_overdue=False))
    with caplog.at_level(logging.WARNING):
        upkeep.look()
        stage.now += HOUR
        upkeep.look()
        assert warnings(caplog) == []
        assert samples(stage, ring.files) == {
            ("parley_curator_overdue_studies", None): 0,
            ("parley_curator_waiting_seconds", "east"): 3600,
            ("parley_curator_waiting_seconds", "north"): 3600,
        }
        stage.now += dt.timedelta(seconds=1)
        for _ in range(3):
            upkeep.look()
    assert warnings(caplog) == [
        f"study {label} is overdue: it waits for east, north since {moment(NOW.isoformat())}"
    ]
    assert samples(stage, ring.files)["parley_curator_overdue_studies", None] == 1
    assert node.record.state is StudyState.RUNNING
    Upkeep(studies, WaitingLimits(deadline=HOUR, end_overdue=True)).look()
    assert node.record.state is StudyState.FAILED
    assert "it waits for east, north since" in node.record.cause
    assert samples(stage, ring.files) == {("parley_curator_overdue_studies", None): 0}


class Hooked:
    """A hook that fails as often as it is told to, and remembers what it took."""

    def __init__(self, failures=0):
        self.failures, self.taken = failures, []

    def tell(self, event):
        if self.failures:
            self.failures -= 1
            raise LocalError("the webhook did not take an event: refused")
        self.taken.append((event["event"], event["words"]))


def test_the_operator_is_told_of_a_waiting_an_overdue_and_an_ended_study(stage, caplog):
    studies, hook = stage.studies(), Hooked(failures=1)
    start(stage, studies)
    limits = WaitingLimits(deadline=HOUR, warning=HOUR / 6, end_overdue=False)
    with ThreadPoolExecutor(1) as workers:
        upkeep = Upkeep(studies, limits, alerting=Alerting(stage.store.alerts, hook, workers))
        for minutes in (1, 10, 60):
            stage.now += dt.timedelta(minutes=minutes)
            upkeep.look()
        studies.known(stage.study.digest).abort("enough")
        while stage.store.alerts.pending():
            upkeep.look()
    since = f"it waits for east, north since {moment(NOW.isoformat())}"
    assert hook.taken == [("waiting", since), ("overdue", since), ("failed", "enough")]
    assert "the webhook did not take an event: refused" in caplog.text, "and is asked again"


def test_without_a_hook_events_are_dropped(stage):
    studies = stage.studies()
    start(stage, studies)
    studies.known(stage.study.digest).abort("enough")
    assert len(stage.store.alerts.pending()) == 1
    with ThreadPoolExecutor(1) as workers:
        Alerting(stage.store.alerts, Hook(), workers).look(stage.now)
    assert stage.store.alerts.pending() == []


def test_a_ring_waits_for_the_party_that_has_not_handed_on(stage, rows, tables, paillier_key):
    stage.study = make_study(stage.identities, rows, aggregation=Aggregation.PAILLIER)
    studies = stage.studies()
    node = studies.propose(stage.study)
    stage.store.keep_paillier_key(stage.study.digest, paillier_key)
    for name in node.names:
        node.approve(name, stage.signature(name))
    assert node.waiting_for == ("north",)
    parties = Parties(stage.study, stage.identities, tables, node, stage.store)
    answers = []
    while not answers:
        answers = parties.step()
    for answer in answers:
        node.receive(*answer)
    assert node.waiting_for == ("east",)
