"""Paillier's cryptosystem on phe and gmpy2: keys, ciphertexts, and what can be done with them.

A ciphertext of m is (1 + n)^m * f mod n^2, where f is a secret n-th residue, the *blinding factor*
(`common.crypto.paillier.blinding` makes them). Plaintexts are integers modulo n. `encrypt` takes
any integer modulo n; `decrypt` answers with the representative in -n/2 .. n/2, so a signed value of
absolute value below 2^(plaintext_bits - 1) comes back as it was. Ciphertexts are `gmpy2.mpz`.

Rules:
- A ciphertext from outside enters through `PublicKey.ciphertexts_from_bytes`, which checks it.
- A ciphertext leaves the process freshly blinded: straight from `encrypt`, or after `rerandomise`.
  `add` and `scale` are deterministic and do not blind.
- A blinding factor is used once.
- `PrivateKey` is never printed, pickled or copied; `common.crypto.key_files` stores it.

phe holds the private key, checks it, and decrypts. Ours is what phe does not have: primes that
fixed-base blinding needs, the blinding base h, packing, and fixed-width bytes that carry h. phe's
own encryption pays a full-size r^n for every value, and draws from `random`. Tests check that each
reads what the other encrypts. It is the only GPLv3 library used, and the reason this project is
licensed GPL-3.0-only; nothing else imports it.

Secret primes are Lim-Lee primes, p = 2ab + 1 with a and b large primes. Why not any prime (which is
what phe draws): blinding with a fixed base (`common.crypto.paillier.blinding`) needs a modulus
whose squares form ONE cyclic group without small subgroups. Let n = pq with

    p - 1 = 2ab,  q - 1 = 2cd,  and a, b, c, d distinct primes of about a quarter of n's bits.

Then p = q = 3 (mod 4), gcd(p - 1, q - 1) = 2, the squares modulo n are cyclic of order abcd, and a
random square generates them except with probability below 2^-500 (2048-bit keys). Safe primes
(b = 1) would do as well and take minutes at 4096 bits; pools of half-size primes whose products are
tried in pairs [Lim, Lee, "A key recovery attack on discrete log-based schemes using a prime order
subgroup", CRYPTO 1997, section 4] take seconds. GnuPG makes its ElGamal primes in the same way.

Known weakness: the exponentiations of `decrypt` are not constant-time. Where a peer can both choose
a ciphertext and time its decryption finely, call `rerandomise` before `decrypt`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import phe
from gmpy2 import gcd, invert, is_prime, jacobi, mpz, powmod

from common.errors import InputError, LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource, below

KEY_BITS = (2048, 3072, 4096)
"""The key sizes there are. No function makes or reads a key of another size."""

_KEY_FORMAT = 1
_CIPHERTEXTS_FORMAT = 1
_DIGEST_PREFIX = 16
_HEADER = 1 + _DIGEST_PREFIX + 4
# In GMP: Baillie-PSW and 16 rounds of Miller-Rabin, which a random composite of 500 bits or more
# passes with probability far below 2^-128 [Damgard, Landrock, Pomerance, Math. Comp. 61, 1993].
_ROUNDS = 40


class Blinder(Protocol):
    """Makes blinding factors for one public key. The implementations are in blinding.py."""

    def factors(self, count: int) -> list[mpz]:
        """Make `count` fresh secret n-th residues modulo n^2, each to be used once."""


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey:
    """The modulus n and the blinding base h, an n-th residue modulo n^2.

    A holder of the public key cannot check that h was chosen well, and need not: h protects
    plaintexts from all readers except the key's owner, who can decrypt them anyway. What else is to
    be hidden from the owner must not depend on h; blinding.py says when that is.
    """

    n: mpz
    h: mpz
    n_squared: mpz = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", mpz(self.n))
        object.__setattr__(self, "h", mpz(self.h))
        object.__setattr__(self, "n_squared", self.n * self.n)
        if self.bits not in KEY_BITS:
            raise RemoteProtocolError(
                f"the Paillier key has {self.bits} bits; only keys of {_sizes()} bits are accepted"
            )
        if self.n % 2 == 0 or is_prime(self.n):
            raise RemoteProtocolError("the Paillier modulus is not a product of two odd primes")
        # h = 1 + k n is a power of 1 + n: a ciphertext blinded with it is read without any key.
        trivial = self.h % self.n in (1, self.n - 1)
        if not 1 < self.h < self.n_squared or trivial or jacobi(self.h, self.n) != 1:
            raise RemoteProtocolError(
                "the blinding base of the Paillier key is not usable: it must be invertible, "
                "of Jacobi symbol one, and neither 1 nor -1 modulo n"
            )

    @property
    def bits(self) -> int:
        return int(self.n.bit_length())

    @property
    def plaintext_bits(self) -> int:
        """Integers of absolute value below 2^(plaintext_bits - 1) survive encryption."""
        return self.bits - 1

    @property
    def ciphertext_bytes(self) -> int:
        return self.bits // 4

    @property
    def digest(self) -> bytes:
        """SHA-256 of the key's bytes: what a study pins."""
        return hashlib.sha256(self.to_bytes()).digest()

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits, digest {self.digest[:8].hex()})"

    def as_phe(self) -> phe.PaillierPublicKey:
        """Return the modulus as a key of phe, which has no blinding base."""
        return phe.PaillierPublicKey(int(self.n))

    def to_bytes(self) -> bytes:
        """Write one byte of version, two of key bits, n, h; integers big-endian, full width."""
        return b"".join(
            (
                bytes([_KEY_FORMAT]),
                self.bits.to_bytes(2, "big"),
                self.n.to_bytes(self.bits // 8, "big"),
                self.h.to_bytes(self.ciphertext_bytes, "big"),
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> PublicKey:
        """Read and check a key from outside; RemoteProtocolError if it is not usable."""
        if len(data) < 3 or data[0] != _KEY_FORMAT:
            raise RemoteProtocolError(f"this is not a Paillier public key of version {_KEY_FORMAT}")
        bits = int.from_bytes(data[1:3], "big")
        if bits not in KEY_BITS:
            raise RemoteProtocolError(
                f"the Paillier key has {bits} bits; only keys of {_sizes()} bits are accepted"
            )
        if len(data) != 3 + bits // 8 + bits // 4:
            raise RemoteProtocolError(
                f"a Paillier public key of {bits} bits takes {3 + bits // 8 + bits // 4} bytes, "
                f"not {len(data)}"
            )
        n = mpz.from_bytes(data[3 : 3 + bits // 8], "big")
        if n.bit_length() != bits:
            raise RemoteProtocolError(
                f"the Paillier key says {bits} bits and its modulus has {n.bit_length()}"
            )
        return cls(n, mpz.from_bytes(data[3 + bits // 8 :], "big"))

    def random_unit(self, source: RandomSource) -> mpz:
        while True:
            drawn = mpz(below(int(self.n), source))
            if gcd(drawn, self.n) == 1:
                return drawn

    def encrypt(self, plaintexts: Sequence[int], blinder: Blinder) -> list[mpz]:
        """Encrypt integers, each taken modulo n; the results may leave the process."""
        n, n_squared = self.n, self.n_squared
        factors = blinder.factors(len(plaintexts))
        return [
            (mpz(plaintext) % n * n + 1) * factor % n_squared
            for plaintext, factor in zip(plaintexts, factors, strict=True)
        ]

    def rerandomise(self, ciphertexts: Sequence[mpz], blinder: Blinder) -> list[mpz]:
        """Return other ciphertexts of the plaintexts, which cannot be linked to the ones given."""
        factors = blinder.factors(len(ciphertexts))
        return [c * f % self.n_squared for c, f in zip(ciphertexts, factors, strict=True)]

    def add(self, first: mpz, second: mpz) -> mpz:
        return first * second % self.n_squared

    def scale(self, ciphertext: mpz, factor: int) -> mpz:
        """Return a ciphertext of the plaintext times a known integer, which may be negative."""
        if factor < 0:  # keeps the exponent as short as the factor
            return powmod(invert(ciphertext, self.n_squared), -factor, self.n_squared)
        return powmod(ciphertext, factor, self.n_squared)

    def check_ciphertexts(self, ciphertexts: Sequence[mpz]) -> None:
        """Refuse, with RemoteProtocolError, integers that are no ciphertexts under this key."""
        product = mpz(1)
        for place, ciphertext in enumerate(ciphertexts):
            if not 0 < ciphertext < self.n_squared:
                raise RemoteProtocolError(f"ciphertext {place} is not in 1..n^2-1")
            product = product * ciphertext % self.n
        # One gcd for all: a factor shared by any of them is shared by the product.
        if gcd(product, self.n) != 1:
            place = next(i for i, c in enumerate(ciphertexts) if gcd(c, self.n) != 1)
            raise RemoteProtocolError(f"ciphertext {place} is not coprime to the key's modulus")

    def ciphertexts_to_bytes(self, ciphertexts: Sequence[mpz]) -> bytes:
        """Write a byte of version, 16 of the key's digest, 4 of count, fixed-width integers."""
        width = self.ciphertext_bytes
        header = bytes([_CIPHERTEXTS_FORMAT]) + self.digest[:_DIGEST_PREFIX]
        count = len(ciphertexts).to_bytes(4, "big")
        return header + count + b"".join(c.to_bytes(width, "big") for c in ciphertexts)

    def ciphertexts_from_bytes(self, data: bytes, expected: int) -> list[mpz]:
        """Read and check ciphertexts; RemoteProtocolError if they are not of this key."""
        if len(data) < _HEADER or data[0] != _CIPHERTEXTS_FORMAT:
            raise RemoteProtocolError(
                f"these are not Paillier ciphertexts of version {_CIPHERTEXTS_FORMAT}"
            )
        if data[1 : 1 + _DIGEST_PREFIX] != self.digest[:_DIGEST_PREFIX]:
            raise RemoteProtocolError("the ciphertexts were made under another Paillier key")
        count = int.from_bytes(data[1 + _DIGEST_PREFIX : _HEADER], "big")
        width = self.ciphertext_bytes
        if count != expected or len(data) != _HEADER + count * width:
            raise RemoteProtocolError(
                f"expected {expected} ciphertexts of {width} bytes, found {count} in "
                f"{len(data) - _HEADER} bytes"
            )
        ciphertexts = [
            mpz.from_bytes(data[start : start + width], "big")
            for start in range(_HEADER, len(data), width)
        ]
        self.check_ciphertexts(ciphertexts)
        return ciphertexts


class PrivateKey:
    """The factors of a public key. Secret: not printed, pickled, copied or compared."""

    __slots__ = ("_key", "public_key")

    def __init__(self, public_key: PublicKey, p: int, q: int) -> None:
        p, q = int(p), int(q)
        if p * q != public_key.n or p == q or not (is_prime(p, _ROUNDS) and is_prime(q, _ROUNDS)):
            raise LocalError("these are not the two prime factors of the Paillier public key")
        self.public_key = public_key
        self._key = phe.PaillierPrivateKey(public_key.as_phe(), p, q)

    def __repr__(self) -> str:
        return f"PrivateKey(secret, of {self.public_key!r})"

    def __reduce__(self) -> NoReturn:
        raise LocalError("a private key is not pickled or copied; a key file stores it")

    def reveal_factors(self) -> tuple[int, int]:
        """Return the secret factors p and q, for a key file."""
        return self._key.p, self._key.q

    def decrypt(self, ciphertexts: Sequence[mpz]) -> list[int]:
        """Decrypt checked ciphertexts under this key, with phe; plaintexts in -n/2 .. n/2."""
        n = int(self.public_key.n)
        plaintexts = [int(self._key.raw_decrypt(int(ciphertext))) for ciphertext in ciphertexts]
        return [plain - n if 2 * plain > n else plain for plain in plaintexts]

    def residues(self, roots: Sequence[mpz]) -> list[mpz]:
        """Return r^n mod n^2 of each root, a public function, by Chinese remainders.

        A third of the work: y^p mod p^2 depends on y mod p only, so r^n = (r^q)^p asks for r^q
        modulo p.
        """
        p, q = mpz(self._key.p), mpz(self._key.q)
        p_squared, q_squared = p * p, q * q
        lift = invert(p_squared, q_squared)
        result = []
        for root in roots:
            modulo_p = powmod(powmod(root, q, p), p, p_squared)
            modulo_q = powmod(powmod(root, p, q), q, q_squared)
            result.append(modulo_p + (modulo_q - modulo_p) * lift % q_squared * p_squared)
        return result


def generate_key_pair(bits: int, source: RandomSource) -> PrivateKey:
    """Make a key pair: a second or two for 2048 bits, up to a minute for 4096."""
    if bits not in KEY_BITS:
        raise InputError(f"a Paillier key has {_sizes()} bits, not {bits}; 2048 is the default")
    p, p_parts = lim_lee_prime(bits // 2, source)
    q, q_parts = lim_lee_prime(bits // 2, source)
    while p_parts & q_parts or abs(p - q) >> (bits // 2 - 100) == 0:
        q, q_parts = lim_lee_prime(bits // 2, source)
    n = p * q
    root = mpz(0)
    # A square generates all squares unless it lies in one of the four largest proper subgroups.
    while not _generates_squares(root, p, p_parts) or not _generates_squares(root, q, q_parts):
        root = mpz(below(int(n), source))
    base = powmod(n - root * root % n, n, n * n)
    return PrivateKey(PublicKey(n, base), int(p), int(q))


def random_prime(bits: int, source: RandomSource) -> mpz:
    """Draw a uniform prime among those of exactly `bits` bits whose two top bits are ones."""
    top = mpz(3) << (bits - 2)
    low_mask = (mpz(1) << (bits - 2)) - 1
    while True:
        drawn = mpz.from_bytes(source.random_bytes((bits + 7) // 8), "big")
        candidate = top | (drawn & low_mask) | 1
        if is_prime(candidate, _ROUNDS):
            return candidate


def lim_lee_prime(bits: int, source: RandomSource) -> tuple[mpz, frozenset[mpz]]:
    """Draw a prime p = 2ab + 1 of `bits` bits with its two top bits set; return also {a, b}.

    The product of two such primes has exactly 2 * `bits` bits.
    """
    larger: list[mpz] = []
    smaller: list[mpz] = []
    while True:
        larger.append(random_prime(bits - bits // 2, source))
        smaller.append(random_prime(bits // 2 - 1, source))
        # Every pair that contains a prime drawn in this turn has not been tried yet.
        fresh = [(larger[-1], b) for b in smaller] + [(a, smaller[-1]) for a in larger[:-1]]
        for a, b in fresh:
            p = 2 * a * b + 1
            if p >> (bits - 2) == 3 and is_prime(p, _ROUNDS):
                return p, frozenset((a, b))


def _generates_squares(root: mpz, prime: mpz, parts: Iterable[mpz]) -> bool:
    """Return whether root^2 generates the squares modulo prime = 2 * product(parts) + 1."""
    square = root * root % prime
    return square != 0 and all(powmod(square, (prime - 1) // (2 * r), prime) != 1 for r in parts)


def _sizes() -> str:
    return ", ".join(map(str, KEY_BITS[:-1])) + f" or {KEY_BITS[-1]}"
