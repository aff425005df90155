"""Blinding factors: the secret n-th residues that make Paillier ciphertexts unreadable.

Two ways to make them; both satisfy `keys.Blinder`.

`PowerBlinder`: r^n mod n^2 for uniform r. Paillier's own [Paillier99]; secure if deciding n-th
residuosity is hard (the DCR assumption), and about fifteen times slower than the next.

`FixedBaseBlinder` (the default): h^s mod n^2 for a base h in the public key and a secret s of half
the modulus' bits, 1024 for a 2048-bit key [Damgard, Jurik, Nielsen, "A generalization of Paillier's
public-key system with applications to electronic voting", Int. J. Inf. Sec. 9, 2010]. The argument:
 1. h = (-x^2)^n mod n^2 for a random x. y -> y^n maps the units modulo n one to one onto the n-th
    residues modulo n^2, so it is enough to look at g = -x^2 and g^s modulo n.
 2. n = pq with p - 1 = 2ab and q - 1 = 2cd, a, b, c, d distinct large primes (`keys`). So the
    units of Jacobi symbol one form a cyclic group of order 2abcd, -1 in it is no square, and -x^2
    generates it whenever x^2 generates the squares, which key generation verifies.
 3. If s were uniform below the group's order, h^s would be a uniform n-th residue of Jacobi symbol
    one. The symbol of a ciphertext is the symbol of its blinding factor and is public, so under
    DCR such a factor hides the plaintext as well as a uniform n-th residue does.
 4. g^s with s uniform of half the modulus' length cannot be told from g^s with s uniform of full
    length if factoring such n is hard [Hastad, Schrift, Shamir, JCSS 47, 1993; Goldreich, Rosen,
    J. Cryptology 16, 2003]. This asymptotic step is what is assumed beyond DCR; a study that does
    not want it asks for `PowerBlinder`.
The moduli phe draws would not do: their p - 1 may have small factors in common, or p = 1 (mod 4).

What h^s does not hide: the key's OWNER decrypts, and then sees the n-th residue that is left. h^s
is not uniform to an owner who knows p and q, or chose h. That matters for one thing only, a power
of the owner's own ciphertext, E(u)^eta: its residue tells about eta even where u = 0. Such a
product goes to the owner only after blinding with a factor of `PowerBlinder`, uniform to all.

Known weakness: the table is read at secret places, so a process on the same machine that watches
the cache may learn about s. Parties run on machines of their own.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from gmpy2 import invert, mpz, powmod_base_list

from common.crypto.paillier.keys import PublicKey
from common.errors import LocalError
from common.privacy.randomness import RandomSource

_BYTE, _NIBBLE = 8, 4  # bits of an exponent per row of a table
# As many factors by nibbles cost what a table by bytes costs: who needs more has use for that one.
_FEW_FACTORS = 256


class FixedBase:
    """Powers of one base, by a table of base^(d * 256^i): one multiplication per exponent byte.

    For 1024-bit exponents modulo a 4096-bit number the table takes 17 MB and as long to make as
    some forty plain exponentiations. A table by nibbles takes an eighth of both, and its powers
    twice as long.
    """

    __slots__ = ("__weakref__", "_exponent_bytes", "_modulus", "_rows", "_window_bits")

    def __init__(
        self, base: mpz, *, modulus: mpz, exponent_bits: int, by_nibbles: bool = False
    ) -> None:
        self._modulus = modulus
        self._window_bits = _NIBBLE if by_nibbles else _BYTE
        self._exponent_bytes = -(-exponent_bits // _BYTE)
        self._rows = []
        for _ in range(self._exponent_bytes * _BYTE // self._window_bits):
            row = [mpz(1), base]
            for _ in range(2, 1 << self._window_bits):
                row.append(row[-1] * base % modulus)
            self._rows.append(row)
            base = row[-1] * base % modulus

    def power(self, exponent: int) -> mpz:
        """Return base^exponent, |exponent| < 2^exponent_bits; a negative one needs a unit."""
        if exponent < 0:
            return invert(self.power(-exponent), self._modulus)
        try:
            digits = exponent.to_bytes(self._exponent_bytes, "little")
        except OverflowError:
            raise LocalError(
                f"an exponent of {exponent.bit_length()} bits is longer than the table's "
                f"{self._exponent_bytes * _BYTE}"
            ) from None
        return self.power_of_digits(digits)

    def power_of_digits(self, digits: bytes) -> mpz:
        """Return base^e for e given as little-endian bytes."""
        modulus = self._modulus
        if self._window_bits == _NIBBLE:
            digits = bytes(half for byte in digits for half in (byte & 15, byte >> 4))
        result = mpz(1)
        for row, digit in zip(self._rows, digits, strict=True):
            result = result * row[digit] % modulus
        return result


class FixedBaseBlinder:
    """h^s with s of half the modulus' length. See the module's text for what is assumed.

    The first factors come from a small table; a large one is made once many are needed.
    """

    def __init__(self, public_key: PublicKey, source: RandomSource) -> None:
        self._exponent_bytes = public_key.bits // 16
        self._public_key = public_key
        self._powers: FixedBase | None = None
        self._few_left = _FEW_FACTORS
        self._source = source

    def _table(self, count: int) -> FixedBase:
        before, self._few_left = self._few_left, self._few_left - count
        if self._powers is None or before >= 0 > self._few_left:
            self._powers = _powers_of_h(self._public_key, by_nibbles=self._few_left >= 0)
        return self._powers

    def factors(self, count: int) -> list[mpz]:
        table, width = self._table(count), self._exponent_bytes
        exponents = self._source.random_bytes(count * width)
        return [
            table.power_of_digits(exponents[start : start + width])
            for start in range(0, count * width, width)
        ]


_tables: WeakValueDictionary[tuple[PublicKey, bool], FixedBase] = WeakValueDictionary()


def _powers_of_h(key: PublicKey, *, by_nibbles: bool) -> FixedBase:
    """Return the table of the key's public base; parties that share a process share it."""
    name = (key, by_nibbles)
    table = _tables.get(name)
    if table is None:
        table = _tables[name] = FixedBase(
            key.h,
            modulus=key.n_squared,
            exponent_bits=key.bits // 2,
            by_nibbles=by_nibbles,
        )
    return table


class PowerBlinder:
    """r^n for uniform units r: nothing assumed but DCR."""

    def __init__(self, public_key: PublicKey, source: RandomSource) -> None:
        self._public_key = public_key
        self._source = source

    def factors(self, count: int) -> list[mpz]:
        key = self._public_key
        roots = [key.random_unit(self._source) for _ in range(count)]
        return list(powmod_base_list(roots, key.n, key.n_squared))
