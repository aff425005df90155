"""A curator looks at its clocks: deadlines, old queues, and alerts to the operator."""

import datetime as dt
import logging
from concurrent.futures import ThreadPoolExecutor

from common.errors import LocalError
from common.service.alerts import Hook
from common.service.process import stamp
from common.wording import moment
from curator.metrics import CallCounter, curator_samples
from curator.store.records import StudyState, Word
from curator.store.store import KEEP_QUEUES_H
from curator.upkeep import WRITE_CALLS_EVERY_S, Alerting, Upkeep, WaitingLimits, look
from tests.unit.curator.conftest import (
    HOUR,
    NOW,
    acknowledge_all,
    end_one,
    look_for,
    names,
    start,
)

MONTH = KEEP_QUEUES_H * HOUR
A_WHILE = dt.timedelta(seconds=WRITE_CALLS_EVERY_S)


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


def called(store):
    return {name: party.seen_at for name, party in store.parties().items()}


def test_an_overdue_study_is_said_once_measured_and_ended_only_if_asked(stage, ring, caplog):
    studies = stage.studies()
    session = start(stage, studies)
    label = stage.study.digest.hex()[:16]
    upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR, end_overdue=False))
    with caplog.at_level(logging.WARNING):
        upkeep.look()
        look_for(stage, upkeep, HOUR)
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
    assert session.record.state is StudyState.RUNNING
    upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR, end_overdue=True))
    upkeep.look()
    look_for(stage, upkeep, HOUR)
    assert session.record.state is StudyState.RUNNING, "the wait begins anew with the process"
    look_for(stage, upkeep, dt.timedelta(seconds=1))
    assert session.record.state is StudyState.FAILED
    assert "it waits for east, north since" in session.record.cause
    assert samples(stage, ring.files) == {("parley_curator_overdue_studies", None): 0}


def test_calls_are_on_disk_within_a_minute_and_when_asked_for(stage):
    studies = stage.studies()
    studies.enrol("north", identity=b"", software="parley")
    upkeep = Upkeep(studies, WaitingLimits(deadline=dt.timedelta(days=1), end_overdue=False))
    upkeep.look()
    for _ in range(3):
        stage.now += A_WHILE / 4
        studies.called("north")
        upkeep.look()
    assert called(stage.store) == {"north": stamp(NOW)}
    upkeep.write_calls()
    assert called(stage.store) == {"north": stamp(NOW + 3 * A_WHILE / 4)}
    stage.now += A_WHILE
    studies.called("north")
    upkeep.look()
    assert called(stage.store) == {"north": stamp(stage.now)}


def test_a_queue_that_is_never_acknowledged_goes_after_a_while(stage, tables):
    studies = end_one(stage, tables)
    acknowledge_all(stage, "north")
    upkeep = Upkeep(studies, WaitingLimits(deadline=dt.timedelta(days=1), end_overdue=False))
    look_for(stage, upkeep, MONTH - HOUR, every=HOUR)
    assert stage.database.rows("SELECT COUNT(*) FROM content") != [(0,)]
    assert names(studies, "east") == ["test"]
    look_for(stage, upkeep, HOUR, every=HOUR)
    assert stage.database.rows("SELECT COUNT(*) FROM content") == [(0,)]
    assert names(studies, "east") == []
    assert names(studies, "east", with_ended=True) == ["test"], "how it ended can be asked for"
    assert stage.store.outbox.next(stage.study.digest, "east", after=0) is None


def test_an_open_study_keeps_its_queue_however_old_it_is(stage):
    studies = stage.studies()
    session = start(stage, studies)
    upkeep = Upkeep(studies, WaitingLimits(deadline=20 * MONTH, end_overdue=True))
    look_for(stage, upkeep, 2 * MONTH, every=HOUR)
    assert session.record.state is StudyState.RUNNING
    assert stage.store.outbox.next(stage.study.digest, "east", after=0) is not None


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
        upkeep, alerting = Upkeep(studies, limits), Alerting(stage.store, hook, workers)
        for minutes in (1, 10, 60):
            look_for(stage, upkeep, dt.timedelta(minutes=minutes))
            alerting.look()
        studies.known(stage.study.digest).abort("enough")
        while stage.store.alerts():
            alerting.look()
    since = f"it waits for east, north since {moment(NOW.isoformat())}"
    assert hook.taken == [("waiting", since), ("overdue", since), ("failed", "enough")]
    assert "the webhook did not take an event: refused" in caplog.text, "and is asked again"


def test_who_is_awaited_is_named_with_whom_to_ask_when_the_hook_is_told(stage):
    studies, events = stage.studies(), []
    start(stage, studies)

    class Hook:
        tell = events.append

    contacts = {"north": "ops@north.example", "nobody": "x@example.org"}
    with ThreadPoolExecutor(1) as workers:
        upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR, warning=HOUR / 6))
        alerting = Alerting(stage.store, Hook(), workers, contacts=contacts)
        look_for(stage, upkeep, HOUR / 5)
        alerting.look()
        look_for(stage, upkeep, HOUR)  # overdue, and before the hook is told of it, east answers
        with stage.store.transaction():
            stage.store.wait_for(stage.study.digest, ["north"], Word.ANSWER, at="")
        while stage.store.alerts():
            alerting.look()
        studies.known(stage.study.digest).abort("enough")
        while stage.store.alerts():
            alerting.look()
    waiting, overdue, failed = events
    assert waiting["waits_for"] == ["east", "north"]
    assert overdue["waits_for"] == ["north"]
    assert waiting["contacts"] == overdue["contacts"] == {"north": "ops@north.example"}
    assert "contacts" not in failed


