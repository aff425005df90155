"""`parley party`: an owner reviews, approves, declines and withdraws."""

import io

import pytest

from common.crypto.key_files import load_identity
from common.wire.pki.certificates import fingerprint
from common.wire.pki.keyring import Keyring, init_curator
from curator.settings import curator_settings
from party.journal import JournalState, Notes
from tests.harness.deployed_folder import AT, HUB, NORTH, POLICY, begun_study, serving, spend


def test_a_review_tells_what_leaves_and_decides_nothing(parley, place, written):
    done = parley("party", "review", "study.toml", *NORTH)
    assert done.code == 0
    for words in ("What it costs", "What leaves the building", "Our policy allows it"):
        assert words in done.out
    told = parley("party", "review", "study.toml", "--json", *NORTH).json
    assert (told["digest"], told["cost"]) == (written.digest.hex(), "1")
    assert parley("party", "status", "--offline", *NORTH).out == "no studies\n"


def test_an_automatic_node_must_say_whom_studies_protect_where_its_source_names_people(
    parley, place, written
):
    home = place.folder / "north"
    settings = (home / "party.toml").read_text()
    (home / "party.toml").write_text(f'{settings}person = "patient"\n')
    policy = (home / "policy.toml").read_text()
    assert "[approval]" not in policy
    assert "[study]" not in policy
    policy += '[approval]\nautomatic = true\n[study]\nsigners = ["AB"]\n'
    (home / "policy.toml").write_text(policy)
    done = parley("party", "join", "--once", *NORTH)
    assert done.code == 3
    assert "approval.automatic: the source names a person" in done.err
    assert "approval.automatic: the source names a person" in parley("doctor", "party", *NORTH).out
    (home / "policy.toml").write_text(f'{policy}protects = "people"\n')
    assert parley("party", "status", "--offline", *NORTH).code == 0


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


def test_withdrawing_says_what_stays_charged_and_the_ledger_keeps_it(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    with begun_study(place.folder, written.digest):
        pass
    done = parley("party", "decline", "study.toml", "--yes", *NORTH)
    assert "charged 1/3 (about 0.3333), which stays charged" in done.out
    assert parley("party", "ledger", "--verify", "--json", *NORTH).json["spent"] == "1/3"
    assert ", withdrawn on " in parley("party", "status", "--offline", *NORTH).out


def test_a_study_that_is_over_cannot_be_withdrawn_from(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    with begun_study(place.folder, written.digest) as (_, journal):
        journal.end(written.digest, JournalState.FINISHED, reason="", at="now")
    done = parley("party", "decline", "study.toml", "--yes", *NORTH)
    assert done.code == 4
    assert "is over for us (finished), with epsilon 1/3 (about 0.3333) charged" in done.err


def test_a_study_is_withdrawn_from_by_file_digest_or_name(parley, place, written):
    refused = parley("party", "withdraw", "study.toml", "--yes", *NORTH)
    assert refused.code == 3
    assert "it was not approved, so there is nothing to withdraw" in refused.err
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    assert (
        "no study of ours is 'other'" in parley("party", "withdraw", "other", "--yes", *NORTH).err
    )
    done = parley("party", "withdraw", written.digest.hex()[:8], "--yes", *NORTH)
    assert (done.code, done.out) == (0, f"withdrawn {written.digest.hex()}\ncharged nothing\n")
    assert "our node does not run: the curator learns of it when" in done.err
    with begun_study(place.folder, written.digest):
        pass
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


def test_status_goes_on_without_the_curator(parley, place):
    spend(place.folder)
    done = parley("party", "status", *NORTH)
    assert done.code == 0
    assert "regional: not decided; here running; at the curator not asked" in done.out
    assert "the curator says nothing" in done.err


def test_status_says_what_the_node_says_of_a_study(parley, place, written):
    assert parley("party", "approve", "study.toml", "--yes", *NORTH).code == 0
    with begun_study(place.folder, written.digest) as (database, _):
        notes = Notes(database)
        notes.write(written.digest, "waits for a seat", at="noon")
        notes.write(b"another", "waits for a seat", at="noon")
    shown = parley("party", "status", "--offline", *NORTH).out
    assert shown.count("our node: waits for a seat (since noon)") == 2
    told = parley("party", "status", "--offline", "--json", *NORTH).json
    assert [each["node"] for each in told] == ["waits for a seat (since noon)"] * 2


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


def test_a_study_that_was_changed_after_signing_is_not_reviewed(parley, place, written):
    path = place.folder / "study.toml"
    path.write_text(path.read_text().replace('epsilon = "1"', 'epsilon = "1/2"'))
    done = parley("party", "review", "study.toml", *NORTH)
    assert done.code == 3
    assert "did not sign this study" in done.err


@pytest.mark.parametrize("size", ["inf", "nan", "0", "-1"])
def test_the_largest_release_to_take_is_a_usable_number(parley, place, size):
    done = parley("party", "fetch", "ab", "--out", "x.zip", "--most-gb", size, *NORTH)
    assert done.code == 3
    assert "--most-gb" in done.err


def test_a_study_that_is_over_cannot_be_approved(parley, place, written, monkeypatch):
    """The owner hears it from the curator, or from our own journal; nothing is decided."""
    settings = curator_settings(place.folder / "hub" / "curator.toml", {}).values
    assert parley("curator", "study", "add", "study.toml", *HUB).code == 0
    approve = ("party", "approve", "study.toml", "--yes", *NORTH)
    with serving(settings) as port:
        monkeypatch.setenv("PARLEY_PARTY_CURATOR", f"127.0.0.1:{port}")
        assert parley("curator", "study", "abort", "regional", "--reason", "x", *HUB).code == 0
        done = parley(*approve)
        assert done.code == 4
        assert "study 'regional': it is over, at the curator it is failed" in done.err
        assert "not decided" in parley("party", "status", *NORTH).out
    with begun_study(place.folder, written.digest) as (_, journal):
        journal.end(written.digest, JournalState.REFUSED, reason="a cap", at=AT)
    done = parley(*approve, "--offline")
    assert done.code == 4
    assert "it is over for us (refused)" in done.err
