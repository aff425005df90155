"""`parley curator study`: written down, signed, offered, listed, given up, released."""

import sqlite3

import pytest

from common.crypto.key_files import load_identity
from common.methods.registry import run_of
from common.release import folder as release
from common.service.process import stamp, system_clock
from common.study.document import Study
from common.wording import moment
from curator.publisher import publish
from curator.settings import curator_settings, open_store
from curator.store.records import StudyState, Word
from curator.studies import Studies
from tests.harness.deployed_folder import HUB, outcome_of


def test_a_study_is_written_down_with_the_identities_of_its_parties(written, place):
    assert [(m.name, m.rows) for m in written.members] == [("north", 40), ("east", 40)]
    pinned = load_identity(place.folder / "north" / "keys" / "identity.key").public
    assert written.members[0].identity.encoded == pinned.encoded
    assert written.epsilon == 1


def test_a_study_that_is_there_is_not_overwritten(parley, place, written):
    done = parley(*place.words(epsilon="3"))
    assert done.code == 3
    assert "nothing is overwritten" in done.err
    assert Study.load(place.folder / "study.toml").digest == written.digest


@pytest.mark.parametrize(
    ("party", "words"),
    [
        ("north", "expected NAME:ROWS:FILE"),
        ("north:many:x.pub", "expected NAME:ROWS:FILE"),
        ("west:40:nowhere.pub", "nowhere.pub: cannot be read"),
        ("west:40:schema.toml", "not an identity.pub"),
        ("west:0:north/keys/identity.pub", "rows must be"),
        ("west:40:north/keys/identity.pub", "same identity"),
    ],
)
def test_a_party_that_cannot_be_is_refused_and_no_study_is_written(parley, place, party, words):
    done = parley(*place.words(), "--party", party)
    assert done.code == 3
    assert words in done.err
    assert not (place.folder / "study.toml").exists()


def test_more_colluders_than_there_can_be_are_refused_not_forgotten(parley, place):
    done = parley(*place.words(colluders="2"))
    assert done.code == 3
    assert "colluders" in done.err


def test_an_offered_study_is_listed_and_says_whom_it_waits_for(parley, place, written):
    assert parley("curator", "study", "list", *HUB).out == ""
    for _ in range(2):  # again is harmless
        assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    (listed,) = parley("curator", "study", "list", "--json", *HUB).json
    assert listed["study"] == written.digest.hex()
    assert listed["state"] == "waiting for parties"
    for wanted in ("regional", written.digest.hex()[:6].upper()):
        told = parley("curator", "study", "status", wanted, "--json", *HUB).json
        assert told["not_approved_by"] == ["north", "east"]
        assert told["approve_by"] == (written.expires and written.expires.isoformat())
    shown = parley("curator", "study", "status", "regional", *HUB).out
    assert "waits for the approval of north, east, since " in shown
    last = f"until {written.expires} (UTC), its last day" if written.expires else "without a last"
    assert last in shown
    assert "no study here" in parley("curator", "study", "status", "x", *HUB).err


def test_a_release_is_made_once_and_has_the_study(parley, place, written, tmp_path):
    outcome = outcome_of(written)
    made = publish(outcome, tmp_path / "releases")
    first = (made / "synthetic.csv").read_text()
    assert publish(outcome, tmp_path / "releases") == made
    assert (made / "synthetic.csv").read_text() == first, "a release is not drawn again"
    assert Study.load(made / release.STUDY).digest == written.digest
    assert len(first.splitlines()) == 81
    assert release.read_json(made, release.STATEMENT)["epsilon_delivered"] == 1.0
    assert "regional-" in made.name


def test_an_unsigned_study_is_signed_when_it_is_offered(parley, place):
    assert parley(*place.words(), "--unsigned").code == 0
    offer = ("curator", "study", "add", "study.toml", *HUB)
    assert "signer none" in parley(*offer, "--unsigned").out
    done = parley(*offer)
    signer = load_identity(place.ring.identity).public.fingerprint
    assert f"signer {signer}" in done.out
    with open_store(curator_settings(place.folder / "hub" / "curator.toml", {}).values) as store:
        (digest,) = store.under_way()
        text = store.document(digest)
    assert Study.from_toml(text).signer == signer, "and the parties fetch that one"


