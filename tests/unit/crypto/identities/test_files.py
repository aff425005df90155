import base64
import stat

import pytest

from common.crypto.identities.files import load_identity, load_public_identity, save_identity
from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource

ADA = Identity.generate(SeededRandomSource("ada"))


def test_an_identity_comes_back_from_a_file_only_its_owner_reads(tmp_path):
    path = tmp_path / "ada.key"
    save_identity(path, ADA)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_identity(path).public == ADA.public


def test_no_file_is_overwritten(tmp_path):
    path = tmp_path / "ada.key"
    path.write_text("something dear")
    with pytest.raises(InputError, match="exists"):
        save_identity(path, ADA)
    assert path.read_text() == "something dear"


def test_a_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "ada.key"
    save_identity(path, ADA)
    path.chmod(0o640)
    with pytest.raises(InputError, match=r"open to other users of this machine: .*chmod 600"):
        load_identity(path)


@pytest.mark.parametrize(
    "content", ["", "hello", "parley-identity-1 ???", "parley-identity-2 AAAA", "a b c"]
)
def test_what_is_no_identity_file_is_refused(content, tmp_path):
    path = tmp_path / "ada.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InputError, match="not an identity file"):
        load_identity(path)


def test_a_truncated_identity_is_refused(tmp_path):
    path = tmp_path / "ada.key"
    path.write_text("parley-identity-1 AQID")
    path.chmod(0o600)
    with pytest.raises(InputError, match="not an identity key"):
        load_identity(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nobody\.key"):
        load_identity(tmp_path / "nobody.key")


def test_an_identity_under_a_passphrase_opens_with_it_and_not_without(tmp_path):
    path = tmp_path / "ada.key"
    save_identity(path, ADA, passphrase="correct horse")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_identity(path, passphrase=lambda: "correct horse").public == ADA.public
    with pytest.raises(InputError, match=r"ada\.key: the passphrase is wrong"):
        load_identity(path, passphrase=lambda: "battery staple")
    with pytest.raises(InputError, match=r"ada\.key: it is under a passphrase"):
        load_identity(path)


def test_an_empty_passphrase_is_refused_and_no_file_is_made(tmp_path):
    with pytest.raises(InputError, match="protects nothing"):
        save_identity(tmp_path / "ada.key", ADA, passphrase="")
    assert list(tmp_path.iterdir()) == []


def test_a_public_half_is_read_and_anything_else_refused(tmp_path):
    path = tmp_path / "identity.pub"
    path.write_bytes(base64.b64encode(ADA.public.encoded) + b"\n")
    assert load_public_identity(path) == ADA.public
    for content in (b"", b"AAAA", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"not an identity\.pub"):
            load_public_identity(path)
