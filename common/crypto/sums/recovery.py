"""Masked sums that do without up to d parties, whenever these go missing [Bonawitz17; Bell20].

A sum takes four rounds. Everything that is kept or revealed belongs to this one sum.

1. Keys. Each party draws the seed of a mask of its own and a key for this sum (`sum_keys`). It
   deals Shamir shares of both to its holders: its partners in the mask graph, and itself. Each
   partner's two shares travel in a signed box that only the two can open, bound to the public key.
   `boxes` says how a box that does not open is judged. In a study with a hybrid agreement, keys of
   masks and boxes also rest on seeds that were exchanged under ML-KEM-768, and the party sends the
   curator its seeds of this sum, wrapped under its key.
2. Words. Who dealt no keys is left out. Each of the others sends counts + share of noise + its own
   mask +- a mask for each partner that is there.
3. List. The curator publishes who is missing. A party signs one list for a sum, ever.
4. Masks. A party that sees its list signed by all but d of its holders reveals one share of each
   holder: of the own mask of a holder that is in the sum, of the key of one that is missing; never
   both. The curator takes the own masks and the missing parties' masks off, and has the sum.

Every holder but d is needed to open a secret, and to confirm a list. With n holders that is n - d.

**Claim.** A curator that lies as it likes, with t of the K parties, learns about the others' words
the total over ONE list with at most d missing, or nothing. So K - d - t honest shares are in it,
which is the whole noise.

A party's own mask or its key becomes known only if n - d of its holders reveal it. At most t of
them collude, so at least one of those who revealed is honest, had the list confirmed, and put the
party where it is. Call a party that did not collude known if its own mask or its key is known.

*Up to 2h + 1 parties: each holds shares of each,* n = K, and K > t + 2d. Two confirmed
lists have K - d signers each, so at least K - 2d > t in common, one of them honest; it signed one
list. So all honest parties reveal for one list. Those in it have their own masks opened, those
missing their keys, and none both. Masks of pairs that are both in it stay secret, and honest
parties all share one: their words are uniform among those of the same total (`masks`).

*More parties: a party's holders are the h next on either side and itself,* n = 2h + 1, and
h > 2 (t + d). Let two honest parties at a distance x have confirmed different lists. Their
2h + 1 + x holders contain two sets of n - d signers with at most t in common: so
x >= 2h + 1 - 2d - t. Hence honest parties closer than that, which reveal, have the same list (*).
(a) All who revealed a share of one party have the same list: at least n - d - t honest ones among n
places in a row leave gaps of at most d + t + 1 <= h, and (*) goes from one to the next. Call it the
party's list. (b) Partners that are both known have the same list: of the h + 1 or more holders that
they have in common, all but d + t revealed a share of the one, and all but d + t of the other; as
h > 2 (t + d), some honest holder revealed both, and it has one list. (c) In the same way no party
has both its own mask and its key known: an honest holder would have revealed both.
Now take honest parties whose keys stay secret, connected by masks: what is known of their words is
their total if all of their own masks are known, and nothing otherwise. In the first case they have
one list, by (b), and are in it. A neighbour of theirs that is not among them colludes, or its key
is known, so that it is missing on the same list: at most t + d neighbours. Without any t + d < 2h
parties the graph is connected (`masks`), so they are all honest parties on the list.

What a liar can do is to keep the sum from finishing, or to name d parties as missing that are
there. A party that did not see its words counted has paid for them all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.crypto.identities.identity import (
    SIGNATURE_BYTES,
    BoxSeeds,
    LocalParty,
    PublicIdentity,
)
from common.crypto.sums.boxes import BOX_BYTES, KEY_BYTES, BoxRoute, Dispute
from common.crypto.sums.masks import PairwiseMasks, partners
from common.crypto.sums.missing_lists import (
    check_missing,
    in_order,
    list_statement,
    names_of,
    require_signature,
)
from common.crypto.sums.plan import SumPlan, check_values, draw_noise
from common.crypto.sums.shamir import SECRET_BYTES, SHARE_BYTES, join, split
from common.crypto.sums.sum_keys import (
    SumKey,
    own_mask_key,
    require_public_key,
    seed_of_sum,
    wrapped_bytes,
)
from common.crypto.sums.words import as_total, read_words, word_chunks
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource

_NO_SIGNATURE = bytes(SIGNATURE_BYTES)


def holders_of(plan: SumPlan, name: str) -> tuple[str, ...]:
    """Return the holders of a party's secrets: its partners and itself, in order."""
    position = plan.place_of(name)
    places = partners(
        position, parties=len(plan.parties), colluders=plan.colluders, may_miss=plan.may_miss
    )
    return tuple(plan.parties[place] for place in sorted([position, *places]))


