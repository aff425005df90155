import copy
import pickle

import pytest

from common.crypto.identities.identity import Identity, PublicIdentity, normal_fingerprint
from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.randomness import OsRandomSource, SeededRandomSource

ADA = Identity.generate(SeededRandomSource("ada"))
BEN = Identity.generate(SeededRandomSource("ben"))


def test_secret_bytes_bring_the_same_identity_back():
    again = Identity(ADA.to_secret_bytes())
    assert again.public == ADA.public
    assert ADA.public.signed(b"words", signature=again.sign(b"words"))


def test_new_identities_differ():
    source = OsRandomSource()
    assert Identity.generate(source).public != Identity.generate(source).public


def test_both_sides_agree_on_one_secret_and_others_on_another():
    eve = Identity.generate(SeededRandomSource("eve"))
    assert ADA.agree(BEN.public) == BEN.agree(ADA.public)
    assert ADA.agree(BEN.public) != eve.agree(BEN.public)


def test_a_signature_holds_for_its_words_and_its_signer_only():
    signature = ADA.sign(b"words")
    for public, words in ((ADA.public, b"sword"), (BEN.public, b"words")):
        assert not public.signed(words, signature=signature)


def test_a_fingerprint_is_eight_groups_of_four_speakable_characters():
    groups = ADA.public.fingerprint.split("-")
    assert [len(group) for group in groups] == [4] * 8
    assert not set("".join(groups)) & set("ILOU")


def test_a_fingerprint_survives_being_typed_by_people():
    typed = ADA.public.fingerprint.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert normal_fingerprint(typed) == ADA.public.fingerprint


def test_every_public_key_is_in_the_fingerprint():
    for position in (5, 40, 70, 97):  # one byte of each of the four keys
        changed = bytearray(ADA.public.encoded)
        changed[position] ^= 1
        assert PublicIdentity(bytes(changed)).fingerprint != ADA.public.fingerprint


@pytest.mark.parametrize("text", ["", "ABCD", "U" * 32, "0" * 33])
def test_what_is_no_fingerprint_is_said_so(text):
    with pytest.raises(InputError, match="not a fingerprint"):
        normal_fingerprint(text)


@pytest.mark.parametrize(
    "encoded", [b"", ADA.public.encoded[:-1], b"\x02" + ADA.public.encoded[1:]]
)
def test_a_malformed_public_identity_is_refused(encoded):
    with pytest.raises(InputError, match="not a public identity"):
        PublicIdentity(encoded)


def test_a_public_identity_with_an_impossible_mlkem_key_is_refused():
    with pytest.raises(InputError, match="ML-KEM"):
        PublicIdentity(ADA.public.encoded[:97] + b"\xff" * 1184)


def test_a_malformed_secret_is_refused_without_showing_it():
    with pytest.raises(InputError, match="not an identity key") as caught:
        Identity(b"\x01" + b"hush" * 10)
    assert "hush" not in str(caught.value)


def test_an_agreement_key_of_low_order_is_refused():
    encoded = ADA.public.encoded
    weak = PublicIdentity(encoded[:33] + bytes(32) + encoded[65:])
    with pytest.raises(RemoteProtocolError, match="low order"):
        BEN.agree(weak)


def test_secret_keys_are_neither_printed_nor_pickled_nor_copied():
    secret = ADA.to_secret_bytes()
    assert repr(ADA) == f"Identity({ADA.public.fingerprint})"
    assert secret.hex()[2:40] not in repr(ADA)
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(LocalError, match="not pickled"):
            attempt(ADA)