def test_what_fails_in_a_look_keeps_no_alert_from_the_operator(stage, monkeypatch, caplog):
    studies, hook = stage.studies(), Hooked()
    start(stage, studies)
    studies.known(stage.study.digest).abort("enough")
    studies.enrol("north", identity=b"", software="parley")

    def failing(*_, **__):
        raise LocalError("the disk is full")

    with ThreadPoolExecutor(1) as workers:
        upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR))
        alerting = Alerting(stage.store, hook, workers)
        stage.now += HOUR
        studies.called("north")
        with monkeypatch.context() as full:
            full.setattr(studies, "open", failing)
            full.setattr(stage.store, "note_calls", failing)
            look(studies, upkeep, alerting)
    assert hook.taken == [("failed", "enough")]
    assert called(stage.store) == {"north": stamp(NOW)}
    monkeypatch.setattr(stage.store, "alerts", failing)
    look(studies, upkeep, alerting)
    assert called(stage.store) == {"north": stamp(stage.now)}, "what failed is tried again"
    assert warnings(caplog) == [
        "looking for new studies: the disk is full",
        "looking for what is due: the disk is full",
        "looking for alerts: the disk is full",
    ]


def test_without_a_hook_events_are_dropped(stage):
    studies = stage.studies()
    start(stage, studies)
    studies.known(stage.study.digest).abort("enough")
    assert len(stage.store.alerts()) == 1
    with ThreadPoolExecutor(1) as workers:
        Alerting(stage.store, Hook(), workers).look()
    assert stage.store.alerts() == []


def test_a_queue_outlives_a_clock_that_is_a_month_ahead_and_is_not_kept_by_one_behind(
    stage, tables
):
    studies = end_one(stage, tables)
    for by in (2 * MONTH, -4 * MONTH, 2 * MONTH):
        upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR))
        stage.set_clock(by)
        look_for(stage, upkeep, 2 * HOUR, every=HOUR)
        assert names(studies, "east") == ["test"], "the study ended hours ago"
    stage.set_clock(-10 * MONTH)
    look_for(stage, Upkeep(studies, WaitingLimits(deadline=HOUR)), MONTH, every=HOUR)
    assert names(studies, "east") == []


def test_a_curator_that_was_stopped_for_a_month_drops_nothing_when_it_goes_on(stage, tables):
    studies = end_one(stage, tables)
    upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR))
    stage.now += 2 * MONTH
    upkeep.look()
    assert names(studies, "east") == ["test"]


def test_nobody_is_late_for_what_the_curator_itself_missed(stage):
    studies = stage.studies()
    session = start(stage, studies)
    limits = WaitingLimits(deadline=2 * HOUR, end_overdue=True)
    upkeep = Upkeep(studies, limits)
    upkeep.look()
    look_for(stage, upkeep, HOUR)
    stage.set_clock(MONTH)  # the clock is wrong, and right again
    upkeep.look()
    stage.set_clock(-MONTH)
    upkeep.look()
    look_for(stage, upkeep, HOUR)
    stage.now += MONTH  # the machine was suspended
    upkeep.look()
    look_for(stage, upkeep, HOUR)
    upkeep = Upkeep(studies, limits)  # the curator was started again
    stage.now += dt.timedelta(seconds=1)
    upkeep.look()
    look_for(stage, upkeep, 2 * HOUR)
    assert session.record.state is StudyState.RUNNING
    look_for(stage, upkeep, dt.timedelta(seconds=1))
    assert session.record.state is StudyState.FAILED, "it waited for so long while all was well"


def test_a_party_has_a_minute_to_call_however_short_the_deadline_is(stage):
    studies = stage.studies()
    session = start(stage, studies)
    upkeep = Upkeep(studies, WaitingLimits(deadline=HOUR / 3600, end_overdue=True))
    upkeep.look()
    look_for(stage, upkeep, HOUR / 60)
    assert session.record.state is StudyState.RUNNING
    look_for(stage, upkeep, HOUR / 3600)
    assert session.record.state is StudyState.FAILED


def test_an_event_is_tried_for_a_day_of_running_whatever_the_wall_clock_says(stage, caplog):
    studies, hook, ran = stage.studies(), Hooked(failures=99), [0.0]
    start(stage, studies)
    studies.known(stage.study.digest).abort("enough")
    with ThreadPoolExecutor(1) as workers:
        alerting = Alerting(stage.store, hook, workers, monotonic=lambda: ran[0])
        stage.set_clock(MONTH)

        def failed(times):
            while 99 - hook.failures < times:
                alerting.look()
            workers.submit(int).result()
            alerting.look()

        failed(2)
        assert len(stage.store.alerts()) == 1
        ran[0] += 24 * 3600
        failed(3)
    assert stage.store.alerts() == []
    assert "the operator was never told" in caplog.text
