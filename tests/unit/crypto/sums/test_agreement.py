"""Seeds under a hybrid KEM: both ends agree, no end falls back, and no change gets through."""

from itertools import combinations

import numpy as np
import pytest

from common.crypto.framing import frame, unframe
from common.crypto.identities.envelope import Mailbox
from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.sums.agreement import SeedExchange, is_drawn
from common.crypto.sums.masks import PairwiseMasks
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource

STUDY, OTHER = bytes(32), bytes([1]) * 32
NAMES = tuple("abcde")
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in NAMES}
ROSTER = {name: identity.public for name, identity in IDENTITIES.items()}


def member(name):
    return LocalParty(name=name, identity=IDENTITIES[name], roster=ROSTER)


def exchanges(names=NAMES, *, study=STUDY, seed="seeds"):
    """Return every party's half, and what each offered, by recipient."""
    halves, offered = {}, {}
    for place, name in enumerate(names):
        after = names[place + 1 :]
        halves[name] = SeedExchange(member(name), study, names[:place], after)
        sealed = unframe(halves[name].offer(SeededRandomSource(f"{seed}/{name}")))
        offered |= {(name, other): each for other, each in zip(after, sealed, strict=True)}
    return halves, offered


def relayed(offered, name):
    return frame(envelope for (_, to), envelope in offered.items() if to == name)


def agreed(names=NAMES, **words):
    halves, offered = exchanges(names, **words)
    return {name: half.secrets(relayed(offered, name)) for name, half in halves.items()}


def test_both_ends_of_every_pair_have_one_secret_that_x25519_does_not_give():
    parties = agreed()
    pairs = list(combinations(NAMES, 2))
    secrets = {parties[a].agree(b) for a, b in pairs}
    assert all(parties[a].agree(b) == parties[b].agree(a) for a, b in pairs)
    assert len(secrets) == len(pairs)
    assert not secrets & {member(a).agree(b) for a, b in pairs}
    assert not secrets & {agreed(study=OTHER)[a].agree(b) for a, b in pairs}, "of one study"
    assert not secrets & {agreed(seed="others")[a].agree(b) for a, b in pairs}, "drawn, not derived"


@pytest.mark.parametrize("count", range(2, 6))
def test_masks_of_exchanged_seeds_cancel_and_are_not_those_of_x25519(count):
    names = NAMES[:count]
    words = {"plan_digest": bytes(32), "order": names, "colluders": 1}
    masks = {
        name: PairwiseMasks.agree(party, **words).word_masks(first=0, count=9)
        for name, party in agreed(names).items()
    }
    values = {name: np.arange(9, dtype=np.uint64) * (place + 1) for place, name in enumerate(names)}
    total = sum((values[name] + masks[name] for name in names), np.zeros(9, np.uint64))
    assert np.array_equal(total, sum(values.values()))
    for name in names:  # what a quantum computer gets from the identities alone
        recorded = PairwiseMasks.agree(member(name), **words).word_masks(first=0, count=9)
        assert not (recorded == masks[name]).any()


def spoilt(offered, change):
    changed = dict(offered)
    change(changed)
    return changed


def flip(offered):
    envelope = bytearray(offered["a", "c"])
    envelope[-1] ^= 1
    offered["a", "c"] = bytes(envelope)


def swap(offered):
    offered["a", "c"], offered["b", "c"] = offered["b", "c"], offered["a", "c"]


def of_another_study(offered):
    offered["a", "c"] = exchanges(study=OTHER)[1]["a", "c"]


def to_another_party(offered):
    offered["a", "c"] = offered["a", "d"]


def leave_out(offered):
    del offered["a", "c"]


def repeat(offered):
    offered["b", "c"] = offered["a", "c"]


@pytest.mark.parametrize(
    "change", [flip, swap, of_another_study, to_another_party, leave_out, repeat]
)
def test_a_changed_swapped_or_repeated_envelope_is_refused(change):
    halves, offered = exchanges()
    with pytest.raises(RemoteProtocolError):
        halves["c"].secrets(relayed(spoilt(offered, change), "c"))
    assert halves["c"].secrets(relayed(offered, "c")).agree("a"), "and nothing changed"


