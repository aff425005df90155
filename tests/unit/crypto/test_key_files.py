"""Secret keys at rest: they come back, in no other hands, and not if a byte was changed."""

import base64
import stat

import pytest

from common.crypto.identities.identity import Identity
from common.crypto.key_files import (
    load_identity,
    load_public_identity,
    private_key_from_bytes,
    private_key_to_bytes,
    save_identity,
    seal,
    unseal,
)
from common.errors import InputError
from common.privacy.randomness import OsRandomSource, SeededRandomSource

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


HEADER = b"key 1\0"


def test_a_secret_comes_back_and_a_changed_byte_is_refused_without_showing_anything():
    """Deriving a key takes half a second on purpose, so this test does it four times only."""
    sealed, again = (
        seal(b"secret", "correct horse", header=HEADER, source=OsRandomSource()) for _ in range(2)
    )
    assert sealed != again
    assert b"secret" not in sealed
    assert len(sealed) == len(HEADER) + 16 + 12 + len(b"secret") + 16
    assert unseal(sealed, "correct horse", header=HEADER) == b"secret"
    changed = bytearray(sealed)
    changed[len(HEADER) + 28] ^= 1
    with pytest.raises(InputError, match="wrong, or the key is damaged") as refused:
        unseal(bytes(changed), "correct horse", header=HEADER)
    assert "horse" not in str(refused.value)


@pytest.mark.parametrize(
    "data", [b"", HEADER, HEADER + bytes(27), b"key 2\0" + bytes(60)], ids=range(4)
)
def test_a_truncated_key_or_one_of_another_kind_is_refused_before_any_work(data):
    with pytest.raises(InputError, match="truncated"):
        unseal(data, "correct horse", header=HEADER)


def test_an_empty_passphrase_is_refused():
    with pytest.raises(InputError, match="protects nothing"):
        seal(b"secret", "", header=HEADER, source=OsRandomSource())


PASSPHRASE = "correct horse battery staple"


@pytest.fixture
def source():
    return SeededRandomSource("key files")


@pytest.fixture(scope="module")
def sealed(private_key):
    return private_key_to_bytes(
        private_key, passphrase=PASSPHRASE, source=SeededRandomSource("one sealed key")
    )


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_a_stored_key_comes_back(private_key, passphrase, source):
    stored = private_key_to_bytes(private_key, passphrase=passphrase, source=source)
    loaded = private_key_from_bytes(stored, passphrase=passphrase)
    assert loaded.reveal_factors() == private_key.reveal_factors()
    assert loaded.public_key == private_key.public_key


def test_a_sealed_key_shows_nothing_of_the_secret(private_key, sealed):
    for factor in private_key.reveal_factors():
        assert factor.to_bytes(128, "big")[:16] not in sealed
    assert private_key.public_key.to_bytes()[3:40] not in sealed


def test_sealing_twice_gives_different_bytes(private_key, sealed, source):
    assert private_key_to_bytes(private_key, passphrase=PASSPHRASE, source=source) != sealed


def test_a_wrong_passphrase_is_refused(sealed):
    with pytest.raises(InputError, match="passphrase is wrong"):
        private_key_from_bytes(sealed, passphrase="incorrect horse")


def test_a_missing_passphrase_is_asked_for(sealed):
    with pytest.raises(InputError, match="under a passphrase"):
        private_key_from_bytes(sealed, passphrase=None)


def test_an_empty_passphrase_for_a_private_key_is_refused(private_key, source):
    with pytest.raises(InputError, match="empty"):
        private_key_to_bytes(private_key, passphrase="", source=source)


def test_a_passphrase_for_a_plain_key_is_refused(private_key, source):
    plain = private_key_to_bytes(private_key, passphrase=None, source=source)
    with pytest.raises(InputError, match="not under one"):
        private_key_from_bytes(plain, passphrase=PASSPHRASE)


@pytest.mark.parametrize("place", [35, 50, 70, -1])
def test_a_sealed_key_with_one_changed_bit_is_refused(sealed, place):
    damaged = bytearray(sealed)
    damaged[place] ^= 1
    with pytest.raises(InputError, match="damaged"):
        private_key_from_bytes(bytes(damaged), passphrase=PASSPHRASE)


def test_a_damaged_or_truncated_plain_key_is_refused_without_naming_the_secret(private_key, source):
    plain = private_key_to_bytes(private_key, passphrase=None, source=source)
    changed = bytearray(plain)
    changed[-1] ^= 1
    for data in (bytes(changed), plain[:-1], plain + b"\0", plain[:40], plain[:31]):
        with pytest.raises(InputError, match="damaged") as caught:
            private_key_from_bytes(data, passphrase=None)
        assert str(private_key.reveal_factors()[0]) not in str(caught.value)
    for data in (b"", plain[:30], b"x" + plain[1:], plain.replace(b" key 1", b" key 2")):
        with pytest.raises(InputError, match="version 1"):
            private_key_from_bytes(data, passphrase=None)


def test_a_truncated_sealed_key_is_refused(sealed):
    with pytest.raises(InputError, match="truncated"):
        private_key_from_bytes(sealed[:40], passphrase=PASSPHRASE)
    with pytest.raises(InputError, match="damaged"):
        private_key_from_bytes(sealed[:80], passphrase=PASSPHRASE)
