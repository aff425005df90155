"""Paillier: keys, ciphertexts, homomorphisms, and what is refused."""

import copy
import pickle

import gmpy2
import phe
import pytest
from gmpy2 import mpz, powmod
from hypothesis import given, settings
from hypothesis import strategies as st

from common.crypto.paillier.keys import (
    KEY_BITS,
    PrivateKey,
    PublicKey,
    generate_key_pair,
    lim_lee_prime,
)
from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource
from tests.harness.vectors import negative

LARGEST = (1 << 2046) - 1
plaintexts = st.sampled_from([0, 1, -1, LARGEST, -LARGEST]) | st.integers(-LARGEST, LARGEST)


def test_a_generated_key_has_the_structure_that_blinding_needs(private_key, public_key):
    p, q = private_key.reveal_factors()
    assert public_key.n == p * q
    assert public_key.bits == 2048
    assert p % 4 == q % 4 == 3
    assert gmpy2.gcd(p - 1, q - 1) == 2
    assert gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1
    for prime in (p, q):
        # No factor of (prime - 1) / 2 is small: gcd with a primorial finds none.
        assert gmpy2.gcd((prime - 1) // 2, gmpy2.primorial(100_000)) == 1


def test_the_blinding_base_is_an_nth_residue_whose_root_is_no_square(private_key, public_key):
    p, q = private_key.reveal_factors()
    assert gmpy2.powmod(public_key.h, (p - 1) * (q - 1), public_key.n_squared) == 1
    assert gmpy2.legendre(public_key.h % p, p) == gmpy2.legendre(public_key.h % q, q) == -1


@pytest.mark.parametrize("bits", [0, 512, 1024, 2047, 8192])
def test_key_sizes_out_of_the_list_are_refused(bits):
    with pytest.raises(InputError, match=f"2048, 3072 or 4096 bits, not {bits}"):
        generate_key_pair(bits, SeededRandomSource(1))


@pytest.mark.slow
@pytest.mark.parametrize("bits", KEY_BITS)
def test_every_key_size_works(bits):
    key = generate_key_pair(bits, SeededRandomSource(bits))
    assert key.public_key.bits == bits
    largest = (1 << (key.public_key.plaintext_bits - 1)) - 1
    ones = _Ones()
    assert key.decrypt(key.public_key.encrypt([largest, -largest], ones)) == [largest, -largest]
    assert PublicKey.from_bytes(key.public_key.to_bytes()) == key.public_key


def test_a_public_key_comes_back_from_its_bytes(public_key):
    again = PublicKey.from_bytes(public_key.to_bytes())
    assert again == public_key
    assert again.digest == public_key.digest
    assert len(public_key.to_bytes()) == 3 + 256 + 512


@pytest.mark.parametrize("vector", negative("public_keys"))
def test_a_bad_public_key_is_refused_with_its_cause(vector):
    with pytest.raises(RemoteProtocolError, match=vector["cause"]):
        PublicKey.from_bytes(bytes.fromhex(vector["key"]))


def test_a_512_bit_modulus_cannot_become_a_key():
    with pytest.raises(RemoteProtocolError, match="512 bits; only keys of"):
        PublicKey(n=(mpz(1) << 511) + 1, h=mpz(4))


def test_a_prime_modulus_cannot_become_a_key():
    prime = gmpy2.next_prime(mpz(3) << 2046)
    with pytest.raises(RemoteProtocolError, match="two odd primes"):
        PublicKey(n=prime, h=mpz(4))


def test_wrong_factors_are_refused(private_key, public_key):
    p, q = private_key.reveal_factors()
    for wrong in ((p, q + 2), (1, p * q), (p, p)):
        with pytest.raises(LocalError, match="prime factors"):
            PrivateKey(public_key, *wrong)


def test_a_private_key_is_never_shown_pickled_or_copied(private_key):
    p, q = private_key.reveal_factors()
    shown = f"{private_key!r} {private_key!s} {[private_key]}"
    for secret in (p, q):
        assert str(secret)[:20] not in shown
        assert hex(secret)[2:22] not in shown
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LocalError, match="not pickled or copied"):
            copying(private_key)
    assert not hasattr(private_key, "__dict__")


def test_a_public_key_can_be_sent_to_another_process(public_key):
    assert pickle.loads(pickle.dumps(public_key)) == public_key  # noqa: S301  our own bytes


class _Ones:
    """No blinding at all: the arithmetic without its protection."""

    def factors(self, count):
        return [mpz(1)] * count


@settings(max_examples=25, deadline=None)
@given(values=st.lists(plaintexts, max_size=4))
def test_what_is_encrypted_is_decrypted(private_key, public_key, blinder, values):
    assert private_key.decrypt(public_key.encrypt(values, blinder)) == values


@settings(max_examples=25, deadline=None)
@given(first=plaintexts, second=plaintexts, factor=st.integers(-(1 << 64), 1 << 64))
def test_sums_and_multiples_of_ciphertexts_are_those_of_plaintexts_modulo_n(
    private_key, public_key, blinder, first, second, factor
):
    n = public_key.n
    a, b = public_key.encrypt([first, second], blinder)
    results = private_key.decrypt(
        [
            public_key.add(a, b),
            public_key.scale(a, factor),
            public_key.scale(a, factor % n),
        ]
    )
    expected = [first + second, first * factor, first * factor]
    assert [result % n for result in results] == [value % n for value in expected]
    assert all(2 * abs(result) <= n for result in results)


