"""From nothing to a consortium whose members know each other, by the commands alone."""

import stat
from datetime import UTC, datetime, timedelta

import pytest
import typer

from common.crypto.key_files import load_identity
from common.errors import InputError
from common.wire.pki import certificates, keyring, peers
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import parse_certificates
from common.wire.pki.keyring import Keyring
from parley.cli.commands import keys


def run(*arguments):
    """The command itself: its errors come through as they are."""
    command = typer.main.get_command(keys.app)
    return command.main([str(one) for one in arguments], standalone_mode=False)


@pytest.fixture
def hub(tmp_path):
    run("init", "curator", "hub", "--host", "127.0.0.1", "--folder", tmp_path / "hub")
    return Keyring.open(tmp_path / "hub")


@pytest.fixture
def north(tmp_path):
    run("init", "party", "north", "--folder", tmp_path / "north")
    return Keyring.open(tmp_path / "north")


def approved(hub, ring):
    """The certificate the curator issues for what the party shows."""
    told = certificates.key_fingerprint(ring.read_request())
    before = set(hub.folder.glob("issued/*"))
    run("approve", ring.request, "--folder", hub.folder, "--fingerprint", told)
    (path,) = set(hub.folder.glob("issued/*")) - before
    return path


def accept(hub, ring, path):
    told = certificates.fingerprint(hub.authority())
    run(
        "accept", path, "--folder", ring.folder,
        "--authority", hub.files.authority, "--fingerprint", told.lower(),
    )  # fmt: skip


def test_a_party_gets_a_certificate_without_its_key_leaving(hub, north):
    accept(hub, north, approved(hub, north))
    for ring in (hub, north):
        subject = ring.files.load().check(role=ring.role, at=datetime.now(UTC))
        assert subject.name == ring.folder.name
    secret = north.files.key.read_bytes()
    assert not any(secret in path.read_bytes() for path in hub.folder.rglob("*.*"))
    assert load_identity(north.identity)


