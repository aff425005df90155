"""Owners that are gone for good, over real gRPC: the others finish, and nobody pays too much."""

import datetime as dt
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import PolicyError
from common.service.process import system_clock
from common.study.signatures import approval_statement
from curator.live_role import DECLARED, declaration
from curator.publisher import fitted_study
from curator.store.records import StudyState
from curator.upkeep import Upkeep, WaitingLimits
from party.client.connection import HungUpError
from party.journal import CURATOR, JournalState
from party.owner import decisions
from tests.harness.consortium import Consortium, Wrapped, wrapping
from tests.harness.process_consortium import ProcessConsortium
from tests.harness.roles import replayed
from tests.harness.small_study import Sums

NAMES = ("north", "east", "south", "west")
LEFT = ("north", "east", "west")


@pytest.fixture
def consortium(tmp_path, request):
    terms = {"aggregation": Aggregation.MASKED, "may_miss": 1, "colluders": 1}
    made = Consortium(tmp_path, NAMES, agreement=getattr(request, "param", ""), **terms)
    made.curator.begin = Sums
    for party in made.parties.values():
        party.begin = Sums
    made.curator.start()
    made.curator.studies.propose(made.study)
    yield made
    made.curator.stop()


def vanishing(party, after, gone):
    """Hangs up for good once so many messages of the party are with the curator."""

    class Vanishing(Wrapped):
        def submit(self, study, messages):
            first = [one for one in messages if one.sequence <= after]
            newest = self.connection.submit(study, first)
            if messages[-1].sequence >= after:
                gone.set()
                raise HungUpError
            return newest

    return wrapping(party, Vanishing)


def run_without_south(consortium, after):
    """South vanishes; the operator's deadline passes; how the study ended for the others."""
    gone, parties = threading.Event(), consortium.parties
    south = parties["south"]
    limits = WaitingLimits(deadline=dt.timedelta(seconds=0.5), least=dt.timedelta())
    upkeep = Upkeep(consortium.curator.studies, limits)
    with ThreadPoolExecutor(4) as threads:
        lost = threads.submit(south.attend, consortium.study, dial=vanishing(south, after, gone))
        others = {name: threads.submit(parties[name].attend, consortium.study) for name in LEFT}
        assert gone.wait(30)
        lost.result(timeout=30)
        for _ in range(600):
            if all(each.done() for each in others.values()):
                break
            if set(consortium.curator.studies.known(consortium.study.digest).waiting_for) == {
                "south"
            }:
                upkeep.look()
            threading.Event().wait(0.05)
        for party in parties.values():
            party.stopping.set()
        return {name: each.result(timeout=30) for name, each in others.items()}


def spent(party):
    with party.context() as context:
        context.ledger.verify()
        return [entry.charge.step for entry in context.ledger.entries()]


# In a step a party sends keys, words, a signature and shares.
@pytest.mark.parametrize(
    ("after", "in_sums", "paid"),
    [
        pytest.param(1, 0, 0, marks=pytest.mark.slow, id="dealt keys"),
        pytest.param(2, 1, 1, marks=pytest.mark.slow, id="sent words"),
        pytest.param(3, 1, 1, marks=pytest.mark.slow, id="signed"),
        pytest.param(5, 1, 2, id="dealt keys of the second step"),
    ],
)
def test_the_others_finish_without_an_owner_that_vanished(consortium, after, in_sums, paid):
    ended = run_without_south(consortium, after)
    assert set(ended.values()) == {JournalState.FINISHED}
    outcome = consortium.curator.outcomes[-1]
    assert [("south" in step.parties) for step in outcome.steps] == [
        number < in_sums for number in range(3)
    ]
    expected = replayed(
        consortium.study,
        Sums,
        {name: party.identity for name, party in consortium.parties.items()},
        {name: party.table for name, party in consortium.parties.items()},
        drop={"south": in_sums},
    )
    # South vanishes before its words there. If it is gone before its keys, other secrets are drawn.
    alike = 3 if after in (1, 5) else 1
    both = zip(outcome.model.results, expected.model.results, strict=True)
    assert all(np.array_equal(ours, theirs) for ours, theirs in list(both)[:alike])
    for name in LEFT:
        assert spent(consortium.parties[name]) == ["tables 0", "tables 1", "tables 2"]
    # Journalled and charged before it was lost on its way: it stays charged.
    assert len(spent(consortium.parties["south"])) in (in_sums, paid)
    south = consortium.parties["south"]
    south.stopping.clear()
    assert south.attend(consortium.study) is JournalState.LEFT  # aborted here, finished by others
    with south.context() as context:
        record = context.journal.record(consortium.study.digest)
        assert "declared missing" in record.reason
        assert list(context.journal.outbox.due(consortium.study.digest, CURATOR)) == []


