"""Studies in which parties go missing: all of them, everywhere, and curators that lie about it."""

import dataclasses
import itertools
from collections import deque
from fractions import Fraction

import numpy as np
import pytest

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError, RemoteProtocolError
from common.exchanges.recoverable import Round
from common.marginals import count
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, concatenate
from common.study.messages import (
    PartyRefused,
    ResultPublished,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
)
from common.study.requests import read_cells
from common.study.states import TRANSITIONS, If, RoleState
from curator.role import Fail, SendToParty
from party.role import ChargeBudget
from tests.harness.roles import make_roles
from tests.harness.rounds import moment, of_round, say
from tests.harness.small_study import SIZES, Sums, make_study

NAMES = ("north", "east", "south", "west")
MOMENTS = (
    StepOpened, Round.SHARE_KEYS, Round.CONSISTENCY_CHECK, Round.UNMASK, ResultPublished,
)  # fmt: skip
WITH_SEEDS = pytest.mark.parametrize("people", ["hybrid"], indirect=True)
LARGE = Fraction(10**6)  # next to no noise: sums must come out right


@pytest.fixture(scope="module", params=["", "hybrid"])
def people(request):
    """Return tables, identities, and how the parties agree on keys."""
    rng = np.random.default_rng(3)
    tables, identities = {}, {}
    for place, name in enumerate((*NAMES, "far")):
        rows = 20 + 7 * place
        tables[name] = Codes.from_columns([rng.integers(0, size, rows) for size in SIZES], SIZES)
        identities[name] = Identity.generate(SeededRandomSource(name))
    return tables, identities, request.param


class World:
    """A study in one process. Each party vanishes when it would receive a certain message.

    `seedless` are parties that vanish before or after they offered seeds: when they would receive a
    message of this kind.
    """

    def __init__(self, people, names=NAMES, *, gone=None, epsilon=LARGE, seedless=None, **options):
        self.tables = {name: people[0][name] for name in names}
        identities = {name: people[1][name] for name in names}
        rows = {name: table.rows for name, table in self.tables.items()}
        fields = {"aggregation": Aggregation.MASKED, "may_miss": 1, "colluders": 1, **options}
        if fields["aggregation"] is Aggregation.MASKED:
            fields["agreement"] = people[2]
        self.study = make_study(identities, rows, epsilon=epsilon, **fields)
        self.gone, self.seedless = gone or {}, seedless or {}
        self.curator, self.parties = make_roles(self.study, Sums, identities, self.tables)
        self.vanished, self.failed = set(), None
        self.charges = {name: [] for name in names}
        self.sent = {name: [] for name in names}
        self.told = {name: [] for name in names}
        self.waiting = deque()

    def deliver(self, name, message):
        """Give a message to a party, and what it says to the curator."""
        self.told[name].append(message)
        for effect in self.parties[name].receive(message):
            if isinstance(effect, ChargeBudget):
                self.charges[name].append(effect)
            else:
                self.sent[name].append(effect.message)
                self.take(self.curator.receive(name, effect.message))

    def take(self, effects):
        for effect in effects:
            if isinstance(effect, Fail):
                self.failed = effect.reason
            elif isinstance(effect, SendToParty):
                self.waiting.append((effect.to, effect.message))

    def vanishes(self, name, message):
        if self.sets_up(name, message):
            return moment(message) == self.seedless.get(name)
        step, when = self.gone.get(name, (None, None))
        return moment(message) == when and message.step == step

    def sets_up(self, name, message):
        """Say whether a message belongs to what precedes the first step."""
        return isinstance(message, StudyOpened) or (
            of_round(message, Round.SHARE_KEYS) and self.parties[name].state is RoleState.SETTING_UP
        )

    def run(self, until=lambda name, message: False):
        """Until nothing moves; the curator gives up whoever it waits for in vain."""
        if self.curator.state is RoleState.NOT_OPEN:
            self.take(self.curator.start())
        while self.waiting or set(self.curator.waiting_for) & self.vanished:
            if not self.waiting:
                name = min(set(self.curator.waiting_for) & self.vanished)
                self.take(self.curator.declare_missing(name))
                continue
            name, message = self.waiting[0]
            if until(name, message) and not self.sets_up(name, message):
                return self
            self.waiting.popleft()
            if self.vanishes(name, message):
                self.vanished.add(name)
            if name not in self.vanished:
                self.deliver(name, message)
        return self

    def truth(self, names):
        tables = count(concatenate([self.tables[name] for name in names]), [(0,), (0, 1)])
        return np.concatenate([table.reshape(-1) for table in tables])


