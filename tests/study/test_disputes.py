"""Boxes of key shares that do not open: who is at fault, who leaves, and what is shown by it."""

import dataclasses
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from common.crypto.identities.identity import Identity
from common.crypto.sums.agreement import seed_statement
from common.crypto.sums.boxes import BOX_BYTES, KEY_BYTES, BoxRoute, Dispute
from common.crypto.sums.shamir import SHARE_BYTES, split
from common.errors import RemoteProtocolError
from common.exchanges.recoverable import At, RecoveringParty, Round
from common.privacy.randomness import SeededRandomSource
from common.study.messages import (
    StepOpened,
    StudyAborted,
)
from common.study.requests import read_cells
from common.study.sides import Post
from common.study.states import RoleState
from party.role import ChargeBudget, SendToCurator
from tests.harness.roles import party_role
from tests.harness.rounds import of_round, say
from tests.harness.small_study import Sums
from tests.protocol.test_recoverable_sums import members_of, plan_of
from tests.study.test_missing_parties import NAMES, World
from tests.study.test_missing_parties import people as people_of_four

people = people_of_four
FIVE = (*NAMES, "far")
_SEALED = KEY_BYTES + 2 * SHARE_BYTES + 16


class Dishonest(World):
    """A study in which parties deal bad boxes, or say so of good ones.

    `bad` are boxes that do not open, as dealer and receiver, in the first sum; `lies` are
    accusations of receivers whose boxes do open. A dealer in `silent` vanishes when it is asked.
    """

    def __init__(self, people, names=NAMES, *, bad=(), lies=(), silent=(), **options):
        super().__init__(people, names, **options)
        self.bad, self.lies, self.silent = set(bad), dict(map(reversed, lies)), set(silent)

    def deliver(self, name, message):
        self.told[name].append(message)
        if of_round(message, Round.OPEN_BOX) and name in self.silent:
            self.vanished.add(name)
            return
        party = self.parties[name]
        keys = of_round(message, Round.SHARE_KEYS) and party.state is RoleState.IN_STEP
        if keys and name in self.lies and message.step == 0:
            effects = self.lie(name, message)
        elif of_round(message, Round.OPEN_BOX) and (name, message.payload[0]) in self.bad:
            receiver = message.payload[0]
            effects = [said(party, Round.OPEN_BOX, receiver, answer_of(sum_of(party), receiver))]
        else:
            effects = party.receive(message)
        for effect in effects:
            if isinstance(effect, ChargeBudget):
                self.charges[name].append(effect)
                continue
            sent = self.spoilt(name, effect.message)
            self.sent[name].append(sent)
            self.take(self.curator.receive(name, sent))

    def spoilt(self, name, message):
        side = self.parties[name].side
        in_a_sum = message.step == 0 and isinstance(side, RecoveringParty)
        if not of_round(message, Round.SHARE_KEYS) or not in_a_sum:
            return message
        recoverable, (payload,) = side._sum, message.payload
        for place, to in enumerate(recoverable._partners):
            start = KEY_BYTES + place * BOX_BYTES
            box, rest = payload[start : start + BOX_BYTES], payload[start + BOX_BYTES :]
            if (name, to) in self.bad:
                payload = payload[:start] + flipped(recoverable, to, box) + rest
        return dataclasses.replace(message, payload=(payload,))

    def lie(self, name, message):
        """Accuse a dealer whose box opens, as a dishonest party can."""
        party, dealer = self.parties[name], self.lies[name]
        recoverable = sum_of(party)
        missing, relayed = message.payload
        public, box = recoverable._cut_boxes(relayed, missing)[dealer]
        route = recoverable._from(dealer, public)
        signature = route.accuse(box, recoverable._party.identity)
        party.side._at = At.BLAME
        return [said(party, Round.ACCUSE, dealer, signature)]


def sum_of(party):
    """The cryptography of a party's open sum, which a dishonest party has at hand."""
    return party.side._sum