@pytest.mark.parametrize("consortium", ["hybrid"], indirect=True)
@pytest.mark.parametrize(("after", "in_sums"), [(1, 0), (2, 0), (3, 1)])
def test_the_others_finish_under_a_hybrid_agreement(consortium, after, in_sums):
    """South vanishes after its seeds, its keys or its words."""
    ended = run_without_south(consortium, after)
    assert set(ended.values()) == {JournalState.FINISHED}
    steps = consortium.curator.outcomes[-1].steps
    assert [("south" in step.parties) for step in steps] == [n < in_sums for n in range(3)]
    for name in LEFT:
        assert spent(consortium.parties[name]) == ["tables 0", "tables 1", "tables 2"]


@pytest.mark.parametrize("consortium", ["hybrid"], indirect=True)
def test_the_others_finish_without_an_owner_that_offered_no_seeds(consortium):
    """South approved and is gone; the curator restarts before it goes on without south."""
    parties, study = consortium.parties, consortium.study
    statement = approval_statement(study=study.digest, party="south")
    south = parties["south"]
    with south.dial() as connection:
        connection.enrol("south", south.identity.public.encoded)
        connection.approve(study.digest, south.identity.sign(statement))
    with ThreadPoolExecutor(3) as threads:
        others = {name: threads.submit(parties[name].attend, study) for name in LEFT}
        for _ in range(600):
            if set(consortium.curator.studies.known(study.digest).waiting_for) == {"south"}:
                break
            threading.Event().wait(0.05)
        consortium.curator.restart()
        declare_south_missing(consortium)
        assert {each.result(timeout=60) for each in others.values()} == {JournalState.FINISHED}
    steps = consortium.curator.outcomes[-1].steps
    assert {step.parties for step in steps} == {LEFT}
    south.stopping.clear()
    with south.context() as context:
        assert list(context.ledger.entries()) == []


def declare_south_missing(consortium):
    """Do as `parley curator study missing` does, long before any deadline."""
    store = consortium.curator.store
    store.ask_to_miss(consortium.study.digest, "south", at="now")
    upkeep = Upkeep(consortium.curator.studies, WaitingLimits(deadline=dt.timedelta(days=1)))
    for _ in range(600):
        upkeep.look()
        if not store.asked_to_miss():
            return
        threading.Event().wait(0.05)
    raise AssertionError("the curator never went on without south")


def test_the_curator_remembers_who_is_missing_after_a_restart(consortium):
    parties = consortium.parties
    gone = threading.Event()
    south = parties["south"]
    with ThreadPoolExecutor(4) as threads:
        lost = threads.submit(south.attend, consortium.study, dial=vanishing(south, 2, gone))
        others = {name: threads.submit(parties[name].attend, consortium.study) for name in LEFT}
        assert gone.wait(30)
        lost.result(timeout=30)
        declare_south_missing(consortium)
        consortium.curator.restart()
        node = consortium.curator.studies.known(consortium.study.digest)
        assert not node.can_miss(1)
        assert {each.result(timeout=60) for each in others.values()} == {JournalState.FINISHED}
    assert consortium.curator.outcomes[-1].steps[2].parties == LEFT


HOUR = dt.timedelta(hours=1)