def in_sum(gone, names, step):
    """Who is in the sum of a step: all whose words left before they vanished."""
    inside = []
    for name in names:
        when, told = gone.get(name, (99, None))
        late = told in (Round.CONSISTENCY_CHECK, Round.UNMASK, ResultPublished)
        if step < when or (step == when and late):
            inside.append(name)
    return tuple(inside)


def check(world, gone, names):
    assert world.failed is None, gone
    assert world.curator.state is RoleState.FINISHED, gone
    made = world.curator.steps
    assert [step.parties for step in made] == [in_sum(gone, names, n) for n in range(3)], gone
    for number, result in enumerate(world.curator.results):
        inside = in_sum(gone, names, number)
        assert np.array_equal(read_cells(result, made[number].cells), world.truth(inside)), gone
    for name in names:
        words = {m.step for m in world.sent[name] if of_round(m, Round.MASKED_INPUT)}
        assert [f"tables {n}" for n in sorted(words)] == [c.step for c in world.charges[name]]
        assert words == {n for n in range(3) if name in in_sum(gone, names, n)}, gone
        if name not in gone:
            assert world.parties[name].state is RoleState.FINISHED


def test_every_party_at_every_moment_can_go_missing(people):
    for name, step, told in itertools.product(NAMES, range(3), MOMENTS):
        gone = {name: (step, told)}
        check(World(people, gone=gone).run(), gone, NAMES)


@pytest.mark.parametrize("stride", [61, pytest.param(2, marks=pytest.mark.slow)])
def test_two_parties_at_any_two_moments_can_go_missing(people, stride):
    names = (*NAMES, "far")
    when = list(itertools.product(range(2), MOMENTS))
    pairs = itertools.product(itertools.combinations(names, 2), when, when)
    for (one, other), first, second in list(pairs)[::stride]:
        gone = {one: first, other: second}
        world = World(people, names, gone=gone, may_miss=2, colluders=0)
        check(world.run(), gone, names)


@WITH_SEEDS
@pytest.mark.parametrize("when", [StudyOpened, Round.SHARE_KEYS])
def test_every_party_can_go_missing_before_or_after_it_offered_seeds(people, when):
    for name in NAMES:
        world = World(people, seedless={name: when}).run()
        check(world, {name: (0, StepOpened)}, NAMES)
        told = world.told[next(each for each in NAMES if each != name)]
        relayed = next(m for m in told if of_round(m, Round.SHARE_KEYS))
        assert relayed.payload[0] == ((name,) if when is StudyOpened else ())
    names = (*NAMES, "far")
    ways = itertools.product(itertools.permutations(names, 2), range(2), MOMENTS)
    for (one, other), step, later in list(ways)[::13]:
        gone = {other: (step, later)}
        world = World(people, names, gone=gone, seedless={one: when}, may_miss=2, colluders=0).run()
        check(world, {one: (0, StepOpened), **gone}, names)


@WITH_SEEDS
def test_one_more_than_may_miss_before_the_first_step_ends_the_study(people):
    world = World(people, seedless={"north": StudyOpened, "west": StudyOpened}).run()
    assert "went missing before. The study can do without 1 (may_miss)" in world.failed
    assert all(not charges for charges in world.charges.values())


@WITH_SEEDS
def test_a_party_whose_seeds_are_not_there_stays_out(people):
    """A curator cannot bring it back, nor say so of too many, or of the reader."""
    world = World(people, seedless={"west": StudyOpened})
    world.sets_up = lambda name, message: isinstance(message, StudyOpened)
    honest = at(world, Round.SHARE_KEYS)
    north = world.parties["north"]
    for missing in ((), ("north",), ("east",), ("south", "west"), ("nobody",)):
        with pytest.raises(RemoteProtocolError):
            north.receive(dataclasses.replace(honest, payload=(missing, honest.payload[1])))
    north.receive(honest)
    step = next(m for to, m in world.waiting if to == "north" and isinstance(m, StepOpened))
    with pytest.raises(RemoteProtocolError, match="stay missing"):
        north.receive(dataclasses.replace(step, missing=()))
    assert north.receive(step)


def test_a_study_without_missing_parties_sums_all_of_them(people):
    check(World(people).run(), {}, NAMES)


def test_one_more_ends_the_study_and_says_who(people):
    gone = {"north": (0, Round.SHARE_KEYS), "west": (1, StepOpened)}
    world = World(people, gone=gone).run()
    assert world.failed == (
        "party 'west' is missing in step 1; north went missing before. "
        "The study can do without 1 (may_miss)"
    )
    assert world.curator.state is RoleState.ABORTED


def test_a_study_that_can_do_without_no_party_ends(people):
    world = World(people, may_miss=0, gone={"east": (1, StepOpened)}).run()
    assert "party 'east' is missing in step 1. The study can do without 0" in world.failed


