"""The shell journals and charges before it sends, and comes back from every crash to the same."""

import dataclasses
import hashlib
import json
import os
import signal
import sqlite3
from collections import defaultdict
from fractions import Fraction

import pytest

from common.errors import LocalError, PolicyError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource
from common.study.ids import StudyId
from common.study.messages import PartyRefused, StepOpened, StudyAborted
from common.wire import codec
from party.journal import CURATOR, JournalState
from party.ledger import Caps
from party.role import SendToCurator
from tests.harness.disks import remove_state
from tests.harness.forked import exit_code, fork
from tests.harness.rounds import say

STUDY = StudyId(hashlib.sha256(b"a study").digest())  # the study that the stage is set for


def play(stage, node):
    """Deliver what was not received yet, acknowledging as the curator would."""
    node.resume()
    for number in range(node.newest_received + 1, len(stage.script) + 1):
        node.receive(number, stage.script[number - 1])
        node.acknowledge(stage.journal.outbox.newest(stage.study, CURATOR))


def said(outgoing):
    return codec.TO_CURATOR.decode(outgoing.body)


def written(wire):
    """What a process that was killed had sent, from its log."""
    for line in wire.read_text().splitlines():
        sequence, body = json.loads(line)
        yield sequence, bytes.fromhex(body)


def check_wire(wire):
    """The answers of one run: each drawn once, and the role's memory whole."""
    copies = defaultdict(set)
    for number, body in wire:
        copies[number].add(body)
    assert sorted(copies) == [1, 2, 3, 4, 5, 6]
    assert all(len(bodies) == 1 for bodies in copies.values()), "an answer went out in two versions"
    memory = hashlib.sha256()
    for step, number in enumerate((1, 3, 5)):
        (body,) = copies[number]
        _, payload = codec.TO_CURATOR.decode(body).payload
        assert payload[:32] == memory.digest(), "the role came back with another memory"
        memory.update(payload[32:])
        memory.update(bytes([step]))
        assert payload[32:48] != payload[48:], "a stream was read twice from its beginning"


def check_books(stage):
    stage.node()
    assert [e.charge.step for e in stage.ledger.entries()] == ["step 0", "step 1", "step 2"]
    assert stage.ledger.spent() == Fraction(3, 4)
    stage.ledger.verify()
    assert stage.journal.state(stage.study) is JournalState.FINISHED


def test_a_whole_study_is_answered_charged_and_closed(stage):
    play(stage, stage.node())
    check_wire([(out.sequence, out.body) for out in stage.sent])
    check_books(stage)


def in_child(stage, wire, kill_at=None):
    """Play in a forked process that kills itself, for good, at the given event; its exit code."""
    child = fork()
    if child:
        return exit_code(child)
    events = 0

    def event(*_):
        nonlocal events
        events += 1
        if events == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def send(outgoing):
        event()
        with wire.open("a") as log:
            log.write(json.dumps([outgoing.sequence, outgoing.body.hex()]) + "\n")
        event()

    code = 1
    try:
        node = stage.node(send=send)
        stage.database._connection.set_trace_callback(event)
        play(stage, node)
        stage.database.close()  # it writes, too
        code = 0
    finally:
        os._exit(code)


def count_events(stage, wire):
    """How many statements and sends a whole run has; each is a point to be killed at."""
    events = []
    node = stage.node(send=lambda out: events.extend([out, out]))
    stage.database._connection.set_trace_callback(events.append)
    play(stage, node)
    stage.database.close()
    remove_state(stage.path)
    return len(events)


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_kill_9_at_a_point_ends_in_the_same_answers_charged_once(stage, tmp_path, stride):
    wire = tmp_path / "wire"
    total = count_events(stage, wire)
    assert total > 100
    for kill_at in range(1, total + 1, stride):
        remove_state(stage.path)
        wire.write_text("")
        assert in_child(stage, wire, kill_at) == -signal.SIGKILL
        assert in_child(stage, wire) == 0
        check_wire(written(wire))
        check_books(stage)
        stage.database.close()


