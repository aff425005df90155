"""Boxes of key shares, and how the others judge a box that does not open.

A party deals shares of its secrets in boxes, one for each partner (`recovery`). A box holds an
X25519 key that is used for this box alone, two shares under AES-256-GCM, and the dealer's Ed25519
signature over both, the sum, the two identities and the dealer's public key of the sum.

The key of the cipher follows from the box's own key and the receiver's pinned key. The dealer
computes it with the secret of the box's key, the receiver with the secret of its pinned key: one
number, so a box opens for both of them or for neither. In a study with a hybrid agreement the key
of the cipher also follows from the seed that the receiver drew for this dealer before the first
step, signed, and sealed under ML-KEM-768 (`agreement`).

**The dispute.** A receiver that cannot open a signed box signs that it cannot. The dealer answers
with the secret of that box's key and, in a hybrid study, the receiver's seed with its signature.
Now the curator and every party can do what the receiver did: if the box opens to two shares, the
receiver is at fault, and otherwise the dealer is.

**Claim.** An honest party is never at fault, and a dispute shows nothing that the curator and t
colluding parties did not know (docs/proofs.md, "Owners that go missing").

**What follows.** The party at fault leaves. Without a receiver the sum goes on as without any
missing party. Without a dealer it may have too few shares of the dealer's key to finish, so the
step is opened again, as another sum with other keys and masks; docs/proofs.md shows that at most
one of the two is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from common.crypto.framing import frame
from common.crypto.identities.identity import (
    SIGNATURE_BYTES,
    BoxSeeds,
    Identity,
    PublicIdentity,
)
from common.crypto.sums.agreement import SEED_BYTES, is_drawn
from common.crypto.sums.masks import derived_key, partners
from common.crypto.sums.plan import SumPlan
from common.crypto.sums.shamir import SHARE_BYTES, is_share
from common.errors import RemoteProtocolError

KEY_BYTES = 32
_SEALED_BYTES = KEY_BYTES + 2 * SHARE_BYTES + 16
BOX_BYTES = _SEALED_BYTES + SIGNATURE_BYTES
HYBRID_ANSWER_BYTES = KEY_BYTES + SEED_BYTES + SIGNATURE_BYTES
_NONCE = bytes(12)  # a box key seals one box


@dataclass(frozen=True, slots=True)
class BoxRoute:
    """From which dealer to which receiver a box goes, and in which sum."""

    plan: SumPlan
    identities: Mapping[str, PublicIdentity]
    public: bytes  # the dealer's key of the sum
    _: KW_ONLY
    dealer: str
    receiver: str

    @property
    def ends(self) -> tuple[PublicIdentity, PublicIdentity]:
        return self.identities[self.dealer], self.identities[self.receiver]

    def seal(
        self,
        shares: Sequence[bytes],
        *,
        secret: bytes,
        signer: Identity,
        seeds: BoxSeeds | None = None,
    ) -> bytes:
        """Return the box with these two shares; `secret` is of the box's own key."""
        ephemeral = X25519PrivateKey.from_private_bytes(secret)
        key = ephemeral.public_key().public_bytes_raw()
        seed = b"" if seeds is None else seeds.sealing
        cipher = self._cipher(key, _agreed(ephemeral, self.ends[1].agreement_key), seed)
        sealed = key + cipher.encrypt(_NONCE, b"".join(shares), self.public)
        return sealed + signer.sign(self._statement("share box", sealed))

    def require_signed(self, box: bytes) -> None:
        """Raise RemoteProtocolError unless the dealer signed the box."""
        statement = self._statement("share box", box[:_SEALED_BYTES])
        if not self.ends[0].signed(statement, signature=box[_SEALED_BYTES:]):
            raise RemoteProtocolError(
                f"the box of key shares from {self.dealer!r} to {self.receiver!r} was changed on "
                "its way, or made for another sum: its signature is wrong"
            )

    def open(
        self, box: bytes, receiver: Identity, *, seeds: BoxSeeds | None = None
    ) -> tuple[bytes, bytes] | None:
        """Return the shares in a signed box; None if it does not open."""
        try:
            agreed = receiver.exchange(X25519PublicKey.from_public_bytes(box[:KEY_BYTES]))
        except ValueError:  # a point of low order
            return None
        return self._shares(box, agreed, b"" if seeds is None else seeds.opening)

    def accuse(self, box: bytes, receiver: Identity) -> bytes:
        """Sign that this box does not open."""
        return receiver.sign(self._statement("refused box", box))

    def require_accused(self, box: bytes, *, signature: bytes) -> None:
        """Raise RemoteProtocolError unless the receiver signed that this box does not open."""
        if not self.ends[1].signed(self._statement("refused box", box), signature=signature):
            raise RemoteProtocolError(
                f"{self.receiver!r} did not sign that this box of {self.dealer!r} does not open"
            )

    def at_fault(self, box: bytes, *, secret: bytes) -> str:
        """Return who is at fault, if the dealer answers a dispute about a box with this secret."""
        if len(secret) != (HYBRID_ANSWER_BYTES if self.plan.hybrid else KEY_BYTES):
            return self.dealer
        ephemeral = X25519PrivateKey.from_private_bytes(secret[:KEY_BYTES])
        if ephemeral.public_key().public_bytes_raw() != box[:KEY_BYTES]:
            return self.dealer
        seed, signature = secret[KEY_BYTES:-SIGNATURE_BYTES], secret[-SIGNATURE_BYTES:]
        dealer, receiver = self.ends
        if self.plan.hybrid and not is_drawn(
            self.plan.study, receiver, dealer, seed=seed, signature=signature
        ):
            return self.dealer
        agreed = _agreed(ephemeral, receiver.agreement_key)
        opens = self._shares(box, agreed, seed if self.plan.hybrid else b"") is not None
        return self.receiver if opens else self.dealer

    def _shares(self, box: bytes, agreed: bytes, seed: bytes) -> tuple[bytes, bytes] | None:
        cipher = self._cipher(box[:KEY_BYTES], agreed, seed)
        try:
            shares = cipher.decrypt(_NONCE, box[KEY_BYTES:_SEALED_BYTES], self.public)
        except InvalidTag:
            return None
        first, second = shares[:SHARE_BYTES], shares[SHARE_BYTES:]
        return (first, second) if is_share(first) and is_share(second) else None

    def _cipher(self, key: bytes, agreed: bytes, seed: bytes) -> AESGCM:
        version = 3 if self.plan.hybrid else 2
        info = frame((f"parley share box {version}", *(end.encoded for end in self.ends), key))
        return AESGCM(derived_key(agreed + seed, salt=self.plan.digest, info=info))

    def _statement(self, what: str, content: bytes) -> bytes:
        ends = (end.encoded for end in self.ends)
        return frame((f"parley {what} 2", self.plan.digest, *ends, self.public, content))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """A box that its receiver could not open, for everyone to judge."""

    dealer: str
    receiver: str
    evidence: bytes  # the dealer's public key of the sum, and the box
    signature: bytes  # the receiver's accusation
    # The dealer's answer: of the box's own key; in a hybrid study with the seed and its signature.
    secret: bytes | None = None

    def at_fault(self, plan: SumPlan, identities: Mapping[str, PublicIdentity]) -> str:
        """Return who is at fault; RemoteProtocolError unless both signed what they claim."""
        public, box = self.evidence[:KEY_BYTES], self.evidence[KEY_BYTES:]
        if not {self.dealer, self.receiver} <= set(plan.parties) or len(box) != BOX_BYTES:
            raise RemoteProtocolError("a dispute is about a box between two parties of the sum")
        route = BoxRoute(plan, identities, public, dealer=self.dealer, receiver=self.receiver)
        route.require_signed(box)
        route.require_accused(box, signature=self.signature)
        return route.at_fault(box, secret=self.secret or b"")


def check_begun_again(plan: SumPlan, *, may_miss: int) -> None:
    """Raise RemoteProtocolError unless a sum may be begun again with this plan.

    `may_miss` is that of the study. docs/proofs.md needs this condition where parties have few
    partners; only a study of more than 16 colluders and missing parties can fail it.
    """
    parties = len(plan.parties)
    holders = 1 + len(
        partners(0, parties=parties, colluders=plan.colluders, may_miss=plan.may_miss)
    )
    if holders < parties and holders <= 2 * (plan.colluders + may_miss):
        raise RemoteProtocolError(f"the sum of step {plan.step} cannot be begun again safely")


def _agreed(private: X25519PrivateKey, peer: X25519PublicKey) -> bytes:
    try:
        return private.exchange(peer)
    except ValueError:  # a point of low order: the secret would be known to all
        raise RemoteProtocolError("a party's identity has an X25519 key of low order") from None