def threshold_of(plan: SumPlan, name: str) -> int:
    """Return how many holders open a party's secret or confirm its list: all but d."""
    return len(holders_of(plan, name)) - plan.may_miss


class RecoverableParty:
    """One party of one sum. Each round once, in order; holds secrets."""

    def __init__(self, plan: SumPlan, party: LocalParty, *, source: RandomSource) -> None:
        """Draw the secrets of this sum and deal their shares."""
        self._plan, self._party, self._name = plan, party, party.name
        self._holders = holders_of(plan, party.name)
        self._partners = tuple(name for name in self._holders if name != party.name)
        self._seed = source.random_bytes(SECRET_BYTES)
        secret = source.random_bytes(SECRET_BYTES)
        self._key = SumKey(plan, secret)
        threshold = threshold_of(plan, party.name)
        dealt = [
            split(value, holders=len(self._holders), threshold=threshold, source=source)
            for value in (self._seed, secret)
        ]
        self._dealt = {
            holder: (of_seed, key)
            for holder, of_seed, key in zip(self._holders, *dealt, strict=True)
        }
        self._box_secrets = {name: source.random_bytes(SECRET_BYTES) for name in self._partners}
        self._without_keys: tuple[str, ...] | None = None  # who dealt none
        self._keys_of: dict[str, bytes] = {}
        self._shares_of: dict[str, tuple[bytes, bytes]] = {}
        self._absent: tuple[str, ...] | None = None  # those who dealt no keys, once words are made
        self._missing: tuple[str, ...] | None = None
        self._revealed = False

    def offer(self) -> bytes:
        """Round 1: the public key of this sum, a box for each partner, in order; wrapped seeds."""
        boxes = b"".join(map(self._dealt_box, self._partners))
        if not self._plan.hybrid:
            return self._key.public + boxes
        wrapped = (self._key.wrap(name, self._seed_with(name)) for name in self._partners)
        return self._key.public + boxes + b"".join(wrapped)

    def take_boxes(self, relayed: bytes, absent: Sequence[str]) -> tuple[str, bytes] | None:
        """Open the boxes of the partners that are there; the absent ones dealt no keys.

        Return whose signed box does not open, with this party's signature; None if all do.
        """
        self._check_missing(absent)
        keys, dealt = dict[str, bytes](), dict[str, tuple[bytes, bytes]]()
        for name, (public, box) in self._cut_boxes(relayed, absent).items():
            route = self._from(name, public)
            shares = route.open(box, self._party.identity, seeds=self._box_seeds(name))
            if shares is None:
                return name, route.accuse(box, self._party.identity)
            keys[name], dealt[name] = public, shares
        self._without_keys, self._keys_of, self._shares_of = tuple(absent), keys, dealt
        return None

    def open_box(self, receiver: str, signature: bytes) -> bytes:
        """Return what opens a box, for its receiver that signed that it does not open."""
        if receiver not in self._partners:
            raise RemoteProtocolError(f"{receiver!r} was dealt no box by {self._name!r}")
        self._to(receiver).require_accused(self._dealt_box(receiver), signature=signature)
        seeds, secret = self._box_seeds(receiver), self._box_secrets[receiver]
        return secret if seeds is None else secret + seeds.sealing + seeds.signature

    def contribute(self, values: NDArray[np.int64], *, source: RandomSource) -> list[bytes]:
        """Round 2: the masked words, chunk after chunk; once, when all boxes are open."""
        if self._absent is not None or self._without_keys is None:
            raise LocalError(f"the words of step {self._plan.step} are made once, of open boxes")
        check_values(self._plan, self._name, values)
        pairs = [
            (
                self._name,
                name,
                self._key.mask_key(public, seed=self._seed_with(name), absent=self._without_keys),
            )
            for name, public in self._keys_of.items()
        ]
        own_mask = own_mask_key(self._plan, self._name, self._seed)
        masks = _masks(self._plan, pairs, [own_mask])
        self._absent = self._without_keys
        noise = draw_noise(self._plan, source)
        return word_chunks(self._plan, name=self._name, values=values, noise=noise, masks=masks)

    def sign(self, missing: Sequence[str]) -> bytes:
        """Round 3: this party's signature under the list of who is missing; one list, ever."""
        if self._absent is None:
            raise RemoteProtocolError("a list is published before there are words to list")
        if self._missing is not None:
            raise RemoteProtocolError(
                f"a second list for the sum of step {self._plan.step}: this party signed "
                f"that {names_of(self._missing)} is missing and signs no other"
            )
        self._check_missing(missing, at_least=self._absent)
        self._missing = tuple(missing)
        return self._party.identity.sign(list_statement(self._plan, self._absent, missing))

    def reveal(self, signatures: bytes) -> bytes:
        """Round 4: one share of each holder that dealt keys, in order; once.

        The signatures are those of the partners on the list, in order; zeros where one is missing.
        """
        if self._missing is None or self._absent is None or self._revealed:
            raise RemoteProtocolError("nothing is revealed before a list is signed, or twice")
        self._check_signatures(signatures, self._absent, self._missing)
        self._revealed = True
        shares = []
        for name in self._holders:
            if name in self._absent:
                continue
            own_mask, key = self._dealt[name] if name == self._name else self._shares_of[name]
            shares.append(key if name in self._missing else own_mask)
        return b"".join(shares)

    def _check_missing(self, missing: Sequence[str], at_least: Sequence[str] = ()) -> None:
        plan, name = self._plan, self._name
        check_missing(plan.parties, missing, may_miss=plan.may_miss, of=name, at_least=at_least)

    def _seed_with(self, partner: str) -> bytes:
        return seed_of_sum(self._plan, self._party, partner)

    def _box_seeds(self, partner: str) -> BoxSeeds | None:
        return self._party.seeds_with(partner) if self._plan.hybrid else None

    def _cut_boxes(self, relayed: bytes, absent: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """Return each partner's public key and its box for this party, which it signed."""
        there = [name for name in self._partners if name not in absent]
        parts = _cut(relayed, KEY_BYTES + BOX_BYTES, len(there), "keys of partners")
        boxes = {}
        for name, part in zip(there, parts, strict=True):
            public, box = boxes[name] = part[:KEY_BYTES], part[KEY_BYTES:]
            self._from(name, public).require_signed(box)
        return boxes

    def _dealt_box(self, receiver: str) -> bytes:
        return self._to(receiver).seal(
            self._dealt[receiver],
            secret=self._box_secrets[receiver],
            signer=self._party.identity,
            seeds=self._box_seeds(receiver),
        )

    def _from(self, dealer: str, public: bytes) -> BoxRoute:
        return BoxRoute(self._plan, self._party.roster, public, dealer=dealer, receiver=self._name)

    def _to(self, receiver: str) -> BoxRoute:
        roster, public = self._party.roster, self._key.public
        return BoxRoute(self._plan, roster, public, dealer=self._name, receiver=receiver)

    def _check_signatures(
        self, signatures: bytes, absent: Sequence[str], missing: Sequence[str]
    ) -> None:
        there = [name for name in self._partners if name not in missing]
        statement = list_statement(self._plan, absent, missing)
        signed = 1  # this party's own
        for name, value in zip(
            there, _cut(signatures, SIGNATURE_BYTES, len(there), "signatures"), strict=True
        ):
            if value != _NO_SIGNATURE:
                require_signature(self._party.peer(name), value, statement=statement, name=name)
                signed += 1
        threshold = threshold_of(self._plan, self._name)
        if signed < threshold:
            raise RemoteProtocolError(
                f"the list of step {self._plan.step} is signed by {signed} of "
                f"{len(self._holders)} holders, at least {threshold} are needed: nothing is "
                "revealed"
            )

    def __repr__(self) -> str:
        return f"RecoverableParty({self._name!r}, secret)"


class RecoverableCurator:
    """The curator of one sum. Learns the total over one list and nothing else."""

    def __init__(self, plan: SumPlan, identities: Mapping[str, PublicIdentity]) -> None:
        self._plan, self._identities = plan, identities
        self._holders = {name: holders_of(plan, name) for name in plan.parties}
        self._keys: dict[str, bytes] = {}
        self._boxes: dict[tuple[str, str], bytes] = {}
        self._wrapped: dict[tuple[str, str], bytes] = {}  # seeds of a sender, by partner
        self._absent: tuple[str, ...] = ()
        self._chunks: dict[str, dict[int, NDArray[np.uint64]]] = {}
        self._sum = np.zeros(plan.cells, dtype=np.uint64)
        self._complete: set[str] = set()
        self._missing: tuple[str, ...] = ()
        self._signatures: dict[str, bytes] = {}
        self._revealed: dict[str, dict[int, bytes]] = {name: {} for name in plan.parties}

    def take_offer(self, sender: str, payload: bytes) -> None:
        """Take a party's public key, boxes and seeds in, or raise and change nothing."""
        others = [name for name in self._holders[sender] if name != sender]
        width = wrapped_bytes(self._plan)
        end = len(payload) - width * len(others)
        parts = _cut(payload[KEY_BYTES:end], BOX_BYTES, len(others), f"boxes of {sender!r}")
        wrapped = _cut(payload[end:], width, len(others), f"seeds of {sender!r}")
        if sender in self._keys:
            raise RemoteProtocolError(f"{sender!r} dealt the keys of this sum before")
        public = payload[:KEY_BYTES]
        require_public_key(public)
        for receiver, box in zip(others, parts, strict=True):
            self._route(public, dealer=sender, receiver=receiver).require_signed(box)
        self._keys[sender] = public
        for receiver, box, seed in zip(others, parts, wrapped, strict=True):
            self._boxes[sender, receiver], self._wrapped[sender, receiver] = box, seed

    def _route(self, public: bytes, *, dealer: str, receiver: str) -> BoxRoute:
        return BoxRoute(self._plan, self._identities, public, dealer=dealer, receiver=receiver)

    def dispute(self, *, dealer: str, receiver: str, signature: bytes) -> Dispute:
        """Return the dispute about a box that its receiver signed not to open."""
        if (dealer, receiver) not in self._boxes:
            raise RemoteProtocolError(f"{receiver!r} was dealt no box by {dealer!r}")
        public, box = self._keys[dealer], self._boxes[dealer, receiver]
        route = self._route(public, dealer=dealer, receiver=receiver)
        route.require_accused(box, signature=signature)
        evidence = public + box
        return Dispute(dealer=dealer, receiver=receiver, evidence=evidence, signature=signature)

    def relay(self, absent: Collection[str]) -> dict[str, bytes]:
        """Close the first round: for each party that is there, its partners' keys and boxes."""
        self._absent = in_order(self._plan.parties, absent)
        there = [name for name in self._plan.parties if name not in absent]
        return {
            name: b"".join(
                self._keys[other] + self._boxes[other, name]
                for other in self._holders[name]
                if other != name and other not in absent
            )
            for name in there
        }

    def accept(self, sender: str, chunk: int, payload: bytes) -> None:
        """Take one chunk in, or raise RemoteProtocolError and change nothing."""
        words = read_words(self._plan, sender, chunk, payload)
        chunks = self._chunks.setdefault(sender, {})
        if sender in self._complete or chunk in chunks:
            raise RemoteProtocolError(f"chunk {chunk} of {sender!r} is not expected here")
        chunks[chunk] = words
        if len(chunks) == self._plan.chunks:  # words of a party count together or not at all
            for number, contribution in self._chunks.pop(sender).items():
                self._sum[self._plan.cells_of(number)] += contribution
            self._complete.add(sender)

    def close(self) -> tuple[str, ...]:
        """Close the second round: the list of who is missing."""
        self._chunks.clear()
        self._missing = tuple(name for name in self._plan.parties if name not in self._complete)
        return self._missing

    def take_signature(self, sender: str, value: bytes) -> None:
        """Take a party's signature under the list in, or raise and change nothing."""
        statement = list_statement(self._plan, self._absent, self._missing)
        require_signature(self._identities[sender], value, statement=statement, name=sender)
        self._signatures[sender] = value

    def signatures_for(self, name: str) -> bytes:
        """Return what a party needs to see before it reveals anything."""
        return b"".join(
            self._signatures.get(other, _NO_SIGNATURE)
            for other in self._holders[name]
            if other != name and other not in self._missing
        )

    def take_revealed(self, sender: str, payload: bytes) -> None:
        """Take a party's shares in, or raise and change nothing."""
        dealers = [name for name in self._holders[sender] if name not in self._absent]
        shares = _cut(payload, SHARE_BYTES, len(dealers), f"shares of {sender!r}")
        for name, share in zip(dealers, shares, strict=True):
            self._revealed[name][self._holders[name].index(sender) + 1] = share

    def total(self) -> NDArray[np.int64]:
        """Return the sum over the list, with its noise, shape (cells,)."""
        pairs, own_masks = list[tuple[str, str, bytes]](), list[bytes]()
        for name in self._plan.parties:
            if name in self._absent:
                continue
            secret = self._opened(name)
            if name in self._missing:
                pairs += self._pairs_of(name, secret)
            else:
                own_masks.append(own_mask_key(self._plan, name, secret))
        masks = _masks(self._plan, pairs, own_masks)
        return as_total(self._plan, self._sum - masks.word_masks(first=0, count=self._plan.cells))

    def _opened(self, name: str) -> bytes:
        shares, threshold = self._revealed[name], threshold_of(self._plan, name)
        if len(shares) < threshold:
            raise RemoteProtocolError(
                f"{len(shares)} shares of {name!r} were revealed, {threshold} are needed"
            )
        return join(dict(sorted(shares.items())[:threshold]))

    def _pairs_of(self, missing: str, secret: bytes) -> list[tuple[str, str, bytes]]:
        """Return the keys of the masks that a missing party left in the others' words."""
        key = SumKey(self._plan, secret)
        if key.public != self._keys[missing]:
            raise RemoteProtocolError(f"the revealed shares do not open the key of {missing!r}")
        pairs = []
        for other in self._holders[missing]:
            if other not in self._missing:
                seed = self._wrapped[missing, other]
                seed = key.wrap(other, seed) if self._plan.hybrid else seed
                mask = key.mask_key(self._keys[other], seed=seed, absent=self._absent)
                pairs.append((other, missing, mask))
        return pairs


def _masks(
    plan: SumPlan, pairs: Sequence[tuple[str, str, bytes]], self_masks: Sequence[bytes]
) -> PairwiseMasks:
    """Return the masks in the words of the first of each pair, and own masks."""
    before, after = list[bytes](), list(self_masks)
    for name, other, key in pairs:
        (before if plan.place_of(other) < plan.place_of(name) else after).append(key)
    return PairwiseMasks(before=before, after=after)


def _cut(data: bytes, size: int, count: int, what: str) -> list[bytes]:
    if len(data) != size * count:
        raise RemoteProtocolError(f"{what}: expected {count} of {size} bytes, got {len(data)}")
    return [data[size * place : size * (place + 1)] for place in range(count)]
