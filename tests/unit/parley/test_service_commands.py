"""The commands of curator operators and data owners, without a network."""

import io
import sqlite3
from fractions import Fraction

import pytest

from common.crypto.identities.files import load_identity
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.release import folder as release
from common.service.clock import stamp, system_clock
from common.service.database import Database
from common.study.document import Study
from common.wire.pki.certificates import fingerprint
from common.wire.pki.keyring import Keyring, init_curator
from common.wording import moment
from curator.app import open_store
from curator.configuration import curator_settings
from curator.publisher import publish
from curator.store.records import StudyState as CuratorState
from curator.store.records import Word
from curator.studies import Studies
from party.journal import Journal, StudyState
from party.ledger import Caps, Charge, Ledger
from party.notes import Notes
from tests.harness.deployed_folder import HUB, NORTH, POLICY, outcome_of, spend

pytestmark = pytest.mark.usefixtures("no_settings_of_the_user")


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


def test_a_review_tells_what_leaves_and_decides_nothing(parley, place, written):
    done = parley("party", "review", "study.toml", *NORTH)
    assert done.code == 0
    for words in ("What it costs", "What leaves the building", "Our policy allows it"):
        assert words in done.out
    told = parley("party", "review", "study.toml", "--json", *NORTH).json
    assert (told["digest"], told["cost"]) == (written.digest.hex(), "1")
    assert parley("party", "status", "--offline", *NORTH).out == "no studies\n"


