"""What the parties exchange before the first step, on the same two sides as a step's exchange.

The curator offers its Paillier key where sums are added up in a ring. Then the parties exchange the
seeds of masks (`common.crypto.sums.agreement`), each in one message that the curator takes apart
and hands on; or, for one-share noise, the first party proposes the seed of the permutation. Nothing
of any rows is in it, and nothing is charged. Beside it, where the study says so, the parties commit
to their tables (`common.exchanges.commitments`): salted hashes, which show nothing of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

from common.crypto.framing import frame
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey, PublicKey
from common.crypto.sums.agreement import SeedExchange, envelopes_in
from common.crypto.sums.masks import partners
from common.crypto.sums.missing_lists import check_missing
from common.crypto.sums.one_share import propose_seed, receive_seed
from common.crypto.sums.plan import Aggregation, Noise
from common.errors import LocalError, RemoteProtocolError
from common.exchanges.commitments import Collecting, CommittingCurator, CommittingParty
from common.exchanges.recoverable import Round
from common.exchanges.ring import ENVELOPE, PermutationSeed, RingKey
from common.privacy.randomness import RandomSource, SourceOfStep
from common.study.document import Study
from common.study.messages import StepMessage
from common.study.requests import OwnersRows
from common.study.sides import CuratorSide, Memory, Move, PartySide, Post, relayed

SET_UP_STEP = -1  # asks for the random source of what precedes the first step

BlinderOfKey = Callable[[PublicKey, RandomSource], Blinder]


def needs_key(study: Study) -> bool:
    return study.aggregation is Aggregation.PAILLIER


def with_hybrid_masks(study: Study) -> Study:
    """Return a new study with the stronger key agreement of masks, if it can have it."""
    return replace(study, agreement="hybrid", signature=None) if study.can_agree else study


def with_commitments(study: Study) -> Study:
    """Return a new study whose parties commit to their tables, and to what they send."""
    return replace(study, commitments=True, signature=None)


def _permutes(study: Study) -> bool:
    return needs_key(study) and study.noise is Noise.ONE_SHARE


def party_set_up(
    study: Study,
    memory: Memory,
    source_of: SourceOfStep,
    opening: bytes,
    rows: OwnersRows,
    blinder_of: BlinderOfKey = FixedBaseBlinder,
) -> PartySide:
    """Return a party's side; `opening` is the curator's key, from outside."""
    if needs_key(study):
        key = PublicKey.from_bytes(opening)
        if key.bits != study.key_bits:
            raise RemoteProtocolError(
                f"the curator offers a key of {key.bits} bits, the study says {study.key_bits}"
            )
        memory.state.keep(RingKey(key, blinder_of(key, source_of(SET_UP_STEP))))
    elif opening:
        raise RemoteProtocolError("a key is offered that this study does not use")
    side = PartySide()
    if study.agreement:
        side = _SeedParty(study, memory, source_of)
    elif _permutes(study):
        side = _PermutationParty(study, memory, source_of)
    if not study.commitments:
        return side
    return CommittingParty(study, memory, source_of(SET_UP_STEP), rows.digest, side)


def curator_set_up(study: Study, private_key: PrivateKey | None) -> CuratorSide:
    """Return the curator's side, whose opening is the key it offers."""
    if needs_key(study) != (private_key is not None):
        raise LocalError("a Paillier key is needed for aggregation 'paillier', and only there")
    if private_key is not None and private_key.public_key.bits != study.key_bits:
        raise LocalError(f"the study asks for a key of {study.key_bits} bits")
    side: CuratorSide = _Ready()
    if study.agreement:
        side = _SeedCurator(study)
    elif _permutes(study):
        side = _PermutationCurator(study)
    if study.commitments:
        side = CommittingCurator(study, side)
    side.opening = b"" if private_key is None else private_key.public_key.to_bytes()
    return side


class _Ready(CuratorSide):
    """Nothing is exchanged."""

    collects = False


class _SeedParty(PartySide):
    """Exchanges the seeds of masks with its partners. Holds secrets."""

    def __init__(self, study: Study, memory: Memory, source_of: SourceOfStep) -> None:
        partners_of = seed_partners(study, memory.member.name)
        self._study, self._memory, self._source_of = study, memory, source_of
        self._seeds: SeedExchange | None = SeedExchange(memory.member, study.digest, *partners_of)
        self._absent: tuple[str, ...] = ()

    @property
    def awaits(self) -> Collection[str]:
        return () if self._seeds is None else (Round.SHARE_KEYS,)

    @property
    def absent(self) -> Collection[str]:
        return self._absent

    def begin(self) -> list[Post]:
        assert self._seeds is not None  # noqa: S101  # until an answer comes
        offer = self._seeds.offer(self._source_of(SET_UP_STEP))
        return [Post(round=Round.SHARE_KEYS, payload=(offer,), of_rows=False)]

    def receive(self, message: StepMessage) -> list[Post]:
        missing, payload = message.parts(tuple, bytes)
        if self._seeds is None:
            raise RemoteProtocolError("seeds of masks are not expected here")
        study, name = self._study, self._memory.member.name
        check_missing(study.parties, missing, may_miss=study.may_miss, of=name)
        self._memory.member = self._seeds.secrets(payload, missing)
        self._seeds, self._absent = None, missing
        return []