@pytest.mark.parametrize("payload", [b"x", frame(["text"]), b"s\0\0\0\1\xff", frame([1, 2])])
def test_what_holds_no_envelopes_is_refused(payload):
    with pytest.raises(RemoteProtocolError, match="expected 2 sealed envelopes"):
        exchanges()[0]["c"].secrets(payload)


def test_there_is_no_way_back_to_x25519_alone():
    party = agreed(NAMES[:3])["a"]
    with pytest.raises(LocalError, match="'a' exchanged no seed with 'd'"):
        party.agree("d")
    assert "secret" not in repr(party).replace("secrets", "")


def mutual(names=NAMES, *, study=STUDY, seed="seeds"):
    """Return every party's half where each of two draws a seed, and what was offered."""
    halves, offered = {}, {}
    for name in names:
        others = [other for other in names if other != name]
        halves[name] = SeedExchange(member(name), study, others, others)
        sealed = unframe(halves[name].offer(SeededRandomSource(f"{seed}/{name}")))
        offered |= {(name, other): each for other, each in zip(others, sealed, strict=True)}
    return halves, offered


def test_where_both_draw_a_seed_both_have_one_secret_and_the_seeds_of_boxes():
    halves, offered = mutual()
    parties = {name: half.secrets(relayed(offered, name)) for name, half in halves.items()}
    pairs = list(combinations(NAMES, 2))
    assert len({parties[a].agree(b) for a, b in pairs}) == len(pairs)
    drawn = set()
    for a, b in pairs:
        assert parties[a].agree(b) == parties[b].agree(a)
        here, there = parties[a].seeds_with(b), parties[b].seeds_with(a)
        assert (here.opening, here.sealing) == (there.sealing, there.opening)
        drawn |= {here.opening, here.sealing}
        for seeds, drawer, dealer in ((here, b, a), (there, a, b)):
            ends = ROSTER[drawer], ROSTER[dealer]
            words = {"seed": seeds.sealing, "signature": seeds.signature}
            assert is_drawn(STUDY, *ends, **words)
            assert not is_drawn(OTHER, *ends, **words)
            assert not is_drawn(STUDY, *reversed(ends), **words)
    assert len(drawn) == 2 * len(pairs)
    # Both seeds are in the secret of a pair: another one changes it, whoever drew it.
    again, others = mutual(seed="others")
    one = halves["a"].secrets(relayed(offered | {("b", "a"): others["b", "a"]}, "a")).agree("b")
    two = again["a"].secrets(relayed(others | {("b", "a"): offered["b", "a"]}, "a")).agree("b")
    assert len({one, two, parties["a"].agree("b")}) == 3
    assert "opening" not in repr(parties["a"])


@pytest.mark.parametrize("change", [flip, swap, to_another_party, leave_out, repeat])
def test_a_changed_envelope_is_refused_where_both_draw(change):
    halves, offered = mutual()
    with pytest.raises(RemoteProtocolError):
        halves["c"].secrets(relayed(spoilt(offered, change), "c"))
    assert halves["c"].secrets(relayed(offered, "c")).seeds_with("a")


@pytest.mark.parametrize(
    "word", [bytes(32), bytes(96), bytes(95), b"", bytes(32) + IDENTITIES["a"].sign(b"x")]
)
def test_a_seed_that_its_drawer_did_not_sign_is_refused(word):
    halves, offered = mutual()
    mailbox = Mailbox(member("a"), study=STUDY, step=0)
    offered["a", "c"] = mailbox.seal("c", topic="pairwise seeds 2", plaintext=word)
    with pytest.raises(RemoteProtocolError, match="'a' did not sign the seed that it sealed"):
        halves["c"].secrets(relayed(offered, "c"))


def test_who_offered_no_seeds_is_left_out():
    halves, offered = mutual()
    there = {pair: envelope for pair, envelope in offered.items() if pair[0] != "b"}
    party = halves["c"].secrets(relayed(there, "c"), ("b",))
    assert party.agree("a")
    assert party.seeds_with("a")
    for ask in (party.agree, party.seeds_with):
        with pytest.raises(LocalError, match="exchanged no seed"):
            ask("b")
