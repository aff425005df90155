"""A study's role with its randomness: begun, fed, and brought back by feeding it again."""

from __future__ import annotations

from common.crypto.paillier.keys import PrivateKey, generate_key_pair
from common.errors import LocalError
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.study.document import Study
from common.study.sums import needs_key
from common.wire import codec
from curator.context import Outcome, StudyContext
from curator.effects import Effect, Send
from curator.role import CuratorRole
from curator.store.store import Store

DECLARED = ""
"""The sender, in the store, of the curator's own word that a party is missing; no party's name."""

_KEY_STEP = -1  # the randomness of what precedes the first step: the Paillier key


class LiveRole:
    """A role with its streams of randomness."""

    def __init__(self, study: Study, around: StudyContext, key: PrivateKey | None) -> None:
        self._study, self._store = study, around.store
        self._sources: dict[int, KeyedRandomSource] = {}
        self.role = CuratorRole(
            study=study,
            run=around.begin(study),
            private_key=key,
            source_of=self._source_of,
        )

    @property
    def drawn(self) -> int:
        """How much randomness was used."""
        return sum(source.drawn_bytes for source in self._sources.values())

    def replay(self, sender: str, body: bytes, effects: tuple[str, ...]) -> None:
        """Give the role a stored message or declaration again, and compare what it makes of it."""
        if sender == DECLARED:
            again = self.role.declare_missing(*declaration(body))
        else:
            again = self.role.receive(sender, codec.decode_to_curator(body))
        if tuple(effect_name(effect) for effect in again) != effects:
            raise LocalError(
                f"a message of {sender!r} in study {self._study.name!r} has other effects than "
                "when it came; go on with the version of this program that the study was begun with"
            )

    def outcome(self) -> Outcome:
        """What the release is made of, after the last step."""
        return Outcome(
            study=self._study,
            model=self.role.model(),
            steps=self.role.steps,
            results=self.role.results,
            private=self._store.private,
            traffic=self._store.traffic.phases(self._study.digest),
        )

    def _source_of(self, step: int) -> RandomSource:
        """The one stream of a step; asked again, it goes on where it is and repeats nothing."""
        if step not in self._sources:
            self._sources[step] = KeyedRandomSource(
                self._store.step_key(self._study.digest, step), private=self._store.private
            )
        return self._sources[step]


def make_key(study: Study, store: Store) -> None:
    """Make the study's Paillier key, once, if it needs one."""
    if needs_key(study) and store.paillier_key(study.digest) is None:
        source = KeyedRandomSource(store.step_key(study.digest, _KEY_STEP), private=store.private)
        store.keep_paillier_key(study.digest, generate_key_pair(study.key_bits, source))


def declaration(body: bytes) -> tuple[str, str]:
    """The party that was declared missing, and why, from the curator's own word in the store."""
    party, _, why = body.decode().partition("\n")
    return party, why


def effect_name(effect: Effect) -> str:
    """What a replay must come to again: the kind of an effect, not its bytes."""
    if isinstance(effect, Send):
        return f"send {type(effect.message).__name__} to {effect.to}"
    return type(effect).__name__
