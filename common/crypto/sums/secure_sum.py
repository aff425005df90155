"""One noisy sum over K parties, of which the curator learns nothing but the noisy sum.

Two roles, no I/O. `SumParty` is fed what reaches a party and answers with what leaves it;
`SumCurator` is fed what is submitted to the curator. The messages are in `plan`; the curator
relays `PartialForwarded` without being able to open it. `tests/harness/secure_sums.py` runs all
roles in one process and is the shortest description of the protocol.

The three aggregations share this interface: `paillier` (`ring`), `masked` and `clear` (`words`).

What each adversary learns, or can do:

- The curator: the noisy sum. Everything else it sees is sealed or, in masked mode, uniform.
- One party: nothing. If the sum is published, a party can subtract the share it drew: with
  one-share noise it then has the exact sum in one case of K; with distributed noise the shares of
  the others, at least one whole discrete Laplace, stay.
- Curator and parties together, with masks: the total of the others, with the others' noise. For any
  number of them in a sum of up to 33 parties, for up to max(t, 31) in a larger one (`masks`).
  With one-share noise that noise is there only if the share used is one of theirs.
- A curator that selects no share, E(0) everywhere, or another one for each party: one-share:
  detected, the selector's proof fails or neighbours cannot read each other (`one_share` says what
  it takes for granted); distributed and masked: harmless, it has no say.
- A party that sends garbage: refused where it is no ciphertext or does not decode, otherwise a
  wrong sum. No side learns more from it; a sum is as right as its parties are honest.

Each sum that is run is a release: a curator may claim that a finished one has failed. So a
party that runs a sum again charges the budget again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import LocalParty
from common.crypto.paillier.blinding import FixedBaseBlinder, PowerBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey
from common.crypto.sums.masks import PairwiseMasks
from common.crypto.sums.one_share import Selection, make_selector
from common.crypto.sums.plan import (
    Aggregation,
    ContributionSubmitted,
    Noise,
    PartialForwarded,
    SumMessage,
    SumPlan,
    check_values,
    draw_noise,
)
from common.crypto.sums.ring import TABLE_PAYS_FROM, RingCollector, RingContributor
from common.crypto.sums.words import WordCollector, WordContributor
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import RandomSource


class SumParty:
    """One party of one sum: draws its noise once, contributes each chunk once."""

    def __init__(
        self,
        plan: SumPlan,
        party: LocalParty,
        values: NDArray[np.int64],
        *,
        source: RandomSource,
        blinder: Blinder | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Prepare one party's half.

        `values` have shape (cells,), int64, within the party's limit; a selection is for one-share
        noise in a ring.

        Raises:
            RemoteProtocolError: the curator's selector does not prove that there will be noise.
        """
        check_values(plan, party.name, values)
        self._plan, self._name = plan, party.name
        self._topic = ring_topic(plan, selection)
        self._mailbox = Mailbox(party, study=plan.study, step=plan.step)
        self._next_chunk = 0
        masks = None
        if plan.masked:
            masks = PairwiseMasks.agree(
                party, plan_digest=plan.digest, order=plan.parties, colluders=plan.colluders
            )
        self._contributor: RingContributor | WordContributor
        if plan.aggregation is Aggregation.PAILLIER:
            entry = _selector_entry(plan, party.name, selection)
            self._contributor = RingContributor(
                plan,
                name=party.name,
                values=values,
                noise=draw_noise(plan, source),
                blinder=default_blinder(plan, source) if blinder is None else blinder,
                masks=masks,
                selector=entry,
                source=source,
            )
        else:
            noise = draw_noise(plan, source)
            self._contributor = WordContributor(
                plan, name=party.name, values=values, noise=noise, masks=masks
            )

    @property
    def finished(self) -> bool:
        return self._next_chunk == self._plan.chunks

    def prepare(self) -> None:
        """Do ahead what does not depend on the other parties; optional."""
        self._contributor.prepare()

    def begin(self) -> Iterator[SumMessage]:
        """Yield what this party sends unasked, by chunk; nothing if it has a predecessor."""
        if self._plan.predecessor(self._name) is not None:
            return
        while self._next_chunk < self._plan.chunks:
            yield self._advance(None)

    def receive(self, message: PartialForwarded) -> SumMessage:
        """Take a partial product from the predecessor; return what leaves."""
        predecessor = self._plan.predecessor(self._name)
        if message.recipient != self._name or message.sender != predecessor:
            raise RemoteProtocolError(
                f"{self._name!r} got a partial product from {message.sender!r} to "
                f"{message.recipient!r}; in this ring it expects one from {predecessor!r}"
            )
        if self.finished:
            raise RemoteProtocolError(f"{self._name!r} has contributed every chunk already")
        return self._advance(
            self._mailbox.open(message.sender, topic=self._topic, envelope=message.envelope)
        )

    def _advance(self, incoming: bytes | None) -> SumMessage:
        chunk = self._next_chunk
        payload = self._contributor.contribute(chunk, incoming)
        self._next_chunk += 1
        successor = self._plan.successor(self._name)
        if successor is None:
            return ContributionSubmitted(sender=self._name, chunk=chunk, payload=payload)
        envelope = self._mailbox.seal(successor, topic=self._topic, plaintext=payload)
        return PartialForwarded(sender=self._name, recipient=successor, envelope=envelope)