@pytest.mark.parametrize("every", [17, 31])
def test_kill_9_again_and_again_ends_in_the_same_answers(stage, tmp_path, every):
    wire = tmp_path / "wire"
    lives = 0
    while in_child(stage, wire, kill_at=every + lives) != 0:
        lives += 1
    assert lives > 2
    check_wire(written(wire))
    check_books(stage)


def test_a_full_disk_charges_and_sends_nothing_and_the_study_goes_on_when_there_is_room(stage):
    node = stage.node()
    node.receive(1, stage.script[0])
    ((pages,),) = stage.database.rows("PRAGMA page_count")
    # Room for the step's key, which is on disk before it is used, but not for a large message.
    padded = StepOpened(study=stage.study, step=0, digest=bytes(32), opening=bytes(100_000))
    body = stage.codec.encode(padded)
    stage.database.rows(f"PRAGMA max_page_count={pages + 2}")
    for _ in range(2):
        with pytest.raises(LocalError, match=r"full.*Nothing was charged and nothing was sent"):
            node.receive(2, body)
        assert stage.sent == []
        assert stage.ledger.entries() == []
        assert stage.journal.sent_log() == []
        assert node.state is JournalState.RUNNING
    stage.database.rows("PRAGMA max_page_count=100000")
    stage.script[1] = body
    node.receive(2, body)
    play(stage, stage.node())  # another life: its replay must come to what was sent
    check_wire([(out.sequence, out.body) for out in stage.sent])
    check_books(stage)


def test_at_every_amount_of_free_space_the_study_stops_cleanly(stage):
    """From no free page on, one page more each time, until the whole study fits."""
    finished, spare = False, 0
    while not finished:
        node = stage.node()
        ((pages,),) = stage.database.rows("PRAGMA page_count")
        stage.database.rows(f"PRAGMA max_page_count={pages + spare}")
        stage.script[1] = stage.codec.encode(
            StepOpened(study=stage.study, step=0, digest=bytes(32), opening=bytes(20_000))
        )
        try:
            play(stage, node)
            finished = True
        except LocalError:
            released = [out.sequence for out in stage.sent]
            assert len(stage.journal.sent_log()) == len(set(released))
            assert 2 * len(stage.ledger.entries()) == len(set(released))
        stage.database.close()
        spare += 1
    assert spare > 2
    check_wire([(out.sequence, out.body) for out in stage.sent])
    check_books(stage)


def test_a_duplicate_is_harmless_and_sends_nothing(stage):
    node = stage.node()
    for number in (1, 2):
        node.receive(number, stage.script[number - 1])
    sent = list(stage.sent)
    node.receive(2, stage.script[1])
    node.receive(1, stage.script[0])
    assert stage.sent == sent
    assert stage.ledger.spent() == Fraction(1, 4)


@pytest.mark.parametrize(
    ("number", "body", "named"),
    [
        (1, 1, "different content"),
        (4, 3, "came after"),
        (0, 0, "came after"),
    ],
)
def test_messages_out_of_order_are_refused_and_change_nothing(stage, number, body, named):
    node = stage.node()
    node.receive(1, stage.script[0])
    with pytest.raises(RemoteProtocolError, match=named):
        node.receive(number, stage.script[body])
    assert node.newest_received == 1


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (
            StepOpened(study=StudyId(bytes(32)), step=0, digest=bytes(32), opening=b""),
            "another study",
        ),
        (StepOpened(study=STUDY, step=0, digest=b"\1" * 32, opening=b""), "study implies"),
        (None, "MALFORMED"),
    ],
)
def test_a_message_that_is_not_allowed_changes_nothing(stage, message, named):
    node = stage.node()
    node.receive(1, stage.script[0])
    body = b"{" if message is None else stage.codec.encode(message)
    with pytest.raises(RemoteProtocolError, match=named):
        node.receive(2, body)
    assert (node.newest_received, stage.sent, stage.ledger.entries()) == (1, [], [])
    play(stage, node)
    check_wire([(out.sequence, out.body) for out in stage.sent])


