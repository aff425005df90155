"""The selector of one-share noise: E(u), u one-hot, with a proof that it is one-hot.

Multi-party Laplace mechanism [Pathak10; Su16, section III-A]: the curator draws i, encrypts u, the
one-hot vector at i, and party k multiplies its encrypted counts by E(u'_k)^eta_k, u' = pi(u), so
that exactly one share of noise is in the sum. Two things the papers leave open are settled here.

**A curator that encrypts something else.** With E(0) everywhere the sum would be exact, with other
values noise could be moved between packed cells, and no party could see it [Su16 has no defence].
So the selector carries a proof, which every party verifies before it uses it:

- each E(u_k) holds 0 or 1: a non-interactive 1-out-of-2 proof that E(u_k) or E(u_k) / (1 + n) is an
  n-th power [DamgardJurik01, section 4.2], with SHA-256 for the challenge;
- the u_k add up to 1: an n-th root of (product of all E(u_k)) / (1 + n), published.

The root tells nothing about i: K - 1 of the ciphertexts have independent randomness, and the last
one is determined by them and a uniform root. Zero-knowledge is in the random-oracle model.
Soundness needs a modulus without small factors, coprime to its totient, as `generate_key_pair`
makes them: a curator that cheats already when it makes the key is NOT detected. Distributed noise
does not depend on any of this, and is the default of sound studies.

**A curator that tells each party something else.** Each could be given its own one-hot vector,
such that no share, or several, are used. So `Selection.digest` is part of the address of the
ring's envelopes: neighbours whose selector or seed differ cannot read each other, and a product
that arrives at the curator comes from parties who all had the same.

**Who chooses pi.** The first party of the ring draws a seed and sends it to the others in sealed
envelopes; every step's permutation is derived from it. A richer agreement would buy nothing: the
permutation only has to be hidden from the curator, and a curator that colludes with ANY party knows
it however it was chosen, while parties without the curator do not know i, which is uniform, so
that u' is uniform whatever pi they choose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gmpy2 import gcd, invert, mpz, powmod

from common.crypto.framing import frame
from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import LocalParty
from common.crypto.paillier.keys import PrivateKey, PublicKey
from common.errors import RemoteProtocolError
from common.privacy.randomness import AgreedRandomSource, RandomSource, below, permutation
from common.privacy.secret import Secret

SEED_BYTES = 32
_CHALLENGE_BITS = 128
_CHALLENGE_BYTES = _CHALLENGE_BITS // 8
_VERSION = b"\x01"
_SEED_TOPIC = "permutation seed"


@dataclass(frozen=True, slots=True)
class BitProof:
    """That one ciphertext holds 0 or 1: for each of the two cases a challenge and a response."""

    challenges: tuple[int, int]
    responses: tuple[mpz, mpz]


@dataclass(frozen=True, slots=True)
class Selector:
    """The curator's message to every party before a one-share sum."""

    ciphertexts: tuple[mpz, ...]
    proofs: tuple[BitProof, ...]
    root: mpz

    def to_bytes(self, key: PublicKey) -> bytes:
        """Write a version, ciphertexts with their own header, each party's proof, the root."""
        width = key.bits // 8
        parts = [_VERSION, key.ciphertexts_to_bytes(self.ciphertexts)]
        for proof in self.proofs:
            parts += [value.to_bytes(_CHALLENGE_BYTES, "big") for value in proof.challenges]
            parts += [value.to_bytes(width, "big") for value in proof.responses]
        return b"".join([*parts, self.root.to_bytes(width, "big")])

    @classmethod
    def from_bytes(cls, data: bytes, key: PublicKey, parties: int) -> Selector:
        """Read a selector from outside; `verify` it before use."""
        width = key.bits // 8
        proof_bytes = 2 * (_CHALLENGE_BYTES + width)
        tail = parties * proof_bytes + width
        if data[:1] != _VERSION or len(data) < 1 + tail:
            raise RemoteProtocolError("this is not a noise selector of version 1")
        ciphertexts = key.ciphertexts_from_bytes(data[1 : len(data) - tail], parties)
        start = len(data) - tail
        proofs = [
            _read_proof(data[start + i * proof_bytes : start + (i + 1) * proof_bytes], width)
            for i in range(parties)
        ]
        return cls(tuple(ciphertexts), tuple(proofs), mpz.from_bytes(data[-width:], "big"))

    def verify(self, key: PublicKey, context: bytes) -> None:
        """Raise unless this is the encryption of a one-hot vector, made for this context."""
        for place, (ciphertext, proof) in enumerate(
            zip(self.ciphertexts, self.proofs, strict=True)
        ):
            if not _verify_bit(key, ciphertext, proof, frame((context, place))):
                raise RemoteProtocolError(
                    f"noise selector refused: the curator does not prove that entry {place} "
                    "is an encryption of 0 or 1; without it the sum could be exact"
                )
        product = mpz(1)
        for ciphertext in self.ciphertexts:
            product = product * ciphertext % key.n_squared
        if powmod(self.root, key.n, key.n_squared) * (1 + key.n) % key.n_squared != product:
            raise RemoteProtocolError(
                "noise selector refused: the curator does not prove that its entries add up to 1; "
                "with zeros everywhere the sum would carry no noise"
            )