def test_a_refusal_is_a_dropout_where_one_is_allowed(people):
    world = World(people).run(lambda name, m: of_round(m, Round.SHARE_KEYS))
    refusal = PartyRefused(study=world.study.digest, step=0, reason="no")
    world.take(world.curator.receive("east", refusal))
    world.vanished.add("east")
    world.run()
    assert world.curator.steps[0].parties == ("north", "south", "west")


def test_who_was_declared_missing_is_told_and_stays_out(people):
    world = World(people).run(lambda name, m: of_round(m, Round.CONSISTENCY_CHECK))
    late = next(m for m in world.sent["east"] if of_round(m, Round.SHARE_KEYS))
    world.take(world.curator.declare_missing("east"))
    assert world.curator.declare_missing("east") == []
    told = [m for name, m in world.waiting if name == "east" and isinstance(m, StudyAborted)]
    assert "declared missing in step 0" in told[0].reason
    with pytest.raises(RemoteProtocolError, match="'east' was declared missing and is out"):
        world.curator.receive("east", late)
    world.parties["east"].receive(told[0])
    assert world.parties["east"].state is RoleState.ABORTED
    world.vanished.add("east")
    world.run()
    # Its words were in before, and count; it paid for them and for nothing else.
    assert [step.parties for step in world.curator.steps] == [
        NAMES, ("north", "south", "west"), ("north", "south", "west"),
    ]  # fmt: skip
    assert [charge.step for charge in world.charges["east"]] == ["tables 0"]


def test_late_words_are_refused_and_stay_charged(people):
    world = World(people).run(lambda name, m: of_round(m, Round.SHARE_KEYS))
    keys = dict(world.waiting)
    world.take(world.curator.declare_missing("east"))
    (charge, words) = world.parties["east"].receive(keys["east"])
    assert isinstance(charge, ChargeBudget)
    with pytest.raises(RemoteProtocolError, match="its masked input is refused"):
        world.curator.receive("east", words.message)
    world.vanished.add("east")
    world.run()
    assert world.curator.steps[0].parties == ("north", "south", "west")
    result = read_cells(world.curator.results[0], world.curator.steps[0].cells)
    assert np.array_equal(result, world.truth(("north", "south", "west")))


def at(world, kind, name="north"):
    """The moment before a party receives its first message of a kind; the message."""
    world.run(lambda to, m: to == name and moment(m) == kind)
    return next(m for to, m in world.waiting if to == name and moment(m) == kind)


def test_a_second_list_is_refused(people):
    world = World(people)
    honest = at(world, Round.CONSISTENCY_CHECK)
    party = world.parties["north"]
    party.receive(honest)
    assert party.receive(honest) == []  # a duplicate changes nothing
    with pytest.raises(RemoteProtocolError, match="consistency check is not expected"):
        party.receive(dataclasses.replace(honest, payload=(("east",),)))


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (("north",), "lists 'north' as missing, which is here"),
        (("east", "south"), "can do without 1"),
        (("nobody",), "names each once"),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(people, missing, words):
    world = World(people)
    honest = at(world, Round.CONSISTENCY_CHECK)
    with pytest.raises(RemoteProtocolError, match=words):
        world.parties["north"].receive(dataclasses.replace(honest, payload=(missing,)))
    assert Round.CONSISTENCY_CHECK in world.parties["north"].side.awaits


def test_two_lists_for_two_halves_reveal_nothing(people):
    world = World(people)
    at(world, Round.CONSISTENCY_CHECK)
    lists = {"north": (), "east": (), "south": ("west",), "west": ()}
    signed = {}
    for name in NAMES:
        message = say(Round.CONSISTENCY_CHECK, lists[name], study=world.study.digest)
        (effect,) = world.parties[name].receive(message)
        (signed[name],) = effect.message.payload
    for name in NAMES:
        others = [other for other in NAMES if other != name and other not in lists[name]]
        shown = b"".join(
            signed[other] if lists[other] == lists[name] else bytes(64) for other in others
        )
        message = say(Round.UNMASK, shown, study=world.study.digest)
        if name == "south":  # alone with its list
            with pytest.raises(RemoteProtocolError, match="signed by 1 of 4 holders"):
                world.parties[name].receive(message)
        else:
            world.parties[name].receive(message)
    forged = b"".join(signed[other] for other in NAMES if other not in ("south", "west"))
    with pytest.raises(RemoteProtocolError, match="is not under this list"):
        world.parties["south"].receive(say(Round.UNMASK, forged, study=world.study.digest))


