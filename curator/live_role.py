"""The role of a study, which the curator's store brings back after a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from common.crypto.paillier.keys import generate_key_pair
from common.exchanges.setup import SET_UP_STEP, needs_key
from common.privacy.randomness import KeyedRandomSource, SourceOfStep
from common.service.durable import DurableRole, Received
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.study.messages import StepMessage
from common.wire import codec
from curator.context import StudyContext
from curator.role import CuratorRole, Effect, Leave, SendToParty, Warn
from curator.store.store import Store

DECLARED = ""
"""The sender, in the store, of the curator's own note that a party is missing; no party's name."""


def live_role(
    digest: StudyId, study: Callable[[], Study], context: StudyContext
) -> DurableRole[CuratorRole]:
    """Return the role of a study, whose text is read when the role is first needed."""
    store = context.store

    def begin(source_of: SourceOfStep) -> CuratorRole:
        agreed = study()
        key = store.paillier_key(digest) if needs_key(agreed) else None
        return CuratorRole(
            study=agreed, run=context.begin(agreed), private_key=key, source_of=source_of
        )

    def feed(role: CuratorRole, message: Received) -> list[str]:
        if message.sender == DECLARED:
            party, why = declaration(message.body)
            effects = role.declare_missing(party, why=why)
        else:
            effects = role.receive(message.sender, codec.TO_CURATOR.decode(message.body))
        return effect_names(effects)

    return DurableRole(
        short_id(digest),
        begin=begin,
        start=CuratorRole.start,
        feed=feed,
        messages=lambda: store.inbox.messages(digest),
        key_of=lambda step: store.keys.key(digest, step),
        private=store.keys.private,
    )


def make_key(study: Study, store: Store) -> None:
    """Make the study's Paillier key, once, if it needs one."""
    if needs_key(study) and store.paillier_key(study.digest) is None:
        key = store.keys.key(study.digest, SET_UP_STEP)
        source = KeyedRandomSource(key.reveal(), private=store.keys.private)
        store.keep_paillier_key(study.digest, generate_key_pair(study.key_bits, source))


def declaration(body: bytes) -> tuple[str, str]:
    """Read the party that was declared missing, and why, from the curator's note in the store."""
    party, _, why = body.decode().partition("\n")
    return party, why


def told_dispute(judged: tuple[Mapping[str, object], StepMessage]) -> dict[str, object]:
    """Return a dispute as the privacy statement has it; parties know the digest of its message."""
    facts, proof = judged
    return {**facts, "evidence": hashlib.sha256(codec.TO_PARTY.encode(proof)).hexdigest()}


def effect_names(effects: list[Effect]) -> list[str]:
    """Name the effects for a comparison after a replay: their kinds, not their bytes."""
    return [
        f"send {codec.TO_PARTY.name_of(effect.message)} to {effect.to}"
        if isinstance(effect, SendToParty)
        else type(effect).__name__
        for effect in effects
        if not isinstance(effect, Leave | Warn)  # notes of what the messages say anyway
    ]