def make_selector(
    key: PrivateKey, *, parties: int, context: bytes, source: RandomSource
) -> Selector:
    """Make the curator's message: a one-hot vector at a uniform place, encrypted and proved.

    The context is the digest of the sum's plan: the proof holds for this sum only.
    """
    chosen = below(parties, source)
    entries = [int(place == chosen) for place in range(parties)]
    return prove_selector(key, entries, context=context, source=source)


def prove_selector(
    key: PrivateKey, entries: Sequence[int], *, context: bytes, source: RandomSource
) -> Selector:
    """Encrypt the entries and claim that they are one-hot; a false claim does not verify."""
    public = key.public_key
    roots = [public.random_unit(source) for _ in entries]
    ciphertexts = [
        (entry * public.n + 1) * residue % public.n_squared
        for entry, residue in zip(entries, key.residues(roots), strict=True)
    ]
    proofs = [
        _prove_bit(key, (int(entry == 1), root, ciphertext), frame((context, place)), source)
        for place, (entry, root, ciphertext) in enumerate(
            zip(entries, roots, ciphertexts, strict=True)
        )
    ]
    product = mpz(1)
    for root in roots:
        product = product * root % public.n
    return Selector(tuple(ciphertexts), tuple(proofs), product)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A party's means to use one share of noise without knowing whose it is."""

    selector: bytes  # the curator's E(u) and its proof, as bytes from outside
    # Of the permutation that the parties agreed on and the curator does not know.
    seed: Secret[bytes]

    @property
    def digest(self) -> bytes:
        """A digest that is equal for two parties only if their selections are."""
        return hashlib.sha256(
            frame(("parley selection 1", self.selector, self.seed.reveal()))
        ).digest()

    def entry(self, key: PublicKey, *, context: bytes, parties: int, place: int) -> mpz:
        """Return E(u'_k) of the party at `place`; raise unless the selector is proved one-hot."""
        selector = _proved_selector(self.selector, key, parties, context)
        order = agreed_permutation(self.seed.reveal(), context=context, parties=parties)
        return selector.ciphertexts[order[place]]


@lru_cache(maxsize=1)
def _proved_selector(data: bytes, key: PublicKey, parties: int, context: bytes) -> Selector:
    """Read and verify a selector; parties that share a process verify the same bytes once.

    The answer depends on nothing but these public values, and a refusal is not remembered.
    """
    selector = Selector.from_bytes(data, key, parties)
    selector.verify(key, context)
    return selector


def propose_seed(
    party: LocalParty, *, study: bytes, parties: Sequence[str], source: RandomSource
) -> tuple[Secret[bytes], dict[str, bytes]]:
    """Draw the first party's seed, once in a study, and seal it for each other party."""
    seed = source.random_bytes(SEED_BYTES)
    mailbox = Mailbox(party, study=study, step=0)
    others = [name for name in parties if name != party.name]
    sealed = {name: mailbox.seal(name, topic=_SEED_TOPIC, plaintext=seed) for name in others}
    return Secret(seed), sealed