@settings(max_examples=10, deadline=None)
@given(values=st.lists(plaintexts, min_size=1, max_size=3))
def test_decryption_is_what_the_definition_says(private_key, public_key, blinder, values):
    p, q = private_key.reveal_factors()
    ciphertexts = public_key.encrypt(values, blinder)
    assert private_key.decrypt(ciphertexts) == values
    # By definition: c^phi mod n^2 is 1 + m phi n.
    phi, n = (p - 1) * (q - 1), public_key.n
    powers = [powmod(c, phi, public_key.n_squared) for c in ciphertexts]
    assert [(power - 1) // n * gmpy2.invert(phi, n) % n for power in powers] == [
        value % n for value in values
    ]


def test_we_decrypt_what_phe_encrypts(private_key, public_key):
    theirs = public_key.as_phe()
    assert theirs == phe.PaillierPublicKey(int(public_key.n))
    assert private_key.decrypt([mpz(theirs.raw_encrypt(value)) for value in (0, 5, 10**9)]) == [
        0,
        5,
        10**9,
    ]


def test_the_keys_owner_finds_the_same_residues_as_everybody(private_key, public_key):
    source = SeededRandomSource("residues")
    roots = [mpz(1), public_key.n - 1, *(public_key.random_unit(source) for _ in range(5))]
    expected = [powmod(root, public_key.n, public_key.n_squared) for root in roots]
    assert private_key.residues(roots) == expected


def test_phe_reads_what_we_encrypt(private_key, public_key, blinder):
    theirs = phe.PaillierPrivateKey(public_key.as_phe(), *private_key.reveal_factors())
    (ciphertext,) = public_key.encrypt([-7], blinder)
    assert theirs.decrypt(phe.EncryptedNumber(public_key.as_phe(), int(ciphertext))) == -7
    assert private_key.decrypt([]) == []


def test_equal_plaintexts_have_different_ciphertexts(public_key, blinder):
    first, second = public_key.encrypt([7, 7], blinder)
    assert first != second


def test_a_rerandomised_ciphertext_differs_and_says_the_same(private_key, public_key, blinder):
    (ciphertext,) = public_key.encrypt([-12], blinder)
    (fresh,) = public_key.rerandomise([ciphertext], blinder)
    assert fresh != ciphertext
    assert private_key.decrypt([fresh]) == [-12]


def test_ciphertexts_come_back_from_their_bytes(public_key, blinder):
    ciphertexts = [*public_key.encrypt([1, -2, 3], blinder), mpz(1)]
    data = public_key.ciphertexts_to_bytes(ciphertexts)
    assert len(data) == 21 + 4 * public_key.ciphertext_bytes
    assert public_key.ciphertexts_from_bytes(data, expected=4) == ciphertexts


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda data: data[:20], "version 1"),
        (lambda data: b"\x00" + data[1:], "version 1"),
        (lambda data: data[:5] + bytes([data[5] ^ 1]) + data[6:], "another Paillier key"),
        (lambda data: data[:-1], "expected 2 ciphertexts of 512 bytes, found 2 in 1023 bytes"),
        (lambda data: data + bytes(512), "found 2 in 1536 bytes"),
        (lambda data: data[:17] + b"\0\0\0\x01" + data[21:533], "found 1"),
    ],
    ids=["header", "version", "key", "short", "long", "count"],
)
def test_bad_bytes_are_refused_with_their_cause(public_key, blinder, change, cause):
    data = public_key.ciphertexts_to_bytes(public_key.encrypt([1, 2], blinder))
    with pytest.raises(RemoteProtocolError, match=cause):
        public_key.ciphertexts_from_bytes(change(data), expected=2)


def test_an_integer_that_is_no_ciphertext_is_refused_and_named(private_key, public_key, blinder):
    good = public_key.encrypt([1, 2], blinder)
    n = public_key.n
    p, _ = private_key.reveal_factors()
    for bad, cause in [
        (mpz(0), "is not in 1"),
        (public_key.n_squared, "is not in 1"),
        ((mpz(1) << 4096) - 1, "is not in 1"),
        (n, "not coprime"),
        (5 * n, "not coprime"),
        (mpz(p), "not coprime"),
    ]:
        data = public_key.ciphertexts_to_bytes([*good, bad])
        with pytest.raises(
            RemoteProtocolError, match=f"ciphertext 2 .*{cause}|ciphertext 2 {cause}"
        ):
            public_key.ciphertexts_from_bytes(data, expected=3)


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=600))
def test_arbitrary_bytes_are_refused_and_nothing_else_happens(public_key, data):
    with pytest.raises(RemoteProtocolError):
        public_key.ciphertexts_from_bytes(data, expected=1)
    with pytest.raises(RemoteProtocolError):
        PublicKey.from_bytes(data)


@pytest.mark.parametrize("bits", [64, 128])
def test_lim_lee_primes_are_twice_two_primes_plus_one(bits):
    for seed in range(5):
        p, parts = lim_lee_prime(bits, SeededRandomSource(seed))
        assert gmpy2.is_prime(p)
        assert p >> (bits - 2) == 3
        a, b = parts
        assert p == 2 * a * b + 1
        assert gmpy2.is_prime(a)
        assert gmpy2.is_prime(b)