def said(party, name, *payload):
    return party._send(Post(round=name, payload=payload, of_rows=False))


def answer_of(recoverable, receiver):
    """Return what opens a party's box, as if the receiver had said that the box does not open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoxRoute, "require_accused", lambda *_, **__: None)
        return recoverable.open_box(receiver, bytes(64))


def flipped(recoverable, to, box):
    """Flip one byte of the shares in a box, and sign the box as a dishonest dealer would."""
    sealed = box[: _SEALED - 1] + bytes([box[_SEALED - 1] ^ 1])
    route = recoverable._to(to)
    signed = route._statement("share box", sealed)
    return sealed + recoverable._party.identity.sign(signed)


def check_sums(world, inside, names=NAMES):
    """Expect every sum to be over these parties, and each of them to pay for each sum once."""
    assert world.failed is None
    assert world.curator.state is RoleState.FINISHED
    for step, result in zip(world.curator.steps, world.curator.results, strict=True):
        assert step.parties == inside
        assert np.array_equal(read_cells(result, step.cells), world.truth(inside))
    for name in inside:
        assert [charge.step for charge in world.charges[name]] == [f"tables {n}" for n in range(3)]
        assert world.parties[name].state is RoleState.FINISHED


def test_whoever_deals_a_bad_box_to_whomever_leaves_and_the_other_stays(people):
    for dealer, receiver in itertools.permutations(NAMES, 2):
        world = Dishonest(people, bad=[(dealer, receiver)]).run()
        assert world.curator.missing == (dealer,)
        check_sums(world, tuple(name for name in NAMES if name != dealer))
        ((facts, _),) = world.curator.judged
        assert facts == {"step": 0, "dealer": dealer, "receiver": receiver, "left": dealer}
        told = [each for each in world.told[dealer] if isinstance(each, StudyAborted)]
        assert f"that {receiver!r} cannot open, nor can any other" in told[0].reason


def test_a_dealer_that_gives_no_answer_leaves(people):
    world = Dishonest(people, bad=[("west", "east")], silent=["west"]).run()
    assert world.curator.missing == ("west",)
    assert world.curator.judged == []
    check_sums(world, ("north", "east", "south"))


def test_a_dealer_that_vanished_before_it_could_be_asked_leaves(people):
    gone = {"west": (0, Round.SHARE_KEYS)}
    world = Dishonest(people, bad=[("west", "east")], gone=gone).run()
    assert world.curator.missing == ("west",)
    check_sums(world, ("north", "east", "south"))


def test_whoever_accuses_falsely_leaves_and_the_dealer_stays(people):
    for dealer, receiver in itertools.permutations(NAMES, 2):
        world = Dishonest(people, lies=[(dealer, receiver)]).run()
        assert world.curator.missing == (receiver,)
        assert world.curator.judged[0][0]["left"] == receiver
        check_sums(world, tuple(name for name in NAMES if name != receiver))
        opened = [each for each in world.told[dealer] if of_round(each, Round.OPEN_BOX)]
        assert [each.payload[0] for each in opened] == [receiver]
        # The sum went on as without any missing party: no step was opened again.
        openings = [m for m in world.told[dealer] if isinstance(m, StepOpened) and m.step == 0]
        assert len(openings) == 1


def test_one_dealer_of_several_bad_boxes_leaves_once(people):
    bad = [("west", name) for name in ("north", "east", "south")]
    world = Dishonest(people, bad=bad).run()
    check_sums(world, ("north", "east", "south"))


def test_two_disputes_at_once_are_decided_each_by_itself(people):
    world = Dishonest(
        people, FIVE, bad=[("west", "east")], lies=[("north", "far")], may_miss=2, colluders=0
    ).run()
    assert world.curator.missing == ("west", "far")
    check_sums(world, ("north", "east", "south"), FIVE)


def test_a_second_bad_box_after_the_sum_was_begun_again(people):
    """With two that may miss, the sum that is begun again deals boxes, too."""
    world = Dishonest(people, FIVE, bad=[("west", "east")], may_miss=2, colluders=0)
    spoil, first = world.spoilt, set(world.bad)

    def spoilt(name, message):
        world.bad = {("south", "east")} if "west" in world.curator.missing else first
        return spoil(name, message)

    world.spoilt = spoilt
    world.run()
    assert world.curator.missing == ("south", "west")
    check_sums(world, ("north", "east", "far"), FIVE)


def test_where_no_more_parties_may_go_missing_the_study_ends_by_name(people):
    gone = {"south": (0, Round.SHARE_KEYS)}
    world = Dishonest(people, bad=[("west", "east")], gone=gone).run()
    assert world.failed == (
        "party 'west' dealt a box of key shares in step 0 that 'east' cannot open, nor can any "
        "other; south went missing before. The study can do without 1 (may_miss)"
    )


def test_an_accuser_that_leaves_before_the_verdict_takes_its_accusation_along(people):
    world = Dishonest(people, lies=[("west", "east")])
    world.run(lambda name, m: of_round(m, Round.OPEN_BOX))
    world.take(world.curator.declare_missing("east"))
    world.vanished.add("east")
    world.run()
    check_sums(world, ("north", "south", "west"))


def at_dispute(people, **options):
    """A study in which east is about to hear that its box is disputed by west, which lies."""
    world = Dishonest(people, lies=[("east", "west")], **options)
    world.run(lambda name, m: of_round(m, Round.OPEN_BOX))
    return world, next(m for _, m in world.waiting if of_round(m, Round.OPEN_BOX))


def test_an_honest_dealer_opens_no_box_that_its_receiver_did_not_dispute(people):
    """A lying curator gets no share that it could not have from the receiver itself."""
    world, disputed = at_dispute(people)
    east = world.parties["east"]
    _, signature = disputed.payload
    for wrong in (
        ("north", signature),  # which is west's
        ("east", signature),
        ("nobody", signature),
        ("west", bytes(64)),
        (signature, "west"),
    ):
        with pytest.raises(RemoteProtocolError):
            east.receive(dataclasses.replace(disputed, payload=wrong))
    (effect,) = east.receive(disputed)
    assert of_round(effect.message, Round.OPEN_BOX)
    assert east.receive(disputed) == []  # it is answered once


def test_an_opened_box_opens_no_other(people):
    world, disputed = at_dispute(people)
    east = sum_of(world.parties["east"])
    secret = east.open_box(*disputed.payload)
    for name in ("north", "south"):
        route = east._to(name)
        assert (
            route.at_fault(east._dealt_box(name), secret=secret) == "east"
        )  # it fits no other box
    others = [secret.startswith(east._box_secrets[name]) for name in ("north", "south")]
    assert others == [False, False]


def test_an_accusation_of_a_box_that_is_not_there_or_of_another_sum_is_refused(people):
    world, _ = at_dispute(people)
    curator, study = world.curator, world.study.digest
    lies = Dishonest(people, lies=[("east", "west")])
    lies.run(lambda name, m: name == "north" and of_round(m, Round.SHARE_KEYS))
    for dealer in ("north", "nobody", "south"):
        accused = say(Round.ACCUSE, dealer, bytes(64), study=study)
        with pytest.raises(RemoteProtocolError):
            lies.curator.receive("south", accused)
    assert curator.side.awaits == (Round.OPEN_BOX,)
    with pytest.raises(RemoteProtocolError, match="is not expected"):
        curator.receive("north", say(Round.ACCUSE, "e", bytes(64), study=study))


def test_who_sent_words_or_accused_before_cannot_accuse(people):
    world = Dishonest(people, lies=[("east", "west")])
    world.run(lambda name, m: name == "north" and of_round(m, Round.SHARE_KEYS))
    accused = {}
    for name in ("north", "west"):
        keys = next(m for to, m in world.waiting if to == name and of_round(m, Round.SHARE_KEYS))
        world.lies[name] = "east"
        accused[name] = world.lie(name, keys)[0].message
    world.take(world.curator.receive("west", accused["west"]))
    assert world.curator.receive("west", accused["west"]) == []  # the same again: nothing
    again = dataclasses.replace(accused["west"], payload=("north", accused["west"].payload[1]))
    with pytest.raises(RemoteProtocolError):
        world.curator.receive("west", again)
    del world.lies["north"], world.lies["west"]
    world.parties["north"].side._at = At.SHARING_KEYS
    keys = next(m for to, m in world.waiting if to == "north" and of_round(m, Round.SHARE_KEYS))
    world.deliver("north", keys)  # its words are in
    with pytest.raises(RemoteProtocolError, match="not expected here"):
        world.curator.receive("north", accused["north"])


def test_answers_that_were_not_asked_for_are_refused(people):
    world, _ = at_dispute(people)
    for sender, receiver in (("north", "west"), ("east", "north"), ("west", "east")):
        answer = say(Round.OPEN_BOX, receiver, bytes(range(32)), study=world.study.digest)
        with pytest.raises(RemoteProtocolError):
            world.curator.receive(sender, answer)
    world.run()
    assert world.curator.missing == ("west",)


def test_a_box_that_the_curator_changed_is_not_blamed_on_its_dealer(people):
    world = World(people)
    world.run(lambda name, m: name == "east" and of_round(m, Round.SHARE_KEYS))
    honest = next(m for to, m in world.waiting if to == "east" and of_round(m, Round.SHARE_KEYS))
    size = KEY_BYTES + BOX_BYTES
    for place in range(0, 3 * size, 7):  # in keys, boxes and signatures
        missing, payload = honest.payload
        changed = dataclasses.replace(honest, payload=(missing, _flip(payload, place)))
        with pytest.raises(RemoteProtocolError, match="its signature is wrong"):
            world.parties["east"].receive(changed)
    assert world.parties["east"].side.awaits == (Round.SHARE_KEYS,)


def test_a_box_without_its_dealers_signature_is_refused_by_the_curator(people):
    world = World(people)
    world.run(lambda name, m: name == "west" and isinstance(m, StepOpened))
    (effect,) = world.parties["west"].receive(
        next(m for to, m in world.waiting if to == "west" and isinstance(m, StepOpened))
    )
    (dealt,) = effect.message.payload
    for place in (0, KEY_BYTES, KEY_BYTES + 40, KEY_BYTES + 3 * BOX_BYTES - 1):
        changed = dataclasses.replace(effect.message, payload=(_flip(dealt, place),))
        with pytest.raises(RemoteProtocolError, match="from 'west' to"):
            world.curator.receive("west", changed)
    low = bytes(KEY_BYTES) + dealt[KEY_BYTES:]
    with pytest.raises(RemoteProtocolError, match="low order"):
        world.curator.receive("west", dataclasses.replace(effect.message, payload=(low,)))


def test_a_curator_that_judges_wrongly_is_refused(people):
    world = Dishonest(people, bad=[("west", "east")])
    world.run(lambda name, m: name == "north" and of_round(m, Round.JUDGE))
    judged = next(m for to, m in world.waiting if to == "north" and of_round(m, Round.JUDGE))
    north = world.parties["north"]
    dealer, receiver, evidence, *proof = judged.payload
    signature, secret = proof
    for wrong in (
        ("south", receiver, evidence, *proof),
        (dealer, "south", evidence, *proof),
        ("nobody", receiver, evidence, *proof),
        (dealer, receiver, evidence, bytes(64), secret),
        (dealer, receiver, evidence[:-1], signature, secret),
        (dealer, receiver, evidence, signature),
    ):
        with pytest.raises(RemoteProtocolError):
            north.receive(dataclasses.replace(judged, payload=wrong))
    north.receive(judged)
    opened = next(m for to, m in world.waiting if to == "north" and isinstance(m, StepOpened))
    for missing in ((), ("east",), ("south",)):  # keeps the one at fault
        with pytest.raises(RemoteProtocolError):
            north.receive(dataclasses.replace(opened, missing=missing))
    with pytest.raises(RemoteProtocolError, match="goes on with west, which is at fault"):
        north.receive(say(Round.CONSISTENCY_CHECK, (), study=world.study.digest))
    world.run()
    check_sums(world, ("north", "east", "south"))


def test_a_sum_is_not_begun_again_with_the_same_parties_or_after_a_signature(people):
    world = World(people)
    world.run(lambda name, m: name == "north" and of_round(m, Round.CONSISTENCY_CHECK))
    north = world.parties["north"]
    first = next(m for m in world.told["north"] if isinstance(m, StepOpened))
    again = dataclasses.replace(first, opening=b"again")
    with pytest.raises(RemoteProtocolError, match="the same parties are in it"):
        north.receive(again)
    check = Round.CONSISTENCY_CHECK
    listed = next(m for to, m in world.waiting if to == "north" and of_round(m, check))
    north.receive(listed)
    without = dataclasses.replace(first, missing=("west",))
    with pytest.raises(RemoteProtocolError, match="StepOpened is not expected"):
        north.receive(without)


def test_words_of_a_sum_that_is_begun_again_share_no_mask_with_the_first(people):
    """Both words of a party are uniform to whoever lacks its own mask: no cell repeats."""
    world = Dishonest(people, bad=[("west", "east")]).run()
    sent = [m for m in world.sent["north"] if of_round(m, Round.MASKED_INPUT) and not m.step]
    words = [message.payload[1] for message in sent]
    first, second = (np.frombuffer(payload[-8 * 5 :], dtype="<u8") for payload in words)
    assert not np.any(first == second)
    assert len({int(each) for each in first - second}) == len(first)


def test_a_party_that_was_killed_comes_back_to_the_same_accusation(people):
    """A replay of what it received gives the same bytes, and so does the dealer's answer."""
    world = Dishonest(people, bad=[("west", "east")]).run()
    lying = Dishonest(people, lies=[("west", "east")]).run()
    for party_of, name, kind in ((world, "east", Round.ACCUSE), (lying, "west", Round.OPEN_BOX)):
        rows, identities, _ = people
        again = party_role(party_of.study, Sums, name, identities[name], rows[name])
        answers = [
            effect.message
            for message in party_of.told[name]
            for effect in again.receive(message)
            if isinstance(effect, SendToCurator)
        ]
        seeds = bool(party_of.study.agreement)  # are in envelopes, which differ
        assert answers[seeds:] == party_of.sent[name][seeds:]
        assert any(of_round(answer, kind) for answer in answers)
        assert again.state is party_of.parties[name].state