def test_keys_lists_and_signatures_of_an_earlier_step_are_refused(people):
    world = World(people)
    world.run(lambda to, m: to == "north" and of_round(m, Round.SHARE_KEYS) and m.step == 1)
    party = world.parties["north"]
    for earlier in world.told["north"]:
        if of_round(earlier, Round.SHARE_KEYS, Round.CONSISTENCY_CHECK, Round.UNMASK):
            assert party.receive(earlier) == []  # seen before: no effect
            moved = dataclasses.replace(earlier, step=1)
            with pytest.raises(RemoteProtocolError):
                party.receive(moved)
    assert party.side.awaits == (Round.SHARE_KEYS,)
    assert [charge.step for charge in world.charges["north"]] == ["tables 0"]


def test_a_party_that_came_back_by_the_curators_word_is_refused(people):
    world = World(people, gone={"west": (0, Round.SHARE_KEYS)})
    world.run(lambda to, m: to == "north" and isinstance(m, StepOpened) and m.step == 1)
    honest = next(m for to, m in world.waiting if to == "north")
    assert honest.missing == ("west",)
    for missing in ((), ("east",), ("west", "east"), ("north",)):
        with pytest.raises(RemoteProtocolError):
            world.parties["north"].receive(dataclasses.replace(honest, missing=missing))
    world.parties["north"].receive(honest)


def test_every_message_in_every_round_of_a_sum_that_may_miss_parties(people):
    rounds = (Round.SHARE_KEYS, Round.CONSISTENCY_CHECK, Round.UNMASK)
    for awaited in rounds:
        world = World(people)
        honest = at(world, awaited)
        north = world.parties["north"]
        before = north.side.awaits
        assert awaited in before
        for message in strange_messages(world.study.digest):
            if not taken(north, message):
                with pytest.raises(RemoteProtocolError, match="is not expected"):
                    north.receive(message)
                assert (north.state, north.side.awaits) == (RoleState.IN_STEP, before)
        north.receive(honest)
        assert north.side.awaits != before
    for awaited in rounds:
        world = World(people)
        at(world, awaited)
        world.parties["north"].receive(StudyAborted(study=world.study.digest, reason="x"))
        assert world.parties["north"].state is RoleState.ABORTED


def taken(party, message):
    """Whether the table has a transition for a message, and the open exchange allows it."""
    transition = TRANSITIONS[party.state].get(type(message))
    return (
        transition is not None
        and {
            If.ANYHOW: True,
            If.AWAITED: getattr(message, "round", "") in party.side.awaits,
            If.DONE: party.side.done,
            If.BEGUN_AGAIN: party.side.may_begin_again,
        }[transition.condition]
    )


def strange_messages(study):
    """One message of every kind and round, none of which was sent before."""
    yield StudyOpened(study=study, public_key=b"new")
    yield StepOpened(study=study, step=7, digest=bytes(32), opening=b"")
    yield ResultPublished(study=study, step=7, result=b"")
    yield StudyFinished(study=study)
    for name in (*Round, "envelope", "of another exchange"):
        yield say(name, b"", study=study, step=7)


def test_words_of_the_wrong_round_or_party_are_refused_by_the_curator(people):
    world = World(people)
    at(world, Round.CONSISTENCY_CHECK)
    study = world.study.digest
    with pytest.raises(RemoteProtocolError, match="of 'north' is not expected: the curator"):
        world.curator.receive("north", say(Round.UNMASK, b"", study=study))
    with pytest.raises(RemoteProtocolError, match="signature of 'north' is not under this list"):
        world.curator.receive("north", say(Round.CONSISTENCY_CHECK, bytes(64), study=study))
    world.run()
    assert world.curator.state is RoleState.FINISHED


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"aggregation": Aggregation.PAILLIER}, 'use aggregation = "masked"'),
        ({"aggregation": Aggregation.CLEAR}, 'use aggregation = "masked"'),
        ({"may_miss": -1}, "at least 0"),
        ({"may_miss": 2}, "at least 6 parties are needed"),
        ({"cohorts": 2}, "cohorts = 1"),
        ({"profile": "paper"}, 'profile = "sound"'),
    ],
)
def test_what_cannot_do_without_a_party_is_refused_by_name(people, options, words):
    with pytest.raises(InputError, match=words):
        World(people, **options)


def test_noise_is_made_for_the_shares_that_are_left_in_every_step(people):
    world = World(people)
    assert world.study.noise_shares(4) == Fraction(4, 2)
    assert world.study.noise_shares(3) == Fraction(3, 2)


def test_the_noise_of_a_promise_with_delta_does_without_a_party_too(people):
    gone = {"north": (1, Round.SHARE_KEYS)}
    delta = Fraction(1, 10**6)
    world = World(people, gone=gone, epsilon=Fraction(4), delta=delta).run()
    assert [step.parties for step in world.curator.steps] == [
        in_sum(gone, NAMES, number) for number in range(3)
    ]
    assert "Laplace" not in world.curator.steps[0].law.name
    assert len(world.charges["north"]) == 1
    assert len(world.charges["east"]) == 3
