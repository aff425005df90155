"""A party's keys of one sum that may miss parties, and how the others recover its masks.

A party draws one secret for a sum and deals shares of it (`recovery`). Everything that its pairwise
masks of this sum are made of follows from the secret and from what the curator was sent, so whoever
joins enough shares can take the masks of a missing party off, of this sum and of no other.

Without a hybrid agreement the secret is the X25519 key of the sum, and a mask is as secret as the
X25519 secret of two such keys. With it, the secret is the input of a KDF:

    X25519 key of the sum   HKDF(secret; "key of a sum")
    seed of a pair          HKDF(the pair's secret of the study (`agreement`); "seed of a sum")
    wrapped seed            seed XOR HKDF(secret; "wrapped seed", partner), sent to the curator
    mask of a pair          HKDF(X25519 secret of the sum's two keys || seed)

each with the plan's digest as salt. Who joins the secret of a missing party reads its seeds of this
sum from what it had wrapped, and those of no other sum (docs/proofs.md, "Owners that go missing").

A party that wraps a wrong seed can only keep the sum from finishing, which it can do anyway: the
total is then outside of its bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from common.crypto.framing import frame
from common.crypto.identities.identity import LocalParty
from common.crypto.sums.agreement import SEED_BYTES
from common.crypto.sums.masks import derived_key
from common.crypto.sums.plan import SumPlan
from common.errors import RemoteProtocolError

_ANY_KEY = X25519PrivateKey.from_private_bytes(bytes(32))  # no secret: to try public keys with


class SumKey:
    """The key of one party for one sum, from the secret whose shares it deals. Holds secrets."""

    def __init__(self, plan: SumPlan, secret: bytes) -> None:
        self._plan, self._secret = plan, secret
        raw = self._derived("parley key of a sum 1") if plan.hybrid else secret
        self._key = X25519PrivateKey.from_private_bytes(raw)
        self.public = self._key.public_key().public_bytes_raw()

    def mask_key(self, peer: bytes, *, seed: bytes, absent: Sequence[str]) -> bytes:
        """Return the key of the mask shared with the holder of a public key.

        Everyone who is absent is in it: parties told otherwise share no masks that cancel.
        """
        salt = hashlib.sha256(frame((self._plan.digest, *absent))).digest()
        version = 2 if self._plan.hybrid else 1
        info = frame((f"parley recoverable mask {version}", *sorted([self.public, peer])))
        return derived_key(_exchange(self._key, peer) + seed, salt=salt, info=info)

    def wrap(self, partner: str, seed: bytes) -> bytes:
        """Return the seed shared with a partner under this key; of a wrapped seed, the seed."""
        pad = self._derived("parley wrapped seed 1", partner)
        return bytes(a ^ b for a, b in zip(seed, pad, strict=True))

    def _derived(self, *label: str) -> bytes:
        return derived_key(self._secret, salt=self._plan.digest, info=frame(label))

    def __repr__(self) -> str:
        return "SumKey(secret)"


def seed_of_sum(plan: SumPlan, party: LocalParty, partner: str) -> bytes:
    """Return the seed that two parties share for one sum; empty without a hybrid agreement."""
    if not plan.hybrid:
        return b""
    party.seeds_with(partner)  # or there is no secret of the two but that of X25519
    info = frame(("parley seed of a sum 1",))
    return derived_key(party.agree(partner), salt=plan.digest, info=info)


def wrapped_bytes(plan: SumPlan) -> int:
    """Return how many bytes a wrapped seed has in a sum."""
    return SEED_BYTES if plan.hybrid else 0


def require_public_key(public: bytes) -> None:
    """Raise RemoteProtocolError for a public key that its partners would refuse."""
    _exchange(_ANY_KEY, public)


def own_mask_key(plan: SumPlan, name: str, seed: bytes) -> bytes:
    return derived_key(seed, salt=plan.digest, info=frame(("parley own mask 1", name)))


def _exchange(private: X25519PrivateKey, peer: bytes) -> bytes:
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:  # a point of low order: the secret would be known to all
        raise RemoteProtocolError("a party offers an X25519 key of low order") from None