class Pair:
    """A dealer, a receiver, and a good box between them."""

    def __init__(self, *, hybrid):
        self.plan = plan_of(("one", "two", "three"), colluders=0, hybrid=hybrid)
        people = {name: Identity.generate(SeededRandomSource(name)) for name in self.plan.parties}
        members = members_of(people, self.plan.parties, hybrid=hybrid)
        self.dealer, self.receiver = people["one"], people["two"]
        self.roster, source = members["one"].roster, SeededRandomSource("boxes")
        self.secret = source.random_bytes(32)
        self.route = BoxRoute(
            self.plan, self.roster, source.random_bytes(32), dealer="one", receiver="two"
        )
        self.shares = tuple(split(source.random_bytes(32), holders=2, threshold=2, source=source))
        self.sealing = members["one"].seeds_with("two") if hybrid else None
        self.opening = members["two"].seeds_with("one") if hybrid else None
        self.answer = self.secret
        if self.sealing is not None:
            self.answer += self.sealing.sealing + self.sealing.signature

    def box(self, seeds=None):
        """Return a box with good shares, sealed under the seed of the two or another."""
        seeds = seeds or self.sealing
        return self.route.seal(self.shares, secret=self.secret, signer=self.dealer, seeds=seeds)

    def opens(self, box):
        return self.route.open(box, self.receiver, seeds=self.opening) is not None

    def at_fault(self, box, answer=None):
        """Return who is at fault if the receiver accuses and the dealer answers."""
        dispute = Dispute(
            dealer="one",
            receiver="two",
            evidence=self.route.public + box,
            signature=self.route.accuse(box, self.receiver),
            secret=self.answer if answer is None else answer,
        )
        return dispute.at_fault(self.plan, self.roster)