class _SeedCurator(Collecting):
    """Collects the parties' sealed seeds, and hands them on when the last are in."""

    awaits = (Round.SHARE_KEYS,)

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._sealed: dict[tuple[str, str], bytes] = {}  # by sender and recipient

    def _take(self, sender: str, message: StepMessage) -> None:
        (payload,) = message.parts(bytes)
        _, recipients = seed_partners(self._study, sender)
        envelopes = envelopes_in(payload, count=len(recipients), what=repr(sender))
        for name, envelope in zip(recipients, envelopes, strict=True):
            self._sealed[sender, name] = envelope

    def _tell(self) -> list[Move]:
        """Hand the seeds of the parties that are there on to each other."""
        absent = tuple(name for name in self._study.parties if name not in self._left)
        sealed, self._sealed = self._sealed, {}
        return [
            Post(
                round=Round.SHARE_KEYS,
                payload=(
                    absent,
                    frame(
                        sealed[other, name]
                        for other in seed_partners(self._study, name)[0]
                        if other in self._left
                    ),
                ),
                to=name,
            )
            for name in self._left
        ]


class _PermutationParty(PartySide):
    """The first party proposes the seed of the permutation to every other."""

    def __init__(self, study: Study, memory: Memory, source_of: SourceOfStep) -> None:
        self._study, self._memory, self._source_of = study, memory, source_of
        self._first = study.parties[0]

    @property
    def awaits(self) -> Collection[str]:
        return () if self._memory.state.get(PermutationSeed) else (ENVELOPE,)

    def begin(self) -> list[Post]:
        member = self._memory.member
        if member.name != self._first:
            return []
        seed, envelopes = propose_seed(
            member,
            study=self._study.digest,
            parties=self._study.parties,
            source=self._source_of(SET_UP_STEP),
        )
        self._memory.state.keep(PermutationSeed(seed))
        return [
            Post(round=ENVELOPE, payload=(envelope,), to=name, of_rows=False)
            for name, envelope in envelopes.items()
        ]

    def receive(self, message: StepMessage) -> list[Post]:
        if message.peer != self._first:
            raise RemoteProtocolError(
                f"no permutation seed of {message.peer!r} is expected: where there is one, it "
                f"comes from {self._first!r}"
            )
        (envelope,) = message.parts(bytes)
        seed = receive_seed(
            self._memory.member, study=self._study.digest, proposer=self._first, envelope=envelope
        )
        self._memory.state.keep(PermutationSeed(seed))
        return []


class _PermutationCurator(CuratorSide):
    """Relays the first party's seed to every other."""

    awaits = (ENVELOPE,)
    collects = False

    def __init__(self, study: Study) -> None:
        self._first, *others = study.parties
        self._awaited = set(others)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        return (self._first,) if self._awaited else ()

    def receive(self, sender: str, message: StepMessage) -> list[Move]:
        message.parts(bytes)
        if sender != self._first:
            raise RemoteProtocolError(f"only {self._first!r} proposes a permutation seed")
        self._awaited.discard(message.peer)
        return [relayed(sender, message)]


def seed_partners(study: Study, name: str) -> tuple[list[str], list[str]]:
    """Return whose seeds of masks a party receives, and for whom it draws seeds, in order.

    They are its mask partners in every sum that the study can have: of all parties or of a cohort;
    of any two where the paper's noise replacement is run; of the parties that are left where some
    may go missing. Of two partners the earlier draws a seed, or both do where some may go missing.
    """
    place = study.parties.index(name)
    shared = _mask_partners(study, name)
    if study.may_miss:
        both = [other for other in study.parties if other in shared]
        return both, both
    return (
        [other for other in study.parties[:place] if other in shared],
        [other for other in study.parties[place + 1 :] if other in shared],
    )


def _mask_partners(study: Study, name: str) -> Collection[str]:
    parties, cohorts = study.parties, study.cohorts
    if study.profile != "sound":
        return parties
    bounds = [len(parties) * number // cohorts for number in range(cohorts + 1)]
    orders = [parties, *(parties[start:end] for start, end in pairwise(bounds))]
    return {
        order[place]
        for order in orders
        if name in order
        for place in partners(
            order.index(name),
            parties=len(order),
            colluders=min(study.colluders, len(order) - 1),
            may_miss=study.may_miss,
            in_later_sums=True,
        )
    }
