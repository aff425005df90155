"""A secret under a passphrase: it opens with it, and not if a byte of anything was changed."""

import pytest

from common.crypto.identities.passphrase import seal, unseal
from common.errors import InputError
from common.privacy.randomness import OsRandomSource

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
