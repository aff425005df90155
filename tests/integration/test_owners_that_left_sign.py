"""An owner whose words are in a sum can countersign the release, whenever it left the study."""

import datetime as dt
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import NotCountersignedError
from common.methods.registry import run_of
from common.release.verify import verify
from common.study.criteria import read_criteria
from curator.operations import declared
from curator.publisher import publish
from curator.store.records import StudyState
from curator.upkeep import Upkeep, WaitingLimits
from party.client.connection import HungUpError
from party.countersigning import vouch
from party.journal import JournalState
from party.owner.dry_run import dry_run
from party.releases import Collector
from tests.harness.consortium import Consortium, Wrapped, wrapping

NAMES = ("north", "east", "south", "west")
STAYED = NAMES[:3]
WORDS = 2  # the place of its words among a party's four messages in a sum
DELTA = Fraction(1, 10**6)
TWO_SUMS = {
    "criteria": read_criteria([{"share": "a = true", "within": "0.2"}]),
    "criteria_epsilon": Fraction(1, 4),
}


@pytest.fixture
def begun(tmp_path):
    """Return what begins a consortium of a real method; its curator makes real releases."""
    running = []

    def begin(**changes):
        terms = {"aggregation": Aggregation.MASKED, "may_miss": 1, "colluders": 1}
        made = Consortium(tmp_path, NAMES, method="floor", **terms, **changes)
        made.curator.begin = run_of
        made.curator.publish = partial(publish, releases=tmp_path / "releases")
        for party in made.parties.values():
            party.begin, party.forecast = run_of, partial(dry_run, begin=run_of)
        (tmp_path / "releases").mkdir()
        made.curator.start()
        running.append(made.curator)
        made.curator.studies.propose(made.study)
        return made

    yield begin
    for curator in running:
        curator.stop()


def vanishing(party, gone, *, message, sent):
    """Hangs up for good before or after a message leaves; with message 0, after the approval."""

    class Vanishing(Wrapped):
        def approve(self, study, signature):
            self.connection.approve(study, signature)
            if message == 0:
                self.vanish()

        def submit(self, study, messages):
            last = message if sent else message - 1
            leaving = [one for one in messages if one.sequence <= last]
            newest = self.connection.submit(study, leaving) if leaving else 0
            if messages[-1].sequence >= message:
                self.vanish()
            return newest

        def vanish(self):
            gone.set()
            raise HungUpError

    return wrapping(party, Vanishing)


def run_without_west(consortium, *, message, sent):
    """Run a study that west vanishes from for good; the operator's deadline passes."""
    gone, parties, study = threading.Event(), consortium.parties, consortium.study
    west, studies = parties["west"], consortium.curator.studies
    upkeep = Upkeep(
        studies, WaitingLimits(deadline=dt.timedelta(seconds=0.3), least=dt.timedelta())
    )
    with ThreadPoolExecutor(4) as threads:
        dial = vanishing(west, gone, message=message, sent=sent)
        lost = threads.submit(west.attend, study, dial=dial)
        others = [threads.submit(parties[name].attend, study) for name in STAYED]
        assert gone.wait(30)
        lost.result(timeout=30)
        for _ in range(600):
            if all(each.done() for each in others):
                break
            if set(studies.known(study.digest).waiting_for) == {"west"}:
                upkeep.look()
            threading.Event().wait(0.05)
        assert {each.result(timeout=30) for each in others} == {JournalState.FINISHED}
    assert consortium.curator.store.record(study.digest).state is StudyState.DONE


def come_back(consortium, **collecting):
    """Run west's node again, as `parley party join --once` does; return how the study ended."""
    west = consortium.parties["west"]
    with west.context() as context:
        if collecting:
            collecting = {"collector": Collector(context=context, dial=west.dial, **collecting)}
        return west.manager(context, **collecting).run(once=True)[consortium.study.digest]


def countersign(consortium, release):
    """Have everyone sign who can; return why the others cannot."""
    refusals = {}
    for name, party in consortium.parties.items():
        with party.context() as context:
            try:
                vouch(release, verify(release, unsigned=True), context)
            except NotCountersignedError as error:
                refusals[name] = str(error)
    return refusals


def only_release(tmp_path):
    (release,) = (tmp_path / "releases").iterdir()
    return release


MOMENTS = [(0, True), *((message, sent) for message in (1, 2, 3, 4) for sent in (False, True))]
SLOW = [(0, True), (1, False), (3, False), (3, True)]


