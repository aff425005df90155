"""The private key at rest."""

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
def test_a_stored_key_comes_back(private_key, passphrase, source):
    stored = keyfile.to_bytes(private_key, passphrase=passphrase, source=source)
    loaded = keyfile.from_bytes(stored, passphrase=passphrase)
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