def test_an_owner_is_not_missed_for_the_curators_own_outage_or_clock(consortium):
    """South is well, and the curator is what was away: nobody is thrown out for that."""
    parties, gone, curator = consortium.parties, threading.Event(), consortium.curator
    south, limits = parties["south"], WaitingLimits(deadline=HOUR, end_overdue=True)
    with ThreadPoolExecutor(4) as threads:
        lost = threads.submit(south.attend, consortium.study, dial=vanishing(south, 2, gone))
        others = {name: threads.submit(parties[name].attend, consortium.study) for name in LEFT}
        assert gone.wait(30)
        lost.result(timeout=30)
        upkeep = Upkeep(curator.studies, limits)
        upkeep.look()
        for clock in (lambda: system_clock() + 2 * HOUR, system_clock):
            curator.clock = clock
            upkeep.look()
        curator.stop()
        curator.clock = lambda: system_clock() + 2 * HOUR  # so long was it down
        curator.start()
        Upkeep(curator.studies, limits).look()
        assert curator.studies.known(consortium.study.digest).can_miss(1)
        south.stopping.clear()
        everybody = [*others.values(), threads.submit(south.attend, consortium.study)]
        assert {each.result(timeout=60) for each in everybody} == {JournalState.FINISHED}
    assert [step.parties for step in curator.outcomes[-1].steps] == [NAMES] * 3


def withdraw(party, study):
    """Do as `parley party withdraw` does; the node tells the curator when it runs next."""
    with party.context() as context:
        decisions.decline(
            study.digest, approvals=context.approvals, journal=context.journal,
            ledger=context.ledger, reason="our own", at=context.now(),
        )  # fmt: skip
    with pytest.raises(PolicyError, match="was withdrawn by its owner"):
        party.attend(study)


def test_an_owner_that_withdraws_is_missing_and_the_others_finish(consortium, caplog):
    parties, gone = consortium.parties, threading.Event()
    south, store = parties["south"], consortium.curator.store
    with ThreadPoolExecutor(4) as threads:
        lost = threads.submit(south.attend, consortium.study, dial=vanishing(south, 2, gone))
        others = {name: threads.submit(parties[name].attend, consortium.study) for name in LEFT}
        assert gone.wait(30)
        lost.result(timeout=30)
        paid = spent(south)
        withdraw(south, consortium.study)
        said = store.inbox.bodies(consortium.study.digest, DECLARED)
        told = [declaration(body) for body in said]
        assert {each.result(timeout=60) for each in others.values()} == {JournalState.FINISHED}
    assert told in ([], [("south", "withdrew: the owner does not take part in this study")])
    assert "south withdrew: the owner does not take part" in caplog.text
    assert store.record(consortium.study.digest).state is StudyState.DONE
    steps = consortium.curator.outcomes[-1].steps
    assert ["south" in step.parties for step in steps] == [True, False, False]
    assert spent(south) == paid == ["tables 0"]  # nothing more was charged, or left
    for name in LEFT:
        assert spent(parties[name]) == ["tables 0", "tables 1", "tables 2"]
    statement = fitted_study(consortium.curator.outcomes[-1]).privacy
    assert statement["missing"] == {"south": 1}
    assert any("Party south went missing" in note for note in statement["notes"])


def test_one_owner_too_many_that_withdraws_ends_the_study_by_name(consortium):
    node = consortium.curator.studies.known(consortium.study.digest)
    parties = consortium.parties
    for name, party in parties.items():
        signature = party.identity.sign(
            approval_statement(study=consortium.study.digest, party=name)
        )
        node.approve(name, signature)
    assert node.decline("south", reason="no") is StudyState.RUNNING
    assert node.decline("south", reason="no") is StudyState.RUNNING  # said again
    consortium.curator.restart()  # it is in the store, with why
    node = consortium.curator.studies.known(consortium.study.digest)
    assert node.decline("west", reason="no") is StudyState.REFUSED
    assert node.record.cause == (
        "party 'west' withdrew: no; south went missing before. The study can do without 1 "
        "(may_miss)"
    )


@pytest.mark.slow
def test_a_process_that_is_killed_for_good_does_not_end_the_study(tmp_path):
    consortium = ProcessConsortium(tmp_path, NAMES)
    settings = tmp_path / "curator.toml"
    settings.write_text(settings.read_text() + "step_deadline_s = 3.0\n")
    consortium.propose(method="floor", may_miss=1)
    try:
        for who in ("curator", *NAMES):
            consortium.start(who)
        consortium.wait_for(lambda: "is approved" in (tmp_path / "south.log").read_text())
        consortium.kill("south")
        consortium.wait_for(lambda: consortium.record().state.over)
        assert consortium.record().state is StudyState.DONE, consortium.record().cause
        released = json.loads(Path(consortium.record().place).read_text())
        assert [set(costs) for _, costs in released["steps"]] in (
            [set(LEFT)],
            [set(NAMES)],  # its words had left before it was killed
        )
    finally:
        consortium.stop()