def test_secrets_are_for_their_owner_only(hub, north):
    for path in [*hub.folder.rglob("*.key"), *north.folder.rglob("*.key")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(north.folder.stat().st_mode) == 0o700


def test_nothing_is_overwritten(hub, north):
    before = {path: path.read_bytes() for path in north.folder.iterdir()}
    with pytest.raises(InputError, match="not empty"):
        run("init", "party", "north", "--folder", north.folder)
    assert {path: path.read_bytes() for path in north.folder.iterdir()} == before
    with pytest.raises(InputError, match="exists"):
        run("request", "--folder", north.folder, "--out", hub.files.key)


@pytest.mark.parametrize(
    "arguments",
    [
        ("party", "a\nb"),
        ("party", "north", "--host", "127.0.0.1"),
        ("party", "north", "--external-authority"),
        ("curator", "hub"),
        ("curator", "hub", "--host", "hüb"),
    ],
)
def test_a_refused_init_leaves_nothing_behind(tmp_path, arguments):
    with pytest.raises(InputError):
        run("init", *arguments, "--folder", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_fingerprint_that_differs_stops_everything(hub, north, tmp_path):
    wrong = ":".join(["00"] * 32)
    with pytest.raises(InputError, match="not the one you were told"):
        run("approve", north.request, "--folder", hub.folder, "--fingerprint", wrong)
    with pytest.raises(InputError, match="--fingerprint"):
        run("approve", north.request, "--folder", hub.folder)
    path = approved(hub, north)
    with pytest.raises(InputError, match="not the one you were told"):
        run(
            "accept", path, "--folder", north.folder,
            "--authority", hub.files.authority, "--fingerprint", wrong,
        )  # fmt: skip
    assert not north.files.authority.exists()
    with pytest.raises(InputError, match="--authority"):
        run("accept", path, "--folder", north.folder)


def test_a_question_at_the_terminal_confirms_too(hub, north, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda question, err: False)
    with pytest.raises(InputError, match="did not confirm"):
        run("approve", north.request, "--folder", hub.folder)
    monkeypatch.setattr(typer, "confirm", lambda question, err: True)
    run("approve", north.request, "--folder", hub.folder)
    assert len(hub.issued()) == 2


def test_somebody_elses_certificate_is_not_accepted(hub, north, tmp_path):
    run("init", "party", "south", "--folder", tmp_path / "south")
    path = approved(hub, Keyring.open(tmp_path / "south"))
    with pytest.raises(InputError, match="no key in"):
        accept(hub, north, path)
    with pytest.raises(InputError, match="CERTIFICATE_UNTRUSTED"):
        run("accept", hub.files.certificate, "--folder", north.folder)


def test_another_authority_does_not_replace_the_first(hub, north, tmp_path):
    accept(hub, north, approved(hub, north))
    run("init", "curator", "hub", "--host", "127.0.0.1", "--folder", tmp_path / "twin")
    twin = Keyring.open(tmp_path / "twin")
    with pytest.raises(InputError, match="another authority"):
        accept(twin, north, north.files.certificate)


def test_a_party_rotates_while_its_old_certificate_stays_valid(hub, north):
    accept(hub, north, approved(hub, north))
    old = north.files.load()
    run("rotate", "--folder", north.folder)
    assert north.files.load().certificate == old.certificate, "in use until the new one is there"
    waiting = north.read_request()
    run("rotate", "--folder", north.folder)
    again = north.read_request()
    assert certificates.key_fingerprint(again) == certificates.key_fingerprint(waiting)
    accept(hub, north, approved(hub, north))
    new = north.files.load()
    assert new.certificate.public_key() != old.certificate.public_key()
    assert not list(north.folder.glob("*next*"))
    for each in (old, new):
        assert each.check(role=Role.PARTY, at=datetime.now(UTC)).name == "north"


def test_an_interrupted_rotation_is_finished_by_accepting_again(hub, north, monkeypatch):
    accept(hub, north, approved(hub, north))
    run("rotate", "--folder", north.folder)
    path = approved(hub, north)

    def killed(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(keyring, "replace", lambda path, data: path.write_bytes(data))
        patch.setattr(type(path), "replace", killed)  # the new key, into the old one's place
        with pytest.raises(KeyboardInterrupt):
            north.accept(path.read_bytes(), where=path, now=datetime.now(UTC))
    with pytest.raises(InputError, match="keys accept"):
        north.files.load()
    run("accept", path, "--folder", north.folder)
    assert north.files.load()


def test_the_curator_rotates_at_once(hub):
    old = hub.files.load().certificate
    run("rotate", "--folder", hub.folder)
    new = hub.files.load().certificate
    assert new.public_key() != old.public_key()
    assert certificates.subject_of(new) == certificates.subject_of(old)


def test_only_the_authority_approves(north):
    told = certificates.key_fingerprint(north.read_request())
    with pytest.raises(InputError, match="authority's key is not here"):
        run("approve", north.request, "--folder", north.folder, "--fingerprint", told)


def test_an_existing_authority_can_certify_the_curator(hub, tmp_path):
    run(
        "init", "curator", "second", "--host", "10.0.0.1", "--external-authority",
        "--folder", tmp_path / "second",
    )  # fmt: skip
    second = Keyring.open(tmp_path / "second")
    assert not second.is_authority
    with pytest.raises(InputError, match="no certificate to rotate"):
        second.rotate(now=datetime.now(UTC))
    accept(hub, second, approved(hub, second))
    assert second.files.load().check(role=Role.CURATOR, at=datetime.now(UTC)).hosts == ("10.0.0.1",)


def test_revoked_by_file_or_by_fingerprint(hub, north, capsys):
    path = approved(hub, north)
    fingerprint = certificates.fingerprint(parse_certificates(path.read_bytes(), where=path)[0])
    run("revoke", path, "--folder", hub.folder, "--reason", "lost laptop")
    run("revoke", fingerprint.lower(), "--folder", hub.folder)
    assert "was revoked already" in capsys.readouterr().out
    assert "lost laptop" in hub.revoked.read_text()
    assert peers.parse_revocations(hub.revoked.read_text(), hub.revoked) == {fingerprint}
    for wrong in ("AB:CD", "", f"{fingerprint} {fingerprint}"):
        with pytest.raises(InputError, match="fingerprint"):
            run("revoke", wrong, "--folder", hub.folder)
    with pytest.raises(InputError, match="one line"):
        run("revoke", fingerprint, "--folder", hub.folder, "--reason", "a\nb")
    with pytest.raises(InputError, match="at the curator"):
        run("revoke", fingerprint, "--folder", north.folder)


def test_both_sides_see_the_same_fingerprints_and_no_secret(hub, north, capsys):
    run("show", "--folder", north.folder)
    assert "none yet" in capsys.readouterr().out
    path = approved(hub, north)
    accept(hub, north, path)
    capsys.readouterr()
    run("show", "--folder", north.folder)
    at_party = capsys.readouterr().out
    run("show", "--folder", hub.folder)
    at_curator = capsys.readouterr().out
    for certificate in (north.certificate(), hub.authority()):
        fingerprint = certificates.fingerprint(certificate)
        assert fingerprint in at_party
        assert fingerprint in at_curator
    assert load_identity(north.identity).public.fingerprint in at_party
    assert "PRIVATE" not in at_party + at_curator


def test_the_last_thirty_days_are_warned_about(hub, monkeypatch, capsys):
    later = datetime.now(UTC) + timedelta(days=keyring.CERTIFICATE_DAYS - 10)
    monkeypatch.setattr(keys, "system_clock", lambda: later)
    run("show", "--folder", hub.folder)
    assert "expires on" in capsys.readouterr().err


def test_an_earlier_certificate_of_the_same_name_is_pointed_out(hub, north, tmp_path, capsys):
    approved(hub, north)
    run("init", "party", "north", "--folder", tmp_path / "impostor")
    capsys.readouterr()
    approved(hub, Keyring.open(tmp_path / "impostor"))
    assert "is this a rotation?" in capsys.readouterr().err


def test_a_folder_without_keys_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="keys init"):
        run("show", "--folder", tmp_path)
