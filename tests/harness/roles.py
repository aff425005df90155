"""The roles of a study, and the two sides of a secure sum, in one process.

Nothing is sent, stored or waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.paillier.blinding import PowerBlinder
from common.crypto.paillier.keys import Blinder, PrivateKey
from common.crypto.sums.one_share import Selection, propose_seed, receive_seed
from common.crypto.sums.plan import Aggregation, SumPlan
from common.crypto.sums.ring import default_blinder
from common.exchanges.masked import MaskedCurator, MaskedParty
from common.exchanges.ring import PermutationSeed, RingCurator, RingKey, RingParty
from common.exchanges.setup import needs_key
from common.privacy.randomness import KEY_BYTES, KeyedRandomSource, RandomSource, SeededRandomSource
from common.study.ids import StudyId
from common.study.messages import StepMessage
from common.study.requests import read_cells
from common.study.sides import Memory, PartySide, Post
from curator.role import CuratorRole
from parley.simulation.in_process import RowsInMemory, run_roles
from party.role import PartyRole


def one_stream(name):
    """Return one stream for all steps."""
    stream = SeededRandomSource(name)
    return lambda step: stream


def stream_per_step(name):
    """Return one stream per step, under a key drawn when the step is first asked for."""
    keys, made = SeededRandomSource(name), {}

    def source_of(step):
        if step not in made:
            made[step] = KeyedRandomSource(keys.random_bytes(KEY_BYTES), private=False)
        return made[step]

    return source_of


def curator_role(study, begin, *, key=None, source_of=None):
    return CuratorRole(
        study=study,
        run=begin(study),
        private_key=key if needs_key(study) else None,
        source_of=source_of or one_stream("curator"),
    )


def party_role(study, begin, name, identity, table, *, source_of=None):
    return PartyRole(
        study=study,
        run=begin(study),
        name=name,
        identity=identity,
        data=RowsInMemory(table),
        source_of=source_of or one_stream(name),
        blinder_of=PowerBlinder,
    )


def make_roles(study, begin, identities, tables, *, key=None, sources=one_stream):
    """Return the curator's role, and the role of every party by name."""
    parties = {
        name: party_role(study, begin, name, identities[name], table, source_of=sources(name))
        for name, table in tables.items()
    }
    return curator_role(study, begin, key=key, source_of=sources("curator")), parties


def replayed(study, begin, identities, tables, *, key=None, drop=None):
    """Run a study with the keys that services draw from sources seeded with their names."""
    roles = make_roles(study, begin, identities, tables, key=key, sources=stream_per_step)
    return run_roles(*roles, drop=drop)


def sum_party(
    plan: SumPlan,
    member: LocalParty,
    values: NDArray[np.int64],
    *,
    source: RandomSource,
    blinder: Blinder | None = None,
    selection: Selection | None = None,
) -> PartySide:
    """Return a party's side of a secure sum."""
    memory = Memory(member)
    if plan.public_key is not None:
        memory.state.keep(RingKey(plan.public_key, blinder or default_blinder(plan, source)))
    if selection is not None:
        memory.state.keep(PermutationSeed(selection.seed))
    opening = b"" if selection is None else selection.selector
    context: Any = SimpleNamespace(memory=memory, source=source, opening=opening)
    side = RingParty if plan.aggregation is Aggregation.PAILLIER else MaskedParty
    return side(plan, context, values)


def sum_curator(
    plan: SumPlan, *, private_key: PrivateKey | None = None, source: RandomSource
) -> MaskedCurator:
    """Return the curator's side of a secure sum."""
    if plan.aggregation is not Aggregation.PAILLIER:
        return MaskedCurator(plan)
    context: Any = SimpleNamespace(private_key=private_key, source=source)
    return RingCurator(plan, context)


def delivered(post: Post, peer: str) -> StepMessage:
    """Return a post as it arrives: from a `peer` at a party, for a `peer` at the curator."""
    return StepMessage(
        study=StudyId(bytes(32)), step=0, round=post.round, peer=peer, payload=post.payload
    )


def accept(curator: MaskedCurator, sender: str, post: Post) -> list[Post]:
    """Hand a party's post to the curator; return what it relays."""
    moves = curator.receive(sender, delivered(post, post.to))
    return [move for move in moves if isinstance(move, Post)]


def total_of(curator: MaskedCurator, plan: SumPlan) -> NDArray[np.int64]:
    assert curator.done
    return read_cells(curator.result(), plan.cells)


def run_secure_sum(
    plan: SumPlan,
    vectors: Mapping[str, NDArray[np.int64]],
    identities: Mapping[str, Identity],
    *,
    source: RandomSource,
    private_key: PrivateKey | None = None,
    blinder: Blinder | None = None,
    curator_view: list[Post] | None = None,
) -> NDArray[np.int64]:
    """Run the whole protocol in one process: K parties, the curator, the relay.

    Args:
        plan: of the sum.
        vectors: for each party its cells, shape (cells,).
        identities: for each party its keys.
        source: the randomness of all; in a deployment each has its own.
        private_key: the curator's, for `Aggregation.PAILLIER`.
        blinder: shared by the parties; made here if absent.
        curator_view: if given, every message that passes through the curator is appended.
    """
    members = _members(plan, identities)
    curator = sum_curator(plan, private_key=private_key, source=source)
    selections = _agree_on_selections(plan, members, curator.opening, source)
    if plan.public_key is not None and blinder is None:
        blinder = default_blinder(plan, source)
    parties = {
        name: sum_party(
            plan,
            members[name],
            vectors[name],
            source=source,
            blinder=blinder,
            selection=selections[name],
        )
        for name in plan.parties
    }
    in_flight: deque[Post] = deque()
    for name, party in parties.items():
        in_flight.extend(replace(post, sender=name) for post in party.begin())
    while in_flight:
        post = in_flight.popleft()
        if curator_view is not None:
            curator_view.append(post)
        for relayed in accept(curator, post.sender, post):
            answers = parties[relayed.to].receive(delivered(relayed, relayed.sender))
            in_flight.extend(replace(answer, sender=relayed.to) for answer in answers)
    return total_of(curator, plan)


def _members(plan: SumPlan, identities: Mapping[str, Identity]) -> dict[str, LocalParty]:
    roster = {name: identity.public for name, identity in identities.items()}
    return {
        name: LocalParty(name=name, identity=identities[name], roster=roster)
        for name in plan.parties
    }


def _agree_on_selections(
    plan: SumPlan, members: Mapping[str, LocalParty], selector: bytes, source: RandomSource
) -> dict[str, Selection | None]:
    """Send the first party's seed to every other party in an envelope."""
    if not selector:
        return dict.fromkeys(members)
    first = plan.parties[0]
    seed, envelopes = propose_seed(
        members[first], study=plan.study, parties=plan.parties, source=source
    )
    seeds = {
        name: receive_seed(members[name], study=plan.study, proposer=first, envelope=envelope)
        for name, envelope in envelopes.items()
    }
    return {name: Selection(selector=selector, seed=seeds.get(name, seed)) for name in plan.parties}