def test_without_the_curators_settings_somebody_else_has_to_sign(parley, place):
    words = place.words()
    at = words.index("--config")
    done = parley(*words[:at], *words[at + 2 :])
    assert done.code == 3
    assert "no identity is known to sign it with" in done.err


def test_an_abort_without_a_running_curator_is_remembered_and_shown(
    parley, place, written, monkeypatch
):
    monkeypatch.setattr("parley.cli.commands.curator_study._ABORT_S", 0.0)
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    abort = ("curator", "study", "abort", "regional", *HUB, "--reason")
    assert "one line" in parley(*abort, "two\nlines").err
    done = parley(*abort, "the schema was wrong")
    assert done.code == 0
    assert "no curator runs" in done.err
    told = parley("curator", "study", "status", "regional", *HUB).out
    assert "to end   the schema was wrong" in told
    settings = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    with open_store(settings) as store:
        Studies(store, begin=run_of, publish=None, clock=system_clock, later=None).open()
    told = parley("curator", "study", "status", "regional", *HUB).out
    assert "state    failed" in told
    assert "ended by the curator's operator: the schema was wrong" in told
    assert "is over: failed" in parley(*abort, "again").err


def test_studies_that_are_over_are_listed_without_being_read(parley, place, written, monkeypatch):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    with sqlite3.connect(place.folder / "hub" / "state" / "curator.db") as file:
        file.execute("UPDATE study SET state = 'done', document = 'of another time'")
    file.close()
    (listed,) = parley("curator", "study", "list", "--json", *HUB).json
    assert listed["state"] == "done"
    assert parley("curator", "study", "status", "regional", *HUB).code == 0


def test_a_party_that_has_gone_silent_can_be_told_from_the_others(parley, place, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    with open_store(curator_settings(place.folder / "hub" / "curator.toml", {}).values) as store:
        store.enrol("north", identity=b"", software="parley", at="2026-01-02T03:04:05+00:00")
    shown = parley("curator", "study", "status", "regional", *HUB).out
    assert "party    north: last called 2026-01-02 03:04:05 UTC" in shown
    assert "party    east: has not called yet" in shown
    told = parley("curator", "study", "status", "regional", "--json", *HUB).json
    assert told["last_calls"] == {"north": "2026-01-02T03:04:05+00:00", "east": ""}


def test_a_running_study_says_whom_it_waits_for_and_since_when(parley, place, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    hub = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    since = stamp(system_clock())
    with open_store(hub) as store, store.transaction():
        store.move(written.digest, StudyState.RUNNING, step=2, phase="counting")
        store.wait_for(written.digest, ["east"], Word.ANSWER, at=since, anew=True)
    status = ("curator", "study", "status", "regional", *HUB)
    assert f"waits for the answer of east in step 3, since {moment(since)}" in parley(*status).out
    long_ago = "2026-01-02T03:04:05+00:00"
    with open_store(hub) as store, store.transaction():
        store.wait_for(written.digest, ["east"], Word.CALL, at=long_ago, anew=False)
    told = parley(*status).out
    assert f"waits for east to call before step 3 is opened, since {moment(long_ago)}" in told
    assert "overdue" in told
    told = parley(*status, "--json").json
    assert told["waiting_for"] == [{"party": "east", "word": "call", "since": long_ago}]
    assert told["overdue"]


def test_a_study_that_cannot_be_read_is_listed_as_such(parley, place, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    settings = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    with sqlite3.connect(settings.folder / "curator.db") as file:
        file.execute("UPDATE study SET document = 'of another time'")
    file.close()
    with open_store(settings) as store:
        with store.transaction():
            for name in ("north", "east"):
                store.approve(written.digest, name, b"", at="now")
        Studies(store, begin=run_of, publish=None, clock=system_clock, later=None).open()
    assert "waiting for parties, unreadable" in parley("curator", "study", "list", *HUB).out
    (listed,) = parley("curator", "study", "list", "--json", *HUB).json
    assert listed["unreadable"]
    assert "cannot read its text" in parley("curator", "study", "status", "regional", *HUB).out
