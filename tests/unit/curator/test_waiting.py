"""A step is opened, and so charged, when every owner of it is there; the store knows what waits."""

import datetime as dt

import pytest

from common.crypto.sums.plan import Aggregation
from common.study.messages import PartyRefused, StepOpened, StudyAborted
from common.wire import codec
from common.wire.catalogue import ErrorCode, WireError
from common.wording import moment
from curator.context import ONLINE_FOR_S
from curator.store.records import StudyState, Word
from curator.waiting import in_words
from tests.harness.small_study import make_study
from tests.unit.curator.conftest import NOW, Parties, queues, share, start


def messages(stage, party):
    """Return everything in a party's queue."""
    found, after = [], 0
    while (queued := stage.store.outbox.next(stage.study.digest, party, after=after)) is not None:
        found.append(codec.TO_PARTY.decode(queued.body))
        after = queued.sequence
    return found


def opened(stage, party):
    """Return the steps that a party may be charged for."""
    return [each.step for each in messages(stage, party) if isinstance(each, StepOpened)]


def awaited(stage):
    return [(each.party, each.word, each.since) for each in stage.store.awaited(stage.study.digest)]


def approved_but_east_is_gone(stage):
    studies = stage.studies()
    session = studies.propose(stage.study)
    session.approve("east", stage.signature("east"))
    stage.now += dt.timedelta(seconds=ONLINE_FOR_S)
    session.approve("north", stage.signature("north"))
    return studies, session


def test_a_step_is_opened_for_everybody_when_the_last_of_its_owners_calls(stage, tables):
    studies, session = approved_but_east_is_gone(stage)
    assert session.record.state is StudyState.RUNNING
    assert session.waiting_for == ("east",)
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
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    assert session.record.state is StudyState.DONE


def test_a_call_while_the_step_is_being_held_opens_it(stage, monkeypatch):
    """The call comes between the look at who is online and the note that the step waits."""
    studies = stage.studies()
    hold = studies.store.hold

    def hold_while_east_calls(study, body):
        hold(study, body)
        studies.called("east")

    monkeypatch.setattr(studies.store, "hold", hold_while_east_calls)
    session = studies.propose(stage.study)
    session.approve("east", stage.signature("east"))
    stage.now += dt.timedelta(seconds=ONLINE_FOR_S)
    session.approve("north", stage.signature("north"))
    assert opened(stage, "north") == opened(stage, "east") == [0]
    assert studies.store.held(stage.study.digest) is None
    assert {word for _, word, _ in awaited(stage)} == {Word.ANSWER}


def test_a_curator_that_restarted_waits_for_everybody_to_call(stage, tables):
    approved_but_east_is_gone(stage)
    studies = stage.studies()
    session = studies.session(stage.study.digest, "north")
    assert set(session.waiting_for) == {"north", "east"}
    studies.called("north")
    assert (session.waiting_for, opened(stage, "north")) == (("east",), [])
    studies.called("east")
    assert opened(stage, "north") == opened(stage, "east") == [0]
    Parties(stage.study, stage.identities, tables, session, stage.store).run()
    assert session.record.state is StudyState.DONE


def test_the_messages_are_those_of_a_study_that_never_waited(stage, tables):
    session = start(stage, stage.studies())
    said = Parties(stage.study, stage.identities, tables, session, stage.store).run()
    steady = queues(stage)
    stage.path.unlink()
    stage.now = NOW
    _, session = approved_but_east_is_gone(stage)
    for name, sequence, body in said:
        # A new curator every time, which no party has called: every step is held at first.
        session = stage.studies().session(stage.study.digest, name)
        for each in session.names:
            session.called(each)
        session.receive(name, sequence, body)
        stage.opened.pop().close()
    assert stage.studies().session(stage.study.digest, "east").record.state is StudyState.DONE
    assert queues(stage) == steady


def test_a_party_that_hung_up_is_gone_until_it_calls_again(stage):
    studies = stage.studies()
    session = studies.propose(stage.study)
    session.approve("east", stage.signature("east"))
    with studies.presence.listening("east"):
        pass  # it died while it waited for work
    session.approve("north", stage.signature("north"))
    assert session.waiting_for == ("east",)
    assert opened(stage, "north") == []
    studies.called("east")
    assert opened(stage, "north") == [0]


def test_a_message_for_a_step_that_is_not_open_is_out_of_turn_and_a_refusal_counts(stage):
    _, session = approved_but_east_is_gone(stage)
    refused = codec.TO_CURATOR.encode(
        PartyRefused(study=stage.study.digest, step=0, reason="no budget left")
    )
    with pytest.raises(WireError) as refusal:
        session.receive("north", 1, share(stage))
    assert refusal.value.code is ErrorCode.OUT_OF_TURN
    session.receive("north", 1, refused)
    assert session.record.state is StudyState.REFUSED
    assert opened(stage, "north") == opened(stage, "east") == []
    assert isinstance(messages(stage, "east")[-1], StudyAborted)


def test_a_study_that_ends_while_its_step_is_held_never_opens_it(stage):
    studies, session = approved_but_east_is_gone(stage)
    session.abort("enough")
    studies.called("east")
    assert opened(stage, "north") == opened(stage, "east") == []
    assert awaited(stage) == []
    assert stage.store.held(stage.study.digest) is None


def test_an_answer_ends_the_wait_for_its_party_and_leaves_the_others_times(stage, tables):
    studies = stage.studies()
    session = start(stage, studies)
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    answers = []
    while not answers:
        answers = parties.step()
    stage.now += dt.timedelta(seconds=30)
    session.receive(*next(answer for answer in answers if answer[0] == "north"))
    assert awaited(stage) == [("east", Word.ANSWER, NOW.isoformat())]
    again = stage.studies().session(stage.study.digest, "north")
    assert again.waiting_for == ("east",)


def test_a_ring_waits_for_the_party_that_has_not_handed_on(stage, rows, tables, paillier_key):
    stage.study = make_study(stage.identities, rows, aggregation=Aggregation.PAILLIER)
    studies = stage.studies()
    session = studies.propose(stage.study)
    stage.store.keep_paillier_key(stage.study.digest, paillier_key)
    for name in session.names:
        session.approve(name, stage.signature(name))
    assert session.waiting_for == ("north",)
    parties = Parties(stage.study, stage.identities, tables, session, stage.store)
    answers = []
    while not answers:
        answers = parties.step()
    for answer in answers:
        session.receive(*answer)
    assert session.waiting_for == ("east",)
