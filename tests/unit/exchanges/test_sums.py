"""Sums by the two sides of their exchange alone: no role, no state, nothing but posts carried."""

from collections import Counter, deque
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import LocalParty
from common.crypto.paillier.blinding import PowerBlinder
from common.crypto.sums.plan import Aggregation
from common.errors import InputError, LocalError, RemoteProtocolError
from common.exchanges.masked import MASKED_INPUT
from common.exchanges.recoverable import Round
from common.exchanges.ring import ENVELOPE, RingKey
from common.exchanges.sums import bounds_of
from common.privacy.randomness import SeededRandomSource
from common.study.history import HistoryDigest
from common.study.requests import RowsInMemory, encode_cells, read_cells
from common.study.sides import Memory
from common.study.steps import StepAtCurator, StepAtParty
from tests.harness.roles import one_stream
from tests.harness.rounds import say
from tests.harness.small_study import Sums, make_study

LARGE = Fraction(10**6)  # next to no noise: sums must come out right


class Exchanged:
    """A step whose sides exchange what they post; parties that are `gone` receive nothing."""

    def __init__(self, study, tables, identities, *, key=None, gone=()):
        self.study, self.step = study, Sums(study).step()
        where = {"study": study, "number": 0, "step": self.step, "history": HistoryDigest(b"")}
        self.curator = self.step.exchange.curator(
            StepAtCurator(**where, private_key=key, source_of=one_stream("curator"))
        )
        self.parties, self.gone, self.posts = {}, gone, Counter()
        for name in self.step.parties:
            member = LocalParty(name=name, identity=identities[name], roster=study.roster)
            memory = Memory(member)
            if key is not None:
                blinder = PowerBlinder(key.public_key, SeededRandomSource(name))
                memory.state.keep(RingKey(key.public_key, blinder))
            self.parties[name] = self.step.exchange.party(
                StepAtParty(
                    **where, memory=memory, data=RowsInMemory(tables[name]),
                    source_of=one_stream(name), opening=self.curator.opening,
                )
            )  # fmt: skip

    def run(self):
        """Carry posts until there is a result; give up whoever is waited for in vain."""
        waiting = deque((n, p) for n, side in self.parties.items() for p in side.begin())
        while waiting or not self.curator.done:
            if waiting:
                name, post = waiting.popleft()
                self.posts[name, post.round] += 1
                assert post.round in self.curator.awaits
                message = say(post.round, *post.payload, study=self.study.digest, peer=post.to)
                moves = self.curator.receive(name, message)
            else:
                moves = self.curator.without(min(set(self.gone) & set(self.curator.waiting_for)))
            for move in moves:
                if move.to not in self.gone:
                    told = say(move.round, *move.payload, study=self.study.digest, peer=move.sender)
                    waiting.extend((move.to, post) for post in self.parties[move.to].receive(told))
        return read_cells(self.curator.result(), self.step.cells)

    def truth(self, tables):
        there = [name for name in self.step.parties if name not in self.gone]
        return sum(self.step.counted.answer(RowsInMemory(tables[name])) for name in there)


@pytest.mark.parametrize("aggregation", Aggregation)
def test_the_sides_of_a_sum_come_to_the_sum(aggregation, identities, rows, tables, paillier_key):
    study = make_study(identities, rows, aggregation=aggregation, epsilon=LARGE)
    key = paillier_key if aggregation is Aggregation.PAILLIER else None
    exchanged = Exchanged(study, tables, identities, key=key)
    assert np.array_equal(exchanged.run(), exchanged.truth(tables))
    assert all(side.done and not side.awaits for side in exchanged.parties.values())
    expected = {(name, MASKED_INPUT): 1 for name in study.parties}
    if key is not None:
        expected = {("north", ENVELOPE): 1, ("east", ENVELOPE): 1, ("south", MASKED_INPUT): 1}
    assert exchanged.posts == expected


@pytest.mark.parametrize("gone", [(), ("north",), ("south",)])
def test_the_sides_of_a_sum_that_may_miss_a_party_do_without_it(gone, identities, rows, tables):
    study = make_study(identities, rows, may_miss=1, colluders=0, epsilon=LARGE)
    exchanged = Exchanged(study, tables, identities, gone=gone)
    assert np.array_equal(exchanged.run(), exchanged.truth(tables))
    assert tuple(exchanged.curator.absent) == gone
    context = StepAtCurator(
        study=study, number=0, step=exchanged.step, history=HistoryDigest(b""), private_key=None,
        source_of=one_stream("x"),
    )  # fmt: skip
    for name in set(study.parties) - set(gone):
        sent = {each: n for (who, each), n in exchanged.posts.items() if who == name}
        assert sent == exchanged.step.exchange.answers(context)
        assert set(exchanged.parties[name].absent) == set(gone)


def test_keys_and_not_counts_leave_before_a_step_is_paid(identities, rows, tables):
    study = make_study(identities, rows, may_miss=1, colluders=0)
    side = Exchanged(study, tables, identities).parties["north"]
    assert [(post.round, post.of_rows) for post in side.begin()] == [(Round.SHARE_KEYS, False)]
    masked = Exchanged(make_study(identities, rows), tables, identities).parties["north"]
    assert all(post.of_rows for post in masked.begin())


def test_a_result_is_read_within_the_bounds_of_its_sum(identities, rows, paillier_key):
    study = make_study(identities, rows, aggregation=Aggregation.PAILLIER)
    step = Sums(study).step()
    bound = bounds_of(study, step).total_bound
    cells = np.full(step.cells, bound, np.int64)
    assert np.array_equal(step.read(study, encode_cells(cells)), cells)
    with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
        step.read(study, encode_cells(cells + 1))
    with pytest.raises(InputError, match="a Paillier key belongs to aggregation"):
        step.exchange.plan(
            StepAtCurator(
                study=study, number=0, step=step, history=HistoryDigest(b""), private_key=None,
                source_of=one_stream("x"),
            ),
            None,
        )  # fmt: skip
    with pytest.raises(LocalError, match="has 8 cells"):
        step.exchange.check(step, b"bytes")