@pytest.mark.parametrize("hybrid", [False, True])
def test_the_verdict_is_the_receivers_own_attempt_whichever_byte_is_wrong(hybrid):
    """Every byte of a box, changed by a dealer that signs it: both sides agree on every one."""
    pair = Pair(hybrid=hybrid)
    route, good = pair.route, pair.box()
    assert route.open(good, pair.receiver, seeds=pair.opening) == pair.shares
    low = bytes(KEY_BYTES) + good[KEY_BYTES:_SEALED]
    wrong = [_flip(good[:_SEALED], at) for at in range(_SEALED)]
    own = X25519PrivateKey.from_private_bytes(pair.secret)
    agreed = own.exchange(pair.receiver.public.agreement_key)
    cipher = route._cipher(good[:KEY_BYTES], agreed, pair.answer[32:64])
    beyond = good[:KEY_BYTES] + cipher.encrypt(bytes(12), b"\xff" * 66, route.public)
    for sealed in (good[:_SEALED], low, beyond, *wrong):
        box = sealed + pair.dealer.sign(route._statement("share box", sealed))
        assert pair.opens(box) == (sealed == good[:_SEALED])
        assert pair.at_fault(box) == ("two" if pair.opens(box) else "one")
    # A dealer that does not answer for the box that it dealt is at fault.
    assert pair.at_fault(good, bytes(range(32)) + pair.answer[32:]) == "one"
    dispute = Dispute(
        dealer="one", receiver="two", evidence=route.public + good, signature=bytes(64),
        secret=pair.answer,
    )  # fmt: skip
    with pytest.raises(RemoteProtocolError, match="'two' did not sign"):
        dispute.at_fault(pair.plan, pair.roster)


