"""`parley party ledger`, `sent-log`, `countersign` and `audit`: spent, sent, signed, replayed."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

from common.crypto.identities.identity import Identity
from common.privacy.randomness import SeededRandomSource
from common.release.manifest import Signer, SignerRole
from common.release.verify import missing_parties
from common.service.database import Database
from party.ledger import Ledger, LedgerCharge
from tests.harness.deployed_folder import AT, HUB, NORTH, DeployedFolder, spend
from tests.unit.parley.cli.commands.conftest import append, sign_again


def test_the_ledger_tells_rows_and_people_apart(parley, place):
    spend(place.folder)
    with Database(place.folder / "north" / "state" / "party.db") as database:
        charge = LedgerCharge(
            study="b" * 64, study_name="visits", step="first", mechanism="laplace",
            epsilon=Fraction(1, 4), rows_per_person=1, owners_per_person=1,
        )  # fmt: skip
        Ledger(database).charge(charge, None, AT)
    told = parley("party", "ledger", "--verify", "--json", *NORTH).json
    assert told["totals"]["row"]["spent"] == told["spent"] == "1"
    assert told["totals"]["person"]["spent"] == "1/4"
    assert told["entries"][-1]["rows_per_person"] == "1"
    shown = parley("party", "ledger", *NORTH).out
    assert "visits (bbbbbbbbbbbbbbbb): first (of a person, at 1 owner)" in shown
    assert "total  epsilon 1 of a row in 3 entries; 3 is left by our policy" in shown
    assert "total  epsilon 0.25 of a person in 1 entry; 3.75" in shown
    assert "studies of rows come on top, once for each row of the person" in shown


def test_the_ledger_adds_up_exactly_and_shows_that_it_was_changed(parley, place):
    spend(place.folder)
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 0
    assert "total  epsilon 0.5 of a row in 2 entries; 3.5 is left" in done.out
    assert "verified" in done.out
    told = parley("party", "ledger", "--json", *NORTH).json
    assert [entry["epsilon"] for entry in told["entries"]] == ["1/3", "1/6"]
    assert told["spent"] == "1/2"
    assert told["left"] == "7/2"
    assert told["totals"]["row"] == {key: told[key] for key in told["totals"]["row"]}
    assert told["totals"]["person"]["spent"] == "0"
    with sqlite3.connect(place.folder / "north" / "state" / "party.db") as file:
        file.execute("UPDATE entry SET epsilon = '1/30' WHERE number = 1")
    file.close()
    done = parley("party", "ledger", "--verify", *NORTH)
    assert done.code == 3
    assert "tampered" in done.err


def test_the_ledger_of_a_later_version_is_read_and_nothing_is_written(parley, place):
    spend(place.folder)
    file = place.folder / "north" / "state" / "party.db"
    with closing(sqlite3.connect(file)) as later:
        later.executescript(
            "PRAGMA user_version=99; ALTER TABLE entry ADD COLUMN purpose TEXT NOT NULL DEFAULT '';"
        )
    before = file.read_bytes()
    done = parley("party", "ledger", *NORTH)
    assert done.code == 0
    assert "in 2 entries; 3.5 is left" in done.out
    assert "written by a later version of parley" in done.err
    assert "The ledger is only read" in done.err
    assert parley("party", "ledger", "--json", *NORTH).json["spent"] == "1/2"
    chained = parley("party", "ledger", "--verify", *NORTH)
    assert chained.code == 3
    assert "Verify it with the version that wrote it" in chained.err
    assert parley("party", "status", *NORTH).code == 3
    assert file.read_bytes() == before


def test_the_sent_log_has_every_message_that_left(parley, place):
    spend(place.folder)
    assert "total  5 bytes in 1 message\n" in parley("party", "sent-log", *NORTH).out
    (message,) = parley("party", "transcript", "--json", *NORTH).json
    assert (message["recipient"], message["bytes"]) == ("curator", 5)


def test_an_audit_needs_what_the_policy_did_not_keep(parley, place, written):
    done = parley("party", "audit", "study.toml", *NORTH)
    assert done.code == 3
    assert "nothing was kept for an audit. Set keep_for_audit" in done.err
    wiped = parley("party", "audit", "study.toml", "--wipe", "--json", *NORTH)
    assert wiped.json == {"study": written.digest.hex(), "wiped": True}


def test_an_audit_compares_with_the_curators_record_of_this_study_only(parley, place, written):
    """What the curator's command writes is what the owner's command reads."""
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    told = parley("curator", "study", "received", "regional", "--json", *HUB).json
    assert told == {"study": written.digest.hex(), "parties": {"north": [], "east": []}}
    words = ("party", "audit", "study.toml", "--received", "record.json", *NORTH)
    record = place.folder / "record.json"
    for content, problem in (
        (told, "nothing was kept"),  # the record is read before anything else
        (told | {"study": "00" * 32}, "the record is of another study"),
        (told | {"parties": {}}, "not the curator's record of 'north'"),
        ([], "not the curator's record of 'north'"),
    ):
        record.write_text(json.dumps(content))
        done = parley(*words)
        assert done.code == 3
        assert problem in done.err
    assert parley(*words[:4], "nowhere.json", *NORTH).code == 3


def test_a_party_does_not_countersign_another_statement_or_another_version(parley, made, copies):
    DeployedFolder(copies)
    words = ("party", "countersign", "several", *NORTH)
    sign_again(copies / "several", made, method_version=99)
    assert parley(*words).code == 8
    append(copies / "several" / "study.toml", "# as agreed")
    sign_again(copies / "several", made)
    done = parley(*words)
    assert done.code == 3
    assert "study.toml: is not written as parley writes a study" in done.err
    assert len(list((copies / "several" / "signatures").iterdir())) == 1


def test_a_countersignature_of_somebody_outside_the_study_is_refused(parley, copies):
    stranger = Signer(
        role=SignerRole.PARTY, name="party 1", identity=Identity.generate(SeededRandomSource("x"))
    )
    signature = stranger.sign((copies / "several" / "manifest.json").read_bytes())
    (copies / "several" / signature.file).write_bytes(signature.to_bytes())
    done = parley("verify", "several")
    assert done.code == 3
    assert "pins no such identity for a party 'party 1'" in done.err


def test_a_party_that_signs_as_something_else_has_not_countersigned(tmp_path):
    party = Identity.generate(SeededRandomSource("party"))
    agreed = SimpleNamespace(roster={"north": party.public})
    signature = Signer(role=SignerRole.CURATOR, name="hub", identity=party).sign(b"manifest")
    for role, missing in ((SignerRole.CURATOR, 1), (SignerRole.PARTY, 0)):
        signatures = (replace(signature, role=role),)
        assert len(missing_parties(agreed, signatures)) == missing
