"""Masked sums that do without missing parties: what they add up to, and what they show."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.framing import frame, unframe
from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.agreement import SeedExchange
from common.crypto.sums.masks import PairwiseMasks, partners
from common.crypto.sums.missing_lists import in_order
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.crypto.sums.recovery import (
    RecoverableCurator,
    RecoverableParty,
    holders_of,
    threshold_of,
)
from common.errors import InputError, RemoteProtocolError
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource


class NoNoise:
    """A law without noise, so that a total can be compared with the exact sum."""

    name, norm, scale, nominal_variance = "none", 1, Fraction(1), Fraction(0)

    def draw_share(self, count, *, makers, source):
        assert makers >= 1
        return np.zeros(count, dtype=np.int64)

    def bound(self, draws):
        return 0


def plan_of(names, *, may_miss=1, colluders=1, cells=5, law=None, step=0, hybrid=False):
    return SumPlan(
        study=bytes(32),
        step=step,
        parties=tuple(names),
        limits=(10**7,) * len(names),
        cells=cells,
        noise=Noise.DISTRIBUTED,
        law=law or NoNoise(),
        colluders=colluders,
        may_miss=may_miss,
        hybrid=hybrid,
        aggregation=Aggregation.MASKED,
    )


def run_recoverable_sum(plan, vectors, members, *, gone, source):
    """The whole protocol in one process.

    Args:
        plan: of the sum.
        vectors: for each party its cells, shape (cells,).
        members: for each party its keys and all identities.
        gone: for each party that goes missing, the first round (1 to 4) it does not answer.
        source: the randomness of all parties; in a deployment each has its own.
    """
    identities = {name: member.identity.public for name, member in members.items()}
    curator = RecoverableCurator(plan, identities)
    parties = {name: RecoverableParty(plan, members[name], source=source) for name in plan.parties}

    def there(round_: int) -> list[str]:
        return [name for name in plan.parties if gone.get(name, 5) > round_]

    for name in there(1):
        curator.take_offer(name, parties[name].offer())
    absent = in_order(plan.parties, [name for name in plan.parties if name not in there(1)])
    relayed = curator.relay(absent)
    for name in there(2):
        assert parties[name].take_boxes(relayed[name], absent) is None
        words = parties[name].contribute(vectors[name], source=source)
        for number, chunk in enumerate(words):
            curator.accept(name, number, chunk)
    missing = curator.close()
    for name in there(3):
        curator.take_signature(name, parties[name].sign(missing))
    for name in there(4):
        curator.take_revealed(name, parties[name].reveal(curator.signatures_for(name)))
    return curator.total()


def members_of(identities, names, *, hybrid=False):
    """Return each party with its keys; `hybrid` parties exchanged seeds with all others."""
    roster = {name: identities[name].public for name in names}
    members = {n: LocalParty(name=n, identity=identities[n], roster=roster) for n in names}
    if not hybrid:
        return members
    halves, sealed = {}, {}
    for name, member in members.items():
        others = [other for other in names if other != name]
        halves[name] = SeedExchange(member, bytes(32), others, others)
        offered = unframe(halves[name].offer(SeededRandomSource(f"seeds of {name}")))
        sealed |= {(name, other): each for other, each in zip(others, offered, strict=True)}
    return {
        name: half.secrets(frame(sealed[other, name] for other in names if other != name))
        for name, half in halves.items()
    }


def vectors_of(names, cells=5):
    return {name: np.arange(cells) * 10**place for place, name in enumerate(names)}


class Table:
    """A sum whose curator can be made to lie."""

    def __init__(self, identities, names, **options):
        self.plan, self.names = plan_of(names, **options), tuple(names)
        self.members = members_of(identities, names, hybrid=self.plan.hybrid)
        self.source = SeededRandomSource("table")
        self.parties = {
            name: RecoverableParty(self.plan, self.members[name], source=self.source)
            for name in names
        }
        self.curator = RecoverableCurator(
            self.plan, {name: identities[name].public for name in names}
        )
        self.vectors = vectors_of(names, self.plan.cells)
        self.words = {}

    def until_words(self, silent=()):
        for name, party in self.parties.items():
            self.curator.take_offer(name, party.offer())
        self.relayed = self.curator.relay(())
        for name, party in self.parties.items():
            assert party.take_boxes(self.relayed[name], ()) is None
            self.words[name] = party.contribute(self.vectors[name], source=self.source)
            if name not in silent:
                for number, chunk in enumerate(self.words[name]):
                    self.curator.accept(name, number, chunk)
        return self


NAMES = tuple(f"party-{number}" for number in range(4))


def every_way_to_go(names, most):
    """For each set of at most `most` parties, every round each of them can be gone from."""
    for count in range(most + 1):
        for gone in itertools.combinations(names, count):
            for rounds in itertools.product(range(1, 5), repeat=count):
                yield dict(zip(gone, rounds, strict=True))


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("parties", "may_miss", "colluders"), [(3, 1, 0), (4, 1, 1), (5, 2, 0), (6, 2, 1)]
)
def test_whoever_is_missing_whenever_the_rest_adds_up(
    identities, parties, may_miss, colluders, hybrid
):
    names = [f"party-{number}" for number in range(parties)]
    plan = plan_of(names, may_miss=may_miss, colluders=colluders, hybrid=hybrid)
    members, vectors = members_of(identities, names, hybrid=hybrid), vectors_of(names)
    ways = list(every_way_to_go(names, may_miss))
    for gone in ways[:: 1 if parties < 5 else 5]:
        total = run_recoverable_sum(
            plan, vectors, members, gone=gone, source=SeededRandomSource(str(gone))
        )
        inside = [name for name in names if gone.get(name, 5) > 2]
        assert np.array_equal(total, sum(vectors[name] for name in inside)), gone


def test_one_more_missing_than_allowed_opens_nothing(identities):
    plan, members = plan_of(NAMES), members_of(identities, NAMES)
    vectors = vectors_of(NAMES)
    for first, second in itertools.combinations(NAMES, 2):
        for rounds in itertools.product(range(1, 5), repeat=2):
            gone = dict(zip((first, second), rounds, strict=True))
            with pytest.raises(RemoteProtocolError):
                run_recoverable_sum(
                    plan, vectors, members, gone=gone, source=SeededRandomSource("too many")
                )


def test_a_large_sum_has_few_holders_and_still_adds_up(identities):
    names = [f"p{number:03}" for number in range(60)]
    many = {name: Identity.generate(SeededRandomSource(name)) for name in names}
    plan, members = plan_of(names, may_miss=2), members_of(many, names)
    assert {len(holders_of(plan, name)) for name in names} == {33}
    assert threshold_of(plan, names[0]) == 31
    vectors = {name: np.full(5, place) for place, name in enumerate(names)}
    gone = {names[3]: 2, names[4]: 4}
    total = run_recoverable_sum(plan, vectors, members, gone=gone, source=SeededRandomSource("60"))
    assert np.array_equal(total, np.full(5, sum(range(60)) - 3))


@pytest.mark.parametrize(("colluders", "may_miss"), [(1, 1), (3, 2), (10, 5)])
def test_the_graph_is_as_the_proof_needs_it(colluders, may_miss):
    for parties in (200, 33, 10):
        degree = len(partners(7, parties=parties, colluders=colluders, may_miss=may_miss))
        if degree < parties - 1:
            assert degree // 2 > 2 * (colluders + may_miss)


def test_a_plan_needs_more_parties_than_colluders_and_twice_the_missing():
    plan_of(NAMES, may_miss=1, colluders=1)
    with pytest.raises(InputError, match="at least 5 parties"):
        plan_of(NAMES, may_miss=1, colluders=2)
    assert plan_of(NAMES).noise_makers == 2


def test_noise_is_calibrated_to_the_shares_that_are_sure_to_be_there():
    asked = []

    class Law(DiscreteLaplace):
        def draw_share(self, count, *, makers, source):
            asked.append(makers)
            return super().draw_share(count, makers=makers, source=source)

    names = [f"party-{number}" for number in range(6)]
    identities = {name: Identity.generate(SeededRandomSource(name)) for name in names}
    plan = plan_of(names, may_miss=2, colluders=1, law=Law(Fraction(3)))
    run_recoverable_sum(
        plan,
        vectors_of(names),
        members_of(identities, names),
        gone={},
        source=SeededRandomSource("calibrated"),
    )
    assert asked == [3] * 6


def test_two_lists_are_refused(identities):
    table = Table(identities, NAMES).until_words(silent=("party-3",))
    party = table.parties["party-0"]
    party.sign(("party-3",))
    with pytest.raises(RemoteProtocolError, match="a second list"):
        party.sign(())


def test_nothing_is_revealed_for_a_list_that_others_did_not_sign(identities):
    table = Table(identities, NAMES).until_words()
    parties = table.parties
    lists = {"party-0": (), "party-1": ("party-3",), "party-2": ("party-3",), "party-3": ()}
    signed = {name: parties[name].sign(lists[name]) for name in NAMES}
    with pytest.raises(RemoteProtocolError, match="'party-1' is not under this list"):
        parties["party-0"].reveal(b"".join(signed[name] for name in NAMES[1:]))
    with pytest.raises(RemoteProtocolError, match="signed by 2 of 4 holders, at least 3"):
        parties["party-0"].reveal(bytes(128) + signed["party-3"])


def test_no_way_to_split_the_lists_opens_two_sums(identities):
    """All assignments of lists to four parties: at most one list is ever acted upon."""
    choices = [(), ("party-0",), ("party-1",), ("party-2",), ("party-3",)]
    for lists in itertools.product(choices, repeat=4):
        if any(name in own for name, own in zip(NAMES, lists, strict=True)):
            continue  # refused when it is signed
        signers = {own: [n for n, o in zip(NAMES, lists, strict=True) if o == own] for own in lists}
        confirmed = [own for own, who in signers.items() if len(who) >= 3]
        assert len(confirmed) <= 1


def test_a_list_cannot_name_the_reader_strangers_too_many_or_forget_the_absent(identities):
    table = Table(identities, NAMES).until_words()
    party = table.parties["party-0"]
    for wrong in [("party-0",), ("nobody",), ("party-1", "party-2"), ("party-1", "party-1")]:
        with pytest.raises(RemoteProtocolError):
            party.sign(wrong)
    other = Table(identities, NAMES)
    for name in NAMES[:3]:
        other.curator.take_offer(name, other.parties[name].offer())
    relayed = other.curator.relay(("party-3",))
    party = other.parties["party-0"]
    party.take_boxes(relayed["party-0"], ("party-3",))
    party.contribute(other.vectors["party-0"], source=other.source)
    with pytest.raises(RemoteProtocolError, match="dealt no keys"):
        party.sign(())


def test_boxes_of_another_sum_or_another_party_do_not_open(identities):
    table, later = Table(identities, NAMES), Table(identities, NAMES, step=1)
    for name in NAMES:
        table.curator.take_offer(name, table.parties[name].offer())
        later.curator.take_offer(name, later.parties[name].offer())
    now, then = table.curator.relay(()), later.curator.relay(())
    for wrong in (then["party-0"], now["party-1"], now["party-0"][:-1] + b"\0"):
        with pytest.raises(RemoteProtocolError, match="signature is wrong"):
            table.parties["party-0"].take_boxes(wrong, ())


def test_words_of_a_party_come_whole_or_not_at_all(identities):
    cells = (1 << 16) + 7
    table = Table(identities, NAMES, cells=cells)
    for name in NAMES:
        table.curator.take_offer(name, table.parties[name].offer())
    relayed = table.curator.relay(())
    vectors = {name: np.full(cells, place) for place, name in enumerate(NAMES)}
    for name in NAMES:
        table.parties[name].take_boxes(relayed[name], ())
        words = table.parties[name].contribute(vectors[name], source=table.source)
        for number, chunk in enumerate(words[: 1 if name == "party-1" else 2]):
            table.curator.accept(name, number, chunk)
    assert table.curator.close() == ("party-1",)
    for name in ("party-0", "party-2", "party-3"):
        table.curator.take_signature(name, table.parties[name].sign(("party-1",)))
    for name in ("party-0", "party-2", "party-3"):
        shown = table.curator.signatures_for(name)
        table.curator.take_revealed(name, table.parties[name].reveal(shown))
    assert np.array_equal(table.curator.total(), np.full(cells, 0 + 2 + 3))


def test_a_late_word_stays_closed(identities):
    """The curator has all words and the key of the one it called missing: its own mask remains."""
    table = Table(identities, NAMES).until_words(silent=("party-3",))
    missing = table.curator.close()
    for name in NAMES[:3]:
        table.curator.take_signature(name, table.parties[name].sign(missing))
    for name in NAMES[:3]:
        shown = table.curator.signatures_for(name)
        table.curator.take_revealed(name, table.parties[name].reveal(shown))
    table.curator.total()
    secret = table.curator._opened("party-3")
    pairs = table.curator._pairs_of("party-3", secret)
    after = [key for other, _, key in pairs if other < "party-3"]
    late = np.frombuffer(table.words["party-3"][0][17:], dtype="<u8")
    unmasked = late + PairwiseMasks(before=[], after=after).word_masks(first=0, count=5)
    own = table.parties["party-3"]
    assert not np.array_equal(unmasked.view(np.int64), table.vectors["party-3"])
    shares_of_own_mask = [own._dealt[name][0] for name in NAMES]
    revealed = b"".join(b"".join(each.values()) for each in table.curator._revealed.values())
    assert not any(share in revealed for share in shares_of_own_mask)


def test_brute_force_over_all_masks_of_a_small_graph():
    """Modulo 3, four parties, every value of every mask, every list: what is seen is uniform
    among all words with the same sum over the list, and over nothing smaller."""
    modulus, parties = 3, 4
    pairs = list(itertools.combinations(range(parties), 2))
    for missing in [(), (0,), (1,), (2,), (3,)]:
        listed = [p for p in range(parties) if p not in missing]
        views = {}
        for values in [(0, 0, 0, 0), (1, 2, 0, 1), (2, 0, 1, 1), (1, 0, 0, 0)]:
            seen = {}
            # What is revealed: own masks of the listed, pair masks of the missing. Set to 0 here:
            # they are known, so they can be subtracted. The others take every value.
            hidden_pairs = [pair for pair in pairs if not set(pair) & set(missing)]
            for masks in itertools.product(range(modulus), repeat=len(hidden_pairs)):
                for own in itertools.product(range(modulus), repeat=len(missing)):
                    words = list(values)
                    for (first, second), mask in zip(hidden_pairs, masks, strict=True):
                        words[first] = (words[first] + mask) % modulus
                        words[second] = (words[second] - mask) % modulus
                    for party, mask in zip(missing, own, strict=True):
                        words[party] = (words[party] + mask) % modulus
                    seen[tuple(words)] = seen.get(tuple(words), 0) + 1
            total = sum(values[p] for p in listed) % modulus
            assert len(set(seen.values())) == 1  # uniform
            assert len(seen) == modulus ** (parties - 1)
            assert {sum(w[p] for p in listed) % modulus for w in seen} == {total}
            assert views.setdefault(total, seen) == seen  # a function of the total alone
        assert len(views) > 1


def test_a_chunk_comes_once_and_from_a_party_of_the_sum(identities):
    table = Table(identities, NAMES).until_words()
    with pytest.raises(RemoteProtocolError, match="not expected"):
        table.curator.accept("party-0", 0, table.words["party-0"][0])
    with pytest.raises(RemoteProtocolError, match="takes no part"):
        table.curator.accept("x", 0, b"")
