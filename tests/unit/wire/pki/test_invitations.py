"""An invitation and an application say what they said, or their fingerprint is another."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import OsRandomSource
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.invitations import Application, Invitation, file_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def authority(name="hub consortium"):
    key = certificates.new_key()
    return certificates.make_authority(key, name, first=NOW, last=NOW + timedelta(days=9))


def invitation(**changed):
    said = {
        "party": 'north "1"', "curator": "hub.example:7443", "signer": "AAAA", "software": "parley",
        "authorities": (authority(),),
    }  # fmt: skip
    return Invitation(**{**said, **changed})


def application(name="north", role=Role.PARTY):
    hosts = ("hub.example",) if role is Role.CURATOR else ()
    request = certificates.make_request(
        certificates.new_key(), Subject(role=role, name=name, hosts=hosts)
    )
    return Application(request=request, identity=Identity.generate(OsRandomSource()).public)


@pytest.mark.parametrize("written", [invitation(), application()])
@pytest.mark.parametrize("mailed", [str, lambda text: text.replace("\n", "\r\n") + "# seen\r\n"])
def test_what_was_written_is_read_and_has_the_same_fingerprint(tmp_path, written, mailed):
    file = tmp_path / "it.toml"
    file.write_bytes(mailed(written.to_toml()).encode())
    again = type(written).load(file)
    assert again == written
    assert again.fingerprint == written.fingerprint
    assert len(again.fingerprint) == 32 * 3 - 1


@pytest.mark.parametrize(
    "changed",
    [
        {"party": "south"},
        {"curator": "evil.example:7443"},
        {"signer": "BBBB"},
        {"software": "parley 9"},
        {"authorities": (authority(),)},
    ],
)
def test_whatever_is_changed_in_an_invitation_changes_its_fingerprint(changed):
    before = invitation()
    kept = {"authorities": before.authorities, **changed}
    assert invitation(**kept).fingerprint != before.fingerprint


def test_another_identity_or_key_changes_the_fingerprint_of_an_application():
    one, other = application(), application()
    swapped = Application(request=one.request, identity=other.identity)
    rekeyed = Application(request=other.request, identity=one.identity)
    assert len({each.fingerprint for each in (one, other, swapped, rekeyed)}) == 4


def test_several_authorities_travel_together(tmp_path):
    written = invitation(authorities=(authority("one"), authority("two")))
    (tmp_path / "it.toml").write_text(written.to_toml())
    assert Invitation.load(tmp_path / "it.toml").authorities == written.authorities


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a parley invitation"),
        ('kind = "parley application 1"', "not a parley invitation"),
        ('kind = "parley invitation 2"', "later version"),
        ('kind = "parley invitation 1"', "party is missing"),
        ("kind", "not valid TOML"),
        (invitation().to_toml() + "extra = 1", "unknown key 'extra'"),
        (invitation().to_toml().replace("BEGIN CERT", "BEGIN HURT"), "certificate"),
        (invitation().to_toml().replace("north", "a\\u001bb"), "printable"),
    ],
)
def test_what_is_no_invitation_is_refused_by_name(tmp_path, text, words):
    file = tmp_path / "it.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        Invitation.load(file)
    assert str(file) in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "it.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        Application.load(tmp_path / "it.toml")


def test_a_curators_request_is_no_application(tmp_path):
    (tmp_path / "it.toml").write_text(application("hub", Role.CURATOR).to_toml())
    with pytest.raises(InputError, match="certificate of a curator"):
        Application.load(tmp_path / "it.toml")


def test_a_name_leads_to_no_other_folder():
    assert file_name("../../etc/north", ending="pub") == "-etc-north.pub"
    assert Path(file_name("north", ending="pub")).name == "north.pub"