def test_a_step_beyond_the_cap_is_refused_and_only_the_refusal_leaves(stage):
    stage.caps = Caps(per_study=Fraction(1, 2), in_total=Fraction(2))
    node = stage.node()
    for number in range(1, 7):
        node.receive(number, stage.script[number - 1])
    assert stage.ledger.spent() == Fraction(1, 2)
    assert node.state is JournalState.REFUSED
    assert [type(said(out)) for out in stage.sent[4:]] == [PartyRefused]
    assert b"1/4" not in stage.sent[-1].body, "what the owner spent is nobody's business"
    assert "cap of 1/2" in stage.journal.studies()[0].reason


def test_a_cap_that_the_owner_lowers_holds_for_the_next_step(stage):
    node = stage.node()
    for number in range(1, 5):
        node.receive(number, stage.script[number - 1])
    spent = stage.ledger.spent()
    assert spent > 0
    stage.caps = Caps(per_study=spent, in_total=Fraction(2))
    for number in range(5, 7):
        node.receive(number, stage.script[number - 1])
    assert node.state is JournalState.REFUSED
    assert stage.ledger.spent() == spent


def test_a_role_that_refuses_ends_the_study(stage):
    class Refusing:
        phase = ""

        def __init__(self, source_for_step):
            pass

        def receive(self, message):
            raise PolicyError("secret reason")

    node = stage.node(role=Refusing)
    node.receive(1, stage.script[0])
    assert node.state is JournalState.REFUSED
    assert len(stage.sent) == 1
    assert b"secret" not in stage.sent[0].body
    node.receive(2, stage.codec.encode(StudyAborted(study=stage.study, reason="one refused")))
    assert node.newest_received == 2
    assert node.state is JournalState.REFUSED


def test_what_was_under_way_when_we_refused_is_not_answered_and_nothing_is_wrong_with_it(stage):
    stage.caps = Caps(per_study=Fraction(1, 8), in_total=Fraction(2))
    node = stage.node()
    for number in (1, 2):
        node.receive(number, stage.script[number - 1])
    assert node.state is JournalState.REFUSED
    for number in (3, 4):  # sent by a curator that has not heard of it yet
        node.receive(number, stage.script[number - 1])
    node.receive(5, stage.codec.encode(StudyAborted(study=stage.study, reason="one refused")))
    assert (node.state, node.newest_received) == (JournalState.REFUSED, 5)
    assert "cap of 1/8" in stage.journal.studies()[0].reason
    assert [type(said(out)) for out in stage.sent] == [PartyRefused]
    assert stage.ledger.entries() == []
    assert stage.database.rows("SELECT count(*) FROM received WHERE body NOTNULL") == [(0,)]


def test_an_owner_who_withdrew_answers_nothing_more_and_is_charged_nothing_more(stage):
    consents = [True]
    node = stage.node(consents=lambda: consents[0])
    for number in (1, 2, 3):
        node.receive(number, stage.script[number - 1])
    assert stage.ledger.spent() == Fraction(1, 4)
    left = len(stage.sent)
    consents[0] = False
    node.receive(4, stage.script[3])
    assert node.state is JournalState.REFUSED
    assert stage.ledger.spent() == Fraction(1, 4), "what was charged stays, and nothing is added"
    (told,) = map(said, stage.sent[left:])
    assert isinstance(told, PartyRefused)
    assert told.reason == "the owner does not take part in this study any more"
    assert stage.journal.studies()[0].reason == "the owner withdrew"
    assert stage.database.rows("SELECT * FROM step_key") == []


def test_an_owner_who_withdrew_too_late_hears_how_the_study_ended(stage):
    consents = [True]
    node = stage.node(consents=lambda: consents[0])
    for number in range(1, len(stage.script)):
        node.receive(number, stage.script[number - 1])
    consents[0] = False
    node.receive(len(stage.script), stage.script[-1])
    assert node.state is JournalState.FINISHED


def test_a_curator_that_ended_the_study_does_not_go_on_with_it(stage):
    node = stage.node()
    node.receive(1, stage.codec.encode(StudyAborted(study=stage.study, reason="given up")))
    with pytest.raises(RemoteProtocolError, match="over"):
        node.receive(2, stage.script[1])
    assert node.newest_received == 1


