"""The private key at rest."""

import stat

import pytest

from common.crypto.paillier import key_file as keyfile
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource

PASSPHRASE = "correct horse battery staple"


@pytest.fixture
def source():
    return SeededRandomSource("key files")


@pytest.fixture(scope="module")
def sealed(private_key):
    return keyfile.to_bytes(
        private_key, passphrase=PASSPHRASE, source=SeededRandomSource("one sealed key")
    )


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_a_saved_key_comes_back_from_a_file_of_mode_0600(tmp_path, private_key, passphrase, source):
    path = tmp_path / "paillier.key"
    keyfile.save(path, private_key, passphrase=passphrase, source=source)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = keyfile.load(path, passphrase=passphrase)
    assert loaded.reveal_factors() == private_key.reveal_factors()
    assert loaded.public_key == private_key.public_key


def test_a_sealed_key_shows_nothing_of_the_secret(private_key, sealed):
    for factor in private_key.reveal_factors():
        assert factor.to_bytes(128, "big")[:16] not in sealed
    assert private_key.public_key.to_bytes()[3:40] not in sealed


def test_sealing_twice_gives_different_bytes(private_key, sealed, source):
    assert keyfile.to_bytes(private_key, passphrase=PASSPHRASE, source=source) != sealed


def test_a_wrong_passphrase_is_refused(sealed):
    with pytest.raises(InputError, match="passphrase is wrong"):
        keyfile.from_bytes(sealed, passphrase="incorrect horse")


def test_a_missing_passphrase_is_asked_for(sealed):
    with pytest.raises(InputError, match="under a passphrase"):
        keyfile.from_bytes(sealed, passphrase=None)


def test_an_empty_passphrase_is_refused(private_key, source):
    with pytest.raises(InputError, match="empty"):
        keyfile.to_bytes(private_key, passphrase="", source=source)


def test_a_passphrase_for_a_plain_key_is_refused(private_key, source):
    plain = keyfile.to_bytes(private_key, passphrase=None, source=source)
    with pytest.raises(InputError, match="not under one"):
        keyfile.from_bytes(plain, passphrase=PASSPHRASE)


@pytest.mark.parametrize("place", [35, 50, 70, -1])
def test_a_sealed_key_with_one_changed_bit_is_refused(sealed, place):
    damaged = bytearray(sealed)
    damaged[place] ^= 1
    with pytest.raises(InputError, match="damaged"):
        keyfile.from_bytes(bytes(damaged), passphrase=PASSPHRASE)


def test_a_damaged_or_truncated_plain_key_is_refused_without_naming_the_secret(private_key, source):
    plain = keyfile.to_bytes(private_key, passphrase=None, source=source)
    changed = bytearray(plain)
    changed[-1] ^= 1
    for data in (bytes(changed), plain[:-1], plain + b"\0", plain[:40], plain[:31]):
        with pytest.raises(InputError, match="damaged") as caught:
            keyfile.from_bytes(data, passphrase=None)
        assert str(private_key.reveal_factors()[0]) not in str(caught.value)
    for data in (b"", plain[:30], b"x" + plain[1:], plain.replace(b" key 1", b" key 2")):
        with pytest.raises(InputError, match="version 1"):
            keyfile.from_bytes(data, passphrase=None)


def test_a_truncated_sealed_key_is_refused(sealed):
    with pytest.raises(InputError, match="truncated"):
        keyfile.from_bytes(sealed[:40], passphrase=PASSPHRASE)
    with pytest.raises(InputError, match="damaged"):
        keyfile.from_bytes(sealed[:80], passphrase=PASSPHRASE)


def test_an_existing_file_is_never_overwritten(tmp_path, private_key, source):
    path = tmp_path / "paillier.key"
    path.write_text("something dear")
    with pytest.raises(InputError, match="cannot make"):
        keyfile.save(path, private_key, passphrase=None, source=source)
    assert path.read_text() == "something dear"


def test_a_key_file_that_others_can_read_is_refused(tmp_path, private_key, source):
    path = tmp_path / "paillier.key"
    keyfile.save(path, private_key, passphrase=None, source=source)
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        keyfile.load(path, passphrase=None)


def test_a_missing_key_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.key"):
        keyfile.load(tmp_path / "nowhere.key", passphrase=None)


def test_a_damaged_key_file_is_named(tmp_path):
    path = tmp_path / "paillier.key"
    path.write_bytes(b"parley")
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"paillier\.key"):
        keyfile.load(path, passphrase=None)


def test_a_write_that_fails_leaves_no_half_key(tmp_path, private_key, source, monkeypatch):
    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    path = tmp_path / "paillier.key"
    with pytest.raises(InputError, match="No space left"):
        keyfile.save(path, private_key, passphrase=None, source=source)
    assert not path.exists()