def test_no_seed_but_the_receivers_own_is_an_answer():
    """A dealer seals a box under another seed, or none, and answers with what opens it."""
    pair = Pair(hybrid=True)
    seeds, secret, study = pair.sealing, pair.secret, pair.plan.study
    dealer, receiver = pair.dealer.public, pair.receiver.public
    invented = bytes(range(32))

    def signed(by, *ends, seed=invented, of=study):
        return by.sign(seed_statement(of, *ends, seed))

    for signature in (
        seeds.signature,  # under the right seed
        signed(pair.dealer, receiver, dealer),
        signed(pair.dealer, dealer, receiver),
        signed(pair.receiver, receiver, dealer, of=bytes([1]) * 32),  # of another study
        signed(pair.receiver, receiver, receiver),  # for another dealer
        signed(pair.receiver, receiver, dealer, seed=bytes(32)),
        bytes(64),
    ):
        other = dataclasses.replace(seeds, sealing=invented, signature=signature)
        box = pair.box(other)
        assert not pair.opens(box)
        assert pair.at_fault(box, secret + invented + signature) == "one"
        assert pair.at_fault(box) == "one", "nor with the right seed"
    plain = dataclasses.replace(seeds, sealing=b"")
    assert not pair.opens(pair.box(plain))
    for answer in (secret, secret + seeds.signature, pair.answer, pair.answer[:-1], b""):
        assert pair.at_fault(pair.box(plain), answer) == "one"
    assert pair.at_fault(pair.box()) == "two", "who accuses a good box leaves"


def _flip(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