def receive_seed(
    party: LocalParty, *, study: bytes, proposer: str, envelope: bytes
) -> Secret[bytes]:
    mailbox = Mailbox(party, study=study, step=0)
    return Secret(mailbox.open(proposer, topic=_SEED_TOPIC, envelope=envelope))


def agreed_permutation(seed: bytes, *, context: bytes, parties: int) -> list[int]:
    """Derive the permutation pi of one sum from the seed: party k takes entry pi[k] of E(u)."""
    if len(seed) != SEED_BYTES:
        raise RemoteProtocolError(f"a permutation seed has {SEED_BYTES} bytes, not {len(seed)}")
    key = hashlib.sha256(frame(("parley permutation 1", seed, context))).digest()
    return permutation(parties, AgreedRandomSource(key))


def _prove_bit(
    key: PrivateKey, opening: tuple[int, mpz, mpz], context: bytes, source: RandomSource
) -> BitProof:
    """Prove the true case with the root, simulate the other [CramerDamgardSchoenmakers94]."""
    bit, root, ciphertext = opening
    public = key.public_key
    simulated_challenge = below(1 << _CHALLENGE_BITS, source)
    simulated_response, secret = public.random_unit(source), public.random_unit(source)
    commitments = [mpz(0), mpz(0)]
    commitments[bit], simulated_residue = key.residues([secret, simulated_response])
    commitments[1 - bit] = _commitment(
        public, _statements(public, ciphertext)[1 - bit], simulated_challenge, simulated_residue
    )
    whole = _challenge(public, ciphertext, commitments, context)
    challenge = whole ^ simulated_challenge
    response = secret * powmod(root, challenge, public.n) % public.n
    if bit == 0:
        return BitProof((challenge, simulated_challenge), (response, simulated_response))
    return BitProof((simulated_challenge, challenge), (simulated_response, response))


def _verify_bit(key: PublicKey, ciphertext: mpz, proof: BitProof, context: bytes) -> bool:
    if any(gcd(response, key.n) != 1 for response in proof.responses):
        return False
    commitments = [
        _commitment(key, statement, challenge, powmod(response, key.n, key.n_squared))
        for statement, challenge, response in zip(
            _statements(key, ciphertext), proof.challenges, proof.responses, strict=True
        )
    ]
    whole = _challenge(key, ciphertext, commitments, context)
    return whole == proof.challenges[0] ^ proof.challenges[1]


def _statements(key: PublicKey, ciphertext: mpz) -> tuple[mpz, mpz]:
    """Return what is an n-th power if the plaintext is 0, and what is one if it is 1."""
    return ciphertext, ciphertext * (1 - key.n) % key.n_squared  # (1 + n)^-1 = 1 - n


def _commitment(key: PublicKey, statement: mpz, challenge: int, residue: mpz) -> mpz:
    """Return the only one that the verifier accepts for this challenge and response^n mod n^2."""
    inverse = invert(statement, key.n_squared)
    return residue * powmod(inverse, challenge, key.n_squared) % key.n_squared


def _challenge(key: PublicKey, ciphertext: mpz, commitments: Sequence[mpz], context: bytes) -> int:
    integers = (int(value) for value in (ciphertext, *commitments))
    data = frame(("parley bit proof 1", key.digest, context, *integers))
    return int.from_bytes(hashlib.sha256(data).digest()[:_CHALLENGE_BYTES], "big")


def _read_proof(data: bytes, width: int) -> BitProof:
    split = 2 * _CHALLENGE_BYTES
    return BitProof(
        (
            int.from_bytes(data[:_CHALLENGE_BYTES], "big"),
            int.from_bytes(data[_CHALLENGE_BYTES:split], "big"),
        ),
        (
            mpz.from_bytes(data[split : split + width], "big"),
            mpz.from_bytes(data[split + width :], "big"),
        ),
    )