def test_an_aborted_study_wipes_its_keys_and_what_nobody_takes_any_more(stage):
    node = stage.node()
    for number in (1, 2):
        node.receive(number, stage.script[number - 1])
    node.receive(3, stage.codec.encode(StudyAborted(study=stage.study, reason="network")))
    assert stage.journal.studies()[0].reason == "network"
    assert stage.database.rows("SELECT * FROM step_key") == []
    assert list(stage.journal.outbox.due(stage.study, CURATOR)) == []
    again = stage.node()
    again.resume()
    assert len(stage.sent) == 2
    assert stage.database.rows("SELECT count(*) FROM content") == [(0,)]


def test_a_failing_network_leaves_the_answer_in_the_outbox(stage):
    def broken(outgoing):
        raise ConnectionError("no route")

    node = stage.node(send=broken)
    node.receive(1, stage.script[0])
    with pytest.raises(ConnectionError):
        node.receive(2, stage.script[1])
    node = stage.node()
    node.resume()
    play(stage, node)
    check_wire([(out.sequence, out.body) for out in stage.sent])


def test_a_bug_in_the_role_leaves_no_trace_and_the_role_is_rebuilt(stage):
    lives = []

    class Stumbling:
        phase = ""

        def __init__(self, source_for_step):
            lives.append(self)
            self.source_for_step = source_for_step

        def receive(self, message):
            drawn = self.source_for_step(0).random_bytes(8)
            if len(lives) == 1:
                raise ZeroDivisionError
            return [] if drawn else None

    node = stage.node(role=Stumbling)
    with pytest.raises(ZeroDivisionError):
        node.receive(1, stage.script[0])
    assert node.newest_received == 0
    node.receive(1, stage.script[0])
    assert (len(lives), node.newest_received) == (2, 1)


def test_what_a_refused_message_made_the_role_draw_is_not_drawn_again_for_another_answer(stage):
    class Eager:
        phase = ""

        """Draws before it looks, which a role may do."""

        def __init__(self, source_for_step):
            self.source = source_for_step(0)

        def receive(self, message):
            drawn = self.source.random_bytes(16)
            match message:
                case StepOpened() if message.digest != bytes(32):
                    raise RemoteProtocolError("no")
                case StepOpened():
                    share = say("masked input", 0, drawn, study=STUDY)
                    return [SendToCurator(message=share)]
            return []

    bad = StepOpened(study=STUDY, step=0, digest=b"\1" * 32, opening=b"")
    node = stage.node(role=Eager)
    node.receive(1, stage.script[0])
    with pytest.raises(RemoteProtocolError):
        node.receive(2, stage.codec.encode(bad))
    node.receive(2, stage.script[1])
    node = stage.node(role=Eager)
    for number in range(3, 8):
        node.receive(number, stage.script[3])
    drawn = [said(out).payload[1] for out in stage.sent]
    assert len(set(drawn)) == len(drawn) == 6


def test_a_replay_that_comes_to_other_effects_is_refused(stage):
    node = stage.node()
    for number in (1, 2):
        node.receive(number, stage.script[number - 1])

    class Changed:
        phase = ""

        def __init__(self, source_for_step):
            pass

        def receive(self, message):
            return []

    with pytest.raises(LocalError, match="version of this program"):
        stage.node(role=Changed).receive(3, stage.script[2])


def test_data_that_changed_between_two_lives_is_refused(stage):
    stage.node()
    stage.snapshot = dataclasses.replace(stage.snapshot, digest="d2")
    with pytest.raises(PolicyError, match="data changed"):
        stage.node()


def test_a_seeded_journal_marks_its_streams_as_not_private(stage):
    seen = []

    class Looking:
        phase = ""

        def __init__(self, source_for_step):
            seen.append(source_for_step(-1).private)

        def receive(self, message):
            return []

    stage.node(role=Looking, source=SeededRandomSource(1)).receive(1, stage.script[0])
    assert seen == [False]


def test_two_processes_cannot_write_at_once(stage):
    node = stage.node()
    stage.database.rows("PRAGMA busy_timeout=0")
    other = sqlite3.connect(stage.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LocalError, match="locked"):
        node.receive(1, stage.script[0])
    other.execute("ROLLBACK")
    other.close()
    assert stage.sent == []
