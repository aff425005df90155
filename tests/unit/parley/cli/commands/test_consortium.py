"""Owners join a consortium by one file and one command each."""

import json
import stat

import pytest
import typer

from common.crypto.key_files import load_public_identity
from common.errors import InputError
from common.service.process import system_clock
from common.wire.pki import certificates
from common.wire.pki.certificates import Role
from common.wire.pki.invitations import Application, Invitation
from common.wire.pki.keyring import Keyring
from parley.cli.commands import consortium, keys
from party.owner.policy import Policy
from party.settings import party_settings, source_settings


def run(app, *arguments):
    """The command itself: its errors come through as they are."""
    return typer.main.get_command(app).main(
        [str(each) for each in arguments], standalone_mode=False
    )


@pytest.fixture
def hub(tmp_path):
    folder = tmp_path / "hub"
    run(keys.app, "init", "curator", "hub", "--host", "hub.example", "--host", "::1", "--folder",
        folder / "keys")  # fmt: skip
    (folder / "curator.toml").write_text(
        'folder = "state"\nkeys = "keys"\nreleases = "releases"\nlisten = "0.0.0.0:7999"\n'
    )
    return folder


def invite(hub, *names, **options):
    given = [part for key, value in options.items() for part in (f"--{key}", value)]
    out = hub / "invitations"
    run(consortium.app, "invite", *names, "--config", hub / "curator.toml", "--out", out, *given)
    return [out / f"{name}.invitation.toml" for name in names]


def accept(file, folder, *more):
    told = Invitation.load(file).fingerprint
    run(consortium.app, "accept", file, "--folder", folder, "--fingerprint", told.lower(), *more)
    return folder / file.name.replace("invitation", "application")


def approve(hub, file, told=None):
    told = told or Application.load(file).fingerprint
    config = hub / "curator.toml"
    run(consortium.app, "approve", file, "--config", config, "--fingerprint", told)


def test_from_an_invitation_to_a_node_that_can_connect(hub, tmp_path, capsys):
    (file,) = invite(hub, "north")
    north = tmp_path / "north"
    application = accept(file, north)
    capsys.readouterr()
    approve(hub, application)
    (issued,) = (hub / "keys" / "issued").glob("north-*.pem")
    assert str(issued) in capsys.readouterr().err
    run(keys.app, "accept", issued, "--folder", north / "keys")
    subject = Keyring.open(north / "keys").files.load().check(role=Role.PARTY, at=system_clock())
    assert subject.name == "north"
    kept = load_public_identity(hub / "keys" / "members" / "north.pub")
    assert kept == load_public_identity(north / "keys" / "identity.pub")


def test_settings_and_policy_are_ready_and_ask_for_every_study(hub, tmp_path):
    (file,) = invite(hub, "north")
    north = tmp_path / "north"
    accept(file, north, "--rows", tmp_path / "play" / "my.csv")
    settings = party_settings(north / "party.toml", {})
    assert settings.values.curator == "hub.example:7999"
    assert settings.values.policy == north / "policy.toml"
    source_settings(settings, north / "party.toml", {})
    assert settings.tables["source"]["path"] == "../play/my.csv"
    policy = Policy.load(north / "policy.toml")
    ring = Keyring.open(hub / "keys")
    assert not policy.automatic
    assert policy.signers == (load_public_identity(ring.public_identity).fingerprint,)
    assert policy.curators == (certificates.fingerprint(ring.authority()),)


def test_no_secret_is_in_a_file_that_is_sent(hub, tmp_path):
    (file,) = invite(hub, "north")
    application = accept(file, tmp_path / "north")
    sent = file.read_text() + application.read_text()
    assert "PRIVATE" not in sent
    for secret in [*hub.rglob("*.key"), *(tmp_path / "north").rglob("*.key")]:
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        for line in secret.read_bytes().splitlines():
            assert line.startswith(b"-----") or line.decode("latin-1") not in sent


def test_a_changed_invitation_stops_before_anything_is_made(hub, tmp_path):
    (file,) = invite(hub, "north")
    told = Invitation.load(file).fingerprint
    file.write_text(file.read_text().replace("hub.example:7999", "evil.example:7999"))
    with pytest.raises(InputError, match="not the one you were told"):
        run(consortium.app, "accept", file, "--folder", tmp_path / "north", "--fingerprint", told)
    assert not (tmp_path / "north").exists()


def test_an_application_with_another_identity_gets_no_certificate(hub, tmp_path):
    north, mallory = invite(hub, "north", "mallory")
    ours = accept(north, tmp_path / "north")
    theirs = accept(mallory, tmp_path / "mallory")
    told = Application.load(ours).fingerprint
    mixed = Application(
        request=Application.load(ours).request, identity=Application.load(theirs).identity
    )
    ours.write_text(mixed.to_toml())
    with pytest.raises(InputError, match="not the one you were told"):
        approve(hub, ours, told)
    assert not list((hub / "keys").glob("issued/north-*"))
    assert not (hub / "keys" / "members").exists()


def test_nothing_is_overwritten(hub, tmp_path):
    (file,) = invite(hub, "north")
    with pytest.raises(InputError, match="it exists"):
        invite(hub, "south", "north")
    assert not (hub / "invitations" / "south.invitation.toml").exists()
    north = tmp_path / "north"
    accept(file, north)
    before = {path: path.read_bytes() for path in north.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="it exists"):
        accept(file, north)
    assert {path: path.read_bytes() for path in north.rglob("*") if path.is_file()} == before


def test_an_address_that_the_certificate_is_not_for_is_refused(hub):
    with pytest.raises(InputError, match=r"certificate is for hub\.example, ::1"):
        invite(hub, "north", address="other.example:7443")
    (file,) = invite(hub, "south", address="[::1]:7443")
    assert Invitation.load(file).curator == "[::1]:7443"


def test_only_a_curator_invites(hub, tmp_path):
    (file,) = invite(hub, "north")
    accept(file, tmp_path / "north")
    (hub / "curator.toml").write_text(
        f'folder = "state"\nkeys = "{tmp_path / "north" / "keys"}"\nreleases = "releases"\n'
    )
    with pytest.raises(InputError, match="no certificate yet"):
        invite(hub, "south")


def test_a_new_identity_of_a_known_owner_is_said(hub, tmp_path, capsys):
    (file,) = invite(hub, "north")
    approve(hub, accept(file, tmp_path / "north"))
    capsys.readouterr()
    approve(hub, accept(file, tmp_path / "again"))
    said = capsys.readouterr().err
    assert "is this a rotation?" in said
    assert "another identity now" in said
    kept = load_public_identity(hub / "keys" / "members" / "north.pub")
    assert kept == load_public_identity(tmp_path / "again" / "keys" / "identity.pub")


def test_the_results_for_scripts_name_files_and_fingerprints(hub, tmp_path, capsys):
    capsys.readouterr()
    run(consortium.app, "invite", "north", "--config", hub / "curator.toml", "--out", tmp_path,
        "--json")  # fmt: skip
    (invited,) = json.loads(capsys.readouterr().out)
    folder = tmp_path / "north"
    run(consortium.app, "accept", invited["file"], "--folder", folder, "--fingerprint",
        invited["fingerprint"], "--json")  # fmt: skip
    applied = json.loads(capsys.readouterr().out)
    approve_options = ["--config", hub / "curator.toml", "--fingerprint", applied["fingerprint"]]
    run(consortium.app, "approve", applied["application"], *approve_options, "--json")
    admitted = json.loads(capsys.readouterr().out)
    assert admitted["party"] == "north"
    run(keys.app, "accept", admitted["file"], "--folder", folder / "keys")