def ring_topic(plan: SumPlan, selection: Selection | None) -> str:
    """Return the topic of the envelopes of this sum: other plans, or selections, do not meet."""
    topic = f"secure sum {plan.digest.hex()}"
    return topic if selection is None else f"{topic} {selection.digest.hex()}"


class SumCurator:
    """The curator of one sum: makes the selector, takes what is submitted, releases the total."""

    def __init__(
        self, plan: SumPlan, *, private_key: PrivateKey | None, source: RandomSource
    ) -> None:
        self._plan = plan
        self._collector: RingCollector | WordCollector
        self.selector: bytes | None = None
        if plan.aggregation is not Aggregation.PAILLIER:
            self._collector = WordCollector(plan)
            return
        if private_key is None:
            raise LocalError("the curator of a ring needs its private key")
        self._collector = RingCollector(plan, private_key)
        if plan.noise is Noise.ONE_SHARE:
            self.selector = make_selector(
                private_key, parties=len(plan.parties), context=plan.digest, source=source
            ).to_bytes(private_key.public_key)

    def accept(self, message: ContributionSubmitted) -> None:
        """Take one chunk in, or raise RemoteProtocolError and change nothing."""
        self._collector.accept(message)

    def total(self) -> NDArray[np.int64]:
        """Return the sum plus its noise, shape (cells,): all that the curator ever learns.

        Raises:
            RemoteProtocolError: a party dropped out; there is no partial result.
        """
        missing = self._collector.missing()
        if missing:
            raise RemoteProtocolError(
                f"the sum of step {self._plan.step} cannot be finished: nothing complete came "
                f"from {', '.join(missing)}; run it again under a new step number"
            )
        return self._collector.total()


def _selector_entry(plan: SumPlan, name: str, selection: Selection | None) -> mpz | None:
    if plan.noise is not Noise.ONE_SHARE:
        return None
    if selection is None or plan.public_key is None:
        raise LocalError("one-share noise needs the curator's selector and the parties' seed")
    return selection.entry(
        plan.public_key,
        context=plan.digest,
        parties=len(plan.parties),
        place=plan.place_of(name),
    )


def default_blinder(plan: SumPlan, source: RandomSource) -> Blinder:
    """Return the blinder that is quicker for the cells of a plan."""
    if plan.public_key is None:
        raise LocalError("only a ring of ciphertexts is blinded")
    few = plan.packing.plaintexts_for(plan.cells) < TABLE_PAYS_FROM
    return (PowerBlinder if few else FixedBaseBlinder)(plan.public_key, source)