def test_an_approval_is_remembered_and_withdrawn_when_the_owner_is_sure(
    parley, place, written, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    for _ in range(2):
        assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    unsure = parley("party", "decline", "study.toml", *NORTH)
    assert unsure.code == 3
    assert "the approval stands" in unsure.err
    assert (
        "Nothing was charged: no answer of ours has left. When our node has told the curator"
        in unsure.err
    )
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0, "it stands"
    done = parley("party", "decline", "study.toml", "--yes", *NORTH)
    assert (done.code, done.out) == (0, f"withdrawn {written.digest.hex()}\ncharged nothing\n")
    told = parley("party", "decline", "study.toml", "--json", *NORTH).json
    assert (told["decision"], told["epsilon_charged"]) == ("withdrawn", "0"), "again is harmless"
    again = parley("party", "approve", "study.toml", "--yes", *NORTH)
    assert again.code == 4
    assert "was withdrawn on" in again.err


def books_of_north(place, study):
    """North's file with the study begun and one step charged."""
    database = Database(place.folder / "north" / "state" / "party.db")
    ledger, journal = Ledger(database), Journal(database, OsRandomSource())
    journal.begin(study.digest, name="regional", data_digest="d", at="now")
    charge = Charge(
        study=study.digest.hex(), study_name="regional", step="first", mechanism="laplace",
        epsilon=Fraction(1, 3),
    )  # fmt: skip
    ledger.charge(charge, Caps(per_study=Fraction(1), in_total=Fraction(1)), "now")
    return database, journal


def test_withdrawing_says_what_stays_charged_and_the_ledger_keeps_it(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    books_of_north(place, written)[0].close()
    done = parley("party", "decline", "study.toml", "--yes", *NORTH)
    assert "charged 1/3, which stays charged" in done.out
    assert parley("party", "ledger", "--verify", "--json", *NORTH).json["spent"] == "1/3"
    assert ", withdrawn on " in parley("party", "status", "--offline", *NORTH).out


def test_a_study_that_is_over_cannot_be_withdrawn_from(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    database, journal = books_of_north(place, written)
    journal.end(written.digest, StudyState.FINISHED, reason="", at="now")
    database.close()
    done = parley("party", "decline", "study.toml", "--yes", *NORTH)
    assert done.code == 4
    assert "is over for us (finished), with epsilon 1/3 (about 0.3333) charged" in done.err


def test_a_study_is_withdrawn_from_by_file_digest_or_name(parley, place, written):
    refused = parley("party", "withdraw", "study.toml", "--yes", *NORTH)
    assert refused.code == 3
    assert "it was not approved, so there is nothing to withdraw" in refused.err
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert "no study that we" in parley("party", "withdraw", "other", "--yes", *NORTH).err
    done = parley("party", "withdraw", written.digest.hex()[:8], "--yes", *NORTH)
    assert (done.code, done.out) == (0, f"withdrawn {written.digest.hex()}\ncharged nothing\n")
    assert "our node does not run: the curator learns of it when" in done.err
    books_of_north(place, written)[0].close()
    again = parley("party", "withdraw", "regional", "--json", *NORTH)
    assert again.json["epsilon_charged"] == "1/3"


def test_what_the_policy_refuses_cannot_be_approved(parley, place, written):
    (place.folder / "north" / "policy.toml").write_text(POLICY.format(per_study="1/2"))
    done = parley("party", "approve", "study.toml", "--yes", *NORTH)
    assert done.code == 4
    assert "epsilon" in done.err
    (place.folder / "north" / "policy.toml").write_text(POLICY.format(per_study="1"))
    assert parley("party", "decline", "study.toml", *NORTH).code == 0, "nothing was decided"


def test_a_declined_study_cannot_be_approved(parley, place, written):
    assert parley("party", "decline", "study.toml", "--reason", "too dear", *NORTH).code == 0
    done = parley("party", "approve", "study.toml", "--yes", *NORTH)
    assert done.code == 4
    assert "was declined" in done.err


def test_the_ledger_adds_up_exactly_and_shows_that_it_was_changed(parley, place):
    spend(place.folder)
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 0
    assert "total  epsilon 1/2 (about 0.5) in 2 entries; 7/2 (about 3.5) is left" in done.out
    assert "verified" in done.out
    told = parley("party", "ledger", "--json", *NORTH).json
    assert [entry["epsilon"] for entry in told["entries"]] == ["1/3", "1/6"]
    assert told["spent"] == "1/2"
    assert told["left"] == "7/2"
    with sqlite3.connect(place.folder / "north" / "state" / "party.db") as file:
        file.execute("UPDATE entry SET epsilon = '1/30' WHERE number = 1")
    file.close()
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 3
    assert "tampered" in done.err


def test_the_transcript_has_every_message_that_left(parley, place):
    spend(place.folder)
    assert "total  5 bytes in 1 message\n" in parley("party", "transcript", *NORTH).out
    (message,) = parley("party", "transcript", "--json", *NORTH).json
    assert (message["recipient"], message["bytes"]) == ("curator", 5)


def test_status_goes_on_without_the_curator(parley, place):
    spend(place.folder)
    done = parley("party", "status", *NORTH)
    assert done.code == 0
    assert "regional: not decided; here running; at the curator not asked" in done.out
    assert "the curator says nothing" in done.err


def test_status_says_what_the_node_says_of_a_study(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    database, _ = books_of_north(place, written)
    notes = Notes(database)
    notes.write(written.digest, "waits for a seat", at="noon")
    notes.write(b"another", "waits for a seat", at="noon")
    database.close()
    shown = parley("party", "status", "--offline", *NORTH).out
    assert shown.count("our node: waits for a seat (since noon)") == 2
    told = parley("party", "status", "--offline", "--json", *NORTH).json
    assert [each["node"] for each in told] == ["waits for a seat (since noon)"] * 2


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


def trusting(place, signer):
    """North's policy names who may sign."""
    path = place.folder / "north" / "policy.toml"
    path.write_text(POLICY.format(per_study=1) + f'[study]\nsigners = ["{signer}"]\n')


def test_a_study_is_signed_by_the_curator_and_an_owner_sees_it_offline(parley, place, written):
    curator = load_identity(place.ring.identity).public.fingerprint
    assert written.signer == curator
    trusting(place, curator.lower().replace("-", ""))
    done = parley("party", "review", "study.toml", *NORTH)
    assert f"signed by {curator}" in done.out
    assert "Our policy allows it" in done.out


def test_a_study_signed_by_somebody_else_or_by_nobody_is_refused_with_the_reason(parley, place):
    trusting(place, load_identity(place.ring.identity).public.fingerprint)
    other = load_identity(place.folder / "east" / "keys" / "identity.key").public.fingerprint
    assert parley(*place.words(out="e.toml"), "--signer", "east/keys/identity.key").code == 0
    assert parley(*place.words(out="n.toml"), "--unsigned").code == 0
    for file, who in (("e.toml", other), ("n.toml", "unknown")):
        done = parley("party", "approve", file, "--yes", *NORTH)
        assert done.code == 4
        assert f"who signed the study ({who}) is not among the signers" in done.err
    assert "not signed" in parley("party", "review", "n.toml", *NORTH).out


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


def test_a_second_authority_that_we_trust_does_not_pass_for_the_one_that_the_policy_names(
    parley, place, written
):
    home = place.folder / "north"
    ours = fingerprint(Keyring.open(home / "keys").authority())
    (home / "policy.toml").write_text(
        f'{POLICY.format(per_study=1)}[study]\ncurators = ["{ours}"]\n'
    )
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    other = init_curator(
        place.folder / "other", "hub", ("127.0.0.1",), now=place.now, external=False
    )
    trusted = home / "keys" / "authority.pem"
    trusted.write_bytes(trusted.read_bytes() + other.files.authority.read_bytes())
    done = parley("party", "review", "study.toml", *NORTH)
    assert "is not among the curators allowed here" in done.out


def test_without_the_curators_settings_somebody_else_has_to_sign(parley, place):
    words = place.words()
    at = words.index("--config")
    done = parley(*words[:at], *words[at + 2 :])
    assert done.code == 3
    assert "who signs the study?" in done.err


def test_a_study_that_was_changed_after_signing_is_not_reviewed(parley, place, written):
    path = place.folder / "study.toml"
    path.write_text(path.read_text().replace('epsilon = "1"', 'epsilon = "1/2"'))
    done = parley("party", "review", "study.toml", *NORTH)
    assert done.code == 3
    assert "did not sign this study" in done.err


def test_keys_under_a_passphrase_need_it_where_they_are_used(parley, small, monkeypatch):
    folder = small()
    secret = folder / "secret.txt"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    words = ("keys", "init", "curator", "hub", "--host", "localhost", "--folder", "k")
    assert parley(*words, "--passphrase-file", "secret.txt").code == 0
    assert b"ENCRYPTED" in (folder / "k" / "authority.key").read_bytes()
    assert parley("keys", "init", "party", "north", "--folder", "n").code == 0
    told = parley("keys", "request", "--folder", "n").out.split()[1]
    approve = ("keys", "approve", "n/party.csr", "--folder", "k", "--fingerprint", told)
    done = parley(*approve)
    assert done.code == 3
    assert "authority.key: it is under a passphrase" in done.err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "battery staple")
    assert "passphrase is wrong" in parley(*approve).err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "correct horse")
    assert parley(*approve).code == 0
    assert "identity" in parley("keys", "show", "--folder", "k").out


def test_a_passphrase_is_changed_and_removed(parley, place, monkeypatch):
    for name, words in (("old", "correct horse"), ("new", "battery staple")):
        (place.folder / name).write_text(words)
        (place.folder / name).chmod(0o600)
    change = ("keys", "passphrase", "--folder", "north/keys")
    assert parley(*change, "--new-passphrase-file", "old").code == 0
    done = parley("party", "review", "study.toml", *NORTH)
    assert "identity.key: it is under a passphrase" in done.err
    assert parley(*place.words()).code == 0
    monkeypatch.setenv("PARLEY_PARTY_PASSPHRASE_FILE", "old")
    assert parley("party", "review", "study.toml", *NORTH).code == 0
    (place.folder / "old").chmod(0o604)
    assert "open to every user" in parley("party", "review", "study.toml", *NORTH).err
    (place.folder / "old").chmod(0o600)
    wrong = parley(*change, "--passphrase-file", "new", "--remove")
    assert "passphrase is wrong" in wrong.err
    assert parley(*change, "--passphrase-file", "old", "--new-passphrase-file", "new").code == 0
    assert parley(*change, "--passphrase-file", "new", "--remove").code == 0
    assert "mode 0600 only" in parley(*change, "--remove").out


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


@pytest.mark.parametrize("size", ["inf", "nan", "0", "-1"])
def test_the_largest_release_to_take_is_a_usable_number(parley, place, size):
    done = parley("party", "fetch", "ab", "--out", "x.zip", "--most-gb", size, *NORTH)
    assert done.code == 3
    assert "--most-gb" in done.err


def test_a_running_study_says_whom_it_waits_for_and_since_when(parley, place, written):
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    hub = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    since = stamp(system_clock())
    with open_store(hub) as store, store.transaction():
        store.move(written.digest, CuratorState.RUNNING, step=2, phase="counting")
        store.wait_for(written.digest, ["east"], Word.ANSWER, at=since)
    status = ("curator", "study", "status", "regional", *HUB)
    assert f"waits for the answer of east in step 3, since {moment(since)}" in parley(*status).out
    long_ago = "2026-01-02T03:04:05+00:00"
    with open_store(hub) as store, store.transaction():
        store.wait_for(written.digest, ["east"], Word.CALL, at=long_ago)
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


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("hub/state/curator.db", ("curator", "serve", *HUB)),
        ("north/state/party.db", ("party", "join", *NORTH)),
    ],
)
def test_no_service_starts_on_a_damaged_file(parley, place, written, file, words):
    parley("curator", "study", "add", "study.toml", *HUB)
    parley("party", "status", "--offline", *NORTH)
    path = place.folder / file
    with sqlite3.connect(path) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = 'step_time'"
        ((page,),) = connection.execute(query)  # which no start looks at
        ((size,),) = connection.execute("PRAGMA page_size")
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)
    done = parley(*words)
    assert done.code == 3
    assert "is damaged" in done.err
    assert "newest copy" in done.err