@pytest.mark.parametrize("delta", [Fraction(0), pytest.param(DELTA, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("message", "sent"),
    [pytest.param(*moment, marks=pytest.mark.slow if moment in SLOW else ()) for moment in MOMENTS],
)
def test_whenever_an_owner_vanishes_the_release_is_verified_for_all_parties(
    begun, tmp_path, message, sent, delta
):
    consortium = begun(delta=delta)
    run_without_west(consortium, message=message, sent=sent)
    counted = (message, sent) >= (WORDS, True)
    stayed = (message, sent) == (4, True)
    come_back(consortium)
    release = only_release(tmp_path)
    statement = json.loads((release / "privacy.json").read_text())
    assert statement["missing"] == ({} if counted else {"west": 0})
    assert statement.get("left") == ({"west": 1} if counted and not stayed else None)
    refusals = countersign(consortium, release)
    assert set(refusals) == (set() if counted else {"west"})
    assert all("we are in no sum of it" in words for words in refusals.values())
    found = verify(release, all_parties=True)
    assert found.verified, found.problems
    west = next(each for each in found.consistency.owners if each.party == "west")
    assert west.state == ("in every sum" if stayed else "left" if counted else "missing")
    assert west.sums == int(counted)
    assert ("west" in " ".join(found.remarks)) == (not stayed)
    told = declared(consortium.curator.store, consortium.study.digest)
    assert set(told) == (set() if stayed else {"west"})
    if not stayed:
        assert told["west"].startswith(f"left in step 1; it is in {int(counted)} sum")


def test_an_owner_that_left_is_excused_and_named_and_the_others_are_not(begun, tmp_path):
    consortium = begun()
    run_without_west(consortium, message=WORDS, sent=True)
    release = only_release(tmp_path)
    for name in STAYED[1:]:
        with consortium.parties[name].context() as context:
            vouch(release, verify(release, unsigned=True), context)
    found = verify(release, all_parties=True)
    assert [each.detail for each in found.problems] == [
        "is missing: the countersignature of party 'north'"
    ]
    with consortium.parties["north"].context() as context:
        vouch(release, verify(release, unsigned=True), context)
    found = verify(release, all_parties=True)
    assert found.verified
    remark = "west left after sum 1, and is counted up to it. It need not countersign, and did not"
    assert remark in found.remarks[0]
    assert found.as_json()["owners"][-1] == {"party": "west", "state": "left", "sums": 1}
    assert "parties that left and are counted" in (release / "report.html").read_text()


@pytest.mark.parametrize(("message", "sums"), [(WORDS, 1), (4 + WORDS, 2)])
def test_an_owner_that_left_in_any_sum_vouches_for_what_it_saw(begun, tmp_path, message, sums):
    consortium = begun(**TWO_SUMS)
    run_without_west(consortium, message=message, sent=True)
    assert come_back(consortium) is JournalState.LEFT
    release = only_release(tmp_path)
    statement = json.loads((release / "privacy.json").read_text())
    assert statement["left"] == {"west": sums}
    assert statement["missing"] == ({"west": 1} if sums == 1 else {})
    assert countersign(consortium, release) == {}
    assert verify(release, all_parties=True).verified


def test_a_node_that_left_fetches_the_release_and_countersigns_by_itself(begun, tmp_path):
    consortium = begun()
    run_without_west(consortium, message=3, sent=False)
    assert (
        come_back(consortium, folder=tmp_path / "fetched", countersigns=True) is JournalState.LEFT
    )
    with consortium.parties["west"].context() as context:
        (collected,) = context.collection.all().values()
    assert (collected.countersigned, collected.problem) == (True, "")
    names = [each.name for each in verify(only_release(tmp_path), unsigned=True).signatures]
    assert "west" in names  # the curator has it, too


def changed(release, **values):
    """Return what a release says, with another privacy statement."""
    found = verify(release, unsigned=True)
    found.consistency.privacy = found.consistency.privacy | values
    return found


def refuse(release, found, context, words):
    with pytest.raises(NotCountersignedError, match=words):
        vouch(release, found, context)


def test_an_owner_vouches_for_no_statement_that_tells_its_leaving_otherwise(begun, tmp_path):
    consortium = begun(**TWO_SUMS)
    run_without_west(consortium, message=WORDS, sent=True)
    come_back(consortium)
    release = only_release(tmp_path)
    for name, values, words in [
        ("west", {"missing": {"west": 0}}, "we are in no sum of it"),
        ("west", {"missing": {}}, "are not those that were published to us"),
        ("north", {"missing": {}, "left": {"west": 2}}, "are not those that we were told of"),
        ("north", {"left": {"west": 1, "north": 2}}, "it says that we left"),
    ]:
        with (
            consortium.parties[name].context() as context,
            pytest.raises(NotCountersignedError, match=words),
        ):
            vouch(release, changed(release, **values), context)


def test_the_others_vouch_only_for_leaving_that_they_were_told_of(begun, tmp_path):
    """An owner that is there to the end cannot be excused by a curator's word."""
    consortium = begun()
    assert set(consortium.attend_all().values()) == {JournalState.FINISHED}
    release = only_release(tmp_path)
    for name, words in (("north", "the parties that left"), ("west", "it says that we left")):
        with (
            consortium.parties[name].context() as context,
            pytest.raises(NotCountersignedError, match=words),
        ):
            vouch(release, changed(release, left={"west": 1}), context)
