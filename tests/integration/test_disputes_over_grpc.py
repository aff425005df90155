"""A dishonest owner and its bad box, over real gRPC: who leaves, who is told, what is signed."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.crypto.sums.recovery import RecoverableParty
from common.errors import NotCountersignedError
from common.release.verify import verify
from curator.operations import declared
from curator.store.records import StudyState
from party.countersigning import vouch
from party.journal import JournalState
from tests.harness.consortium import Crash, Mortal, wrapping
from tests.integration.test_owners_that_left_sign import begun, changed, countersign, only_release
from tests.study.test_disputes import flipped

started = begun


@pytest.fixture
def bad_box(monkeypatch):
    """Have west flip a byte of its box for east, in every sum."""
    honest = RecoverableParty._dealt_box

    def dealt(self, receiver):
        box = honest(self, receiver)
        return flipped(self, receiver, box) if (self._name, receiver) == ("west", "east") else box

    monkeypatch.setattr(RecoverableParty, "_dealt_box", dealt)


@pytest.fixture
def false_accusation(monkeypatch):
    """Have east say that it cannot open the box of west."""
    honest = RecoverableParty.take_boxes

    def take_boxes(self, relayed, absent):
        if self._name != "east":
            return honest(self, relayed, absent)
        public, box = self._cut_boxes(relayed, absent)["west"]
        return "west", self._from("west", public).accuse(box, self._party.identity)

    monkeypatch.setattr(RecoverableParty, "take_boxes", take_boxes)


def attend_all(consortium, kind=None):
    """Attend with every party; return how the study ended for each."""
    with ThreadPoolExecutor(4) as threads:
        running = {
            name: threads.submit(attend, party, consortium.study, kind)
            for name, party in consortium.parties.items()
        }
        try:
            return {name: each.result(timeout=120) for name, each in running.items()}
        finally:
            for party in consortium.parties.values():
                party.stopping.set()


def attend(party, study, kind):
    """Attend, and begin anew after each death."""
    while True:
        try:
            return party.attend(study, dial=kind and wrapping(party, kind))
        except Crash:
            continue


def check(consortium, tmp_path, *, left, words):
    """Expect the study to be done without the party at fault, which is told everywhere."""
    store, study = consortium.curator.store, consortium.study.digest
    assert store.record(study).state is StudyState.DONE
    release = only_release(tmp_path)
    statement = json.loads((release / "privacy.json").read_text())
    assert statement["missing"] == {left: 0}
    (dispute,) = statement["disputes"]
    told = {key: dispute[key] for key in ("step", "dealer", "receiver", "left")}
    assert told == {"step": 0, "dealer": "west", "receiver": "east", "left": left}
    assert any("could not open the key shares of party west" in n for n in statement["notes"])
    assert declared(store, study) == {left: f"left in step 1; it is in 0 sums: {words}"}
    alerts = {each.event: each.words for each in store.alerts()}
    assert alerts["missing"] == words
    assert alerts["dispute"].startswith("east cannot open the key shares of west in step 1")
    refusals = countersign(consortium, release)
    assert set(refusals) == {left}
    assert verify(release, all_parties=True).verified
    for party in consortium.parties.values():
        with party.context() as context:
            assert len(context.ledger.entries()) <= 1  # begun again, and charged once
    return release


BAD = "party 'west' dealt a box of key shares in step 0 that 'east' cannot open, nor can any other"
FALSE = (
    "party 'east' said in step 0 that it cannot open the box of key shares of 'west', and the box "
    "opens"
)


def test_an_owner_that_deals_a_bad_box_leaves_and_everyone_is_told(
    started, tmp_path, bad_box, caplog
):
    consortium = started(agreement="hybrid")
    ended = attend_all(consortium)
    assert ended.pop("west") in (JournalState.ABORTED, JournalState.LEFT)
    assert set(ended.values()) == {JournalState.FINISHED}
    release = check(consortium, tmp_path, left="west", words=BAD)
    assert "east cannot open the key shares of west in step 1; west is asked" in caplog.text
    (dispute,) = verify(release).consistency.privacy["disputes"]
    invented = dispute | {"evidence": "0" * 64}
    with consortium.parties["north"].context() as context:
        found = changed(release, disputes=[invented])
        with pytest.raises(NotCountersignedError, match="the parties that left, or why"):
            vouch(release, found, context)


def test_an_owner_that_accuses_falsely_leaves_and_everyone_is_told(
    started, tmp_path, false_accusation
):
    consortium = started()
    ended = attend_all(consortium)
    assert ended.pop("east") in (JournalState.ABORTED, JournalState.LEFT)
    assert set(ended.values()) == {JournalState.FINISHED}
    check(consortium, tmp_path, left="east", words=FALSE)


@pytest.mark.parametrize("agreement", ["", "hybrid"])
def test_a_dispute_goes_on_after_every_message_kills_a_party_and_the_curator_restarts(
    started, tmp_path, bad_box, agreement
):
    consortium = started(agreement=agreement)
    stop, restarts = threading.Event(), []

    def restart_now_and_then():
        while len(restarts) < 4 and not stop.wait(0.2):
            consortium.curator.restart()
            restarts.append(time.monotonic())

    restarting = threading.Thread(target=restart_now_and_then)
    restarting.start()
    try:
        ended = attend_all(consortium, Mortal)
    finally:
        stop.set()
        restarting.join()
    assert restarts
    deadline = time.monotonic() + 30
    while not consortium.curator.store.record(consortium.study.digest).state.over:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ended.pop("west") in (JournalState.ABORTED, JournalState.LEFT)
    assert set(ended.values()) == {JournalState.FINISHED}
    check(consortium, tmp_path, left="west", words=BAD)
