"""Curator and parties meet: full runs, every (state, message) pair, duplicates and lies."""

from fractions import Fraction

import numpy as np
import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError, PolicyError, RemoteProtocolError
from common.marginals import count
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import concatenate
from common.study.history import History
from common.study.messages import (
    PartyRefused,
    ResultPublished,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
)
from common.study.requests import encode_cells
from common.study.states import TRANSITIONS, If, RoleState
from common.study.steps import step_digest
from curator.role import Fail, SendToParty
from parley.simulation.in_process import run_study
from party.role import ChargeBudget
from tests.harness import roles
from tests.harness.rounds import say
from tests.harness.small_study import EveryKindOfStep, make_study

NAMES = ("north", "east", "south")
LARGE = Fraction(10**6)  # next to no noise: sums must come out right


@pytest.mark.parametrize(
    ("aggregation", "noise", "profile", "agreement"),
    [
        (Aggregation.CLEAR, Noise.DISTRIBUTED, "sound", ""),
        (Aggregation.MASKED, Noise.DISTRIBUTED, "sound", ""),
        (Aggregation.MASKED, Noise.DISTRIBUTED, "sound", "hybrid"),
        (Aggregation.PAILLIER, Noise.DISTRIBUTED, "sound", ""),
        (Aggregation.PAILLIER, Noise.DISTRIBUTED, "sound", "hybrid"),
        (Aggregation.PAILLIER, Noise.ONE_SHARE, "paper", ""),
    ],
)
def test_a_study_runs_to_its_end_and_sums_every_party(
    identities, tables, rows, aggregation, noise, profile, agreement
):
    study = make_study(
        identities, rows, aggregation=aggregation, noise=noise, profile=profile, epsilon=LARGE,
        agreement=agreement,
    )  # fmt: skip
    run = run_study(
        study, EveryKindOfStep, tables, identities, source=SeededRandomSource(aggregation.value)
    )
    truth = count(concatenate(list(tables.values())), [(0,), (0, 1), (1,)])
    released = run.model.results[0]
    assert np.array_equal(released[:2], truth[0])
    assert np.array_equal(released[2:], truth[1].reshape(-1))
    # Noise of scale 8 stays in the replaced statistics, which cover every party that came in.
    assert np.abs(run.model.statistics[(1,)] - truth[2]).max() < 400
    assert run.model.coverages.by_marginal[(1,)].parties == NAMES
    assert run.model.coverages.by_marginal[(0,)].parties == NAMES[1:]


def test_each_party_is_charged_what_its_rows_cost(identities, tables, masked_study):
    run = run_study(masked_study, EveryKindOfStep, tables, identities, source=SeededRandomSource(1))
    spent = {
        name: sum((c.epsilon for c in charges), Fraction(0))
        for name, charges in run.charges.items()
    }
    eighth = Fraction(1, 8)  # one marginal under noise of scale 16
    # north is in three releases, one of (1,) and two of (1,) and (0,), and pays for all of them,
    # although (0,) covers its rows never: whether it does could have depended on results.
    assert spent["north"] == 1 + (1 + 2 + 2) * eighth
    assert spent["east"] == 1 + (2 + 2) * eighth
    assert spent["south"] == 1 + eighth + 2 * eighth
    realised = [step.realised.get("north", 0) for step in run.steps if step.realised]
    assert sum(realised) == 3 * eighth
    names = [c.step for c in run.charges["north"]]
    assert len(names) == len(set(names))


def test_traffic_is_booked_by_phase_and_party(identities, tables, masked_study):
    run = run_study(masked_study, EveryKindOfStep, tables, identities, source=SeededRandomSource(1))
    assert run.traffic["counting"].rounds == 1
    assert run.traffic["replacing"].rounds == 4  # new, held by north; then all held by east
    assert set(run.traffic["counting"].sent) == set(NAMES)
    assert all(value > 0 for value in run.traffic["counting"].received.values())


def new_party(study, identities, tables, name="north"):
    return roles.party_role(study, EveryKindOfStep, name, identities[name], tables[name])


def new_curator(study):
    return roles.curator_role(study, EveryKindOfStep)


def opened(study, plan, number=0, *, key=b"", results=()):
    """A step as it is opened by a curator that told this key and these results."""
    transcript = History(study.digest)
    transcript.add_key(key)
    for earlier, result in enumerate(results):
        transcript.add_result(earlier, result)
    return StepOpened(
        study=study.digest,
        step=number,
        digest=step_digest(transcript.digest, number, plan.step()),
        opening=b"",
    )


# The rounds of sums that may miss parties are in test_missing_parties.py.
TO_PARTY = (StudyOpened, StepOpened, "envelope", ResultPublished, StudyFinished, StudyAborted)


def party_in(state, study, identities, tables, key=b"", name="north"):
    """A party that came to this state by messages an honest curator sends."""
    party = new_party(study, identities, tables, name)
    plan = EveryKindOfStep(study)
    if state is not RoleState.NOT_OPEN:
        party.receive(StudyOpened(study=study.digest, public_key=key))
    if state in (RoleState.IN_STEP, RoleState.BETWEEN_STEPS):
        party.receive(opened(study, plan))
    if state is RoleState.BETWEEN_STEPS:
        party.receive(ResultPublished(study=study.digest, step=0, result=bytes(8)))
    if state in (RoleState.FINISHED, RoleState.ABORTED):
        party.receive(StudyAborted(study=study.digest, reason="x"))
        party.state = state
    assert party.state is state
    return party


def message_of(kind, study, key=b""):
    return {
        StudyOpened: lambda: StudyOpened(study=study.digest, public_key=key),
        StepOpened: lambda: opened(study, EveryKindOfStep(study)),
        "envelope": lambda: say("envelope", b"sealed", study=study.digest, peer="east"),
        ResultPublished: lambda: ResultPublished(study=study.digest, step=0, result=bytes(8)),
        StudyFinished: lambda: StudyFinished(study=study.digest),
        StudyAborted: lambda: StudyAborted(study=study.digest, reason="another reason"),
    }[kind]()


@pytest.mark.parametrize("kind", TO_PARTY)
@pytest.mark.parametrize("state", RoleState)
def test_every_message_in_every_state_of_a_party(state, kind, masked_study, identities, tables):
    party = party_in(state, masked_study, identities, tables)
    message = message_of(kind, masked_study)
    seen_before = {
        RoleState.NOT_OPEN: (),
        RoleState.IN_STEP: (StudyOpened, StepOpened),
        RoleState.BETWEEN_STEPS: (StudyOpened, StepOpened, ResultPublished),
    }.get(state, (StudyOpened,))
    transition = TRANSITIONS[state].get(type(message))
    # Allowed by the table, yet refused for what they say here: no ring in a masked study, no step
    # that is begun again, and no end before the last step.
    refused = ("envelope", StudyFinished, *([StepOpened] if state is RoleState.IN_STEP else []))
    if kind in seen_before:
        assert party.receive(message) == []
        assert party.state is state
    elif transition is None or kind in refused:
        with pytest.raises(RemoteProtocolError):
            party.receive(message)
        assert party.state is state
    else:
        party.receive(message)
        assert party.state is transition.to is not state


def test_a_party_without_its_seed_takes_no_step_and_no_end(
    one_share_study, identities, tables, paillier_key
):
    key = paillier_key.public_key.to_bytes()
    south = party_in(RoleState.SETTING_UP, one_share_study, identities, tables, key, "south")
    for kind in (StepOpened, ResultPublished, StudyFinished):
        with pytest.raises(RemoteProtocolError, match="not expected: this party is waiting"):
            south.receive(message_of(kind, one_share_study, key))
    assert south.state is RoleState.SETTING_UP
    north = party_in(RoleState.SETTING_UP, one_share_study, identities, tables, key, "north")
    assert north.side.done, "the first party proposes the seed"


def test_every_state_is_in_the_table_and_every_transition_leads_to_one():
    assert set(TRANSITIONS) == set(RoleState)
    led_to = {each.to for moves in TRANSITIONS.values() for each in moves.values()}
    assert led_to == set(RoleState) - {RoleState.NOT_OPEN}
    conditions = {each.condition for moves in TRANSITIONS.values() for each in moves.values()}
    assert conditions == set(If)
    assert not TRANSITIONS[RoleState.FINISHED]
    assert not TRANSITIONS[RoleState.ABORTED]


@pytest.mark.parametrize("name", ["envelope", "masked input", "choice", "refusal"])
@pytest.mark.parametrize("state", RoleState)
def test_every_message_in_every_state_of_the_curator(state, name, masked_study):
    curator = new_curator(masked_study)
    if state is not RoleState.NOT_OPEN:
        curator.start()
        curator.state = state
    digest = masked_study.digest
    message = {
        "envelope": say("envelope", b"e", study=digest, peer="south"),
        "masked input": say("masked input", 0, b"short", study=digest),
        "choice": say("choice", b"chosen", study=digest),
        "refusal": PartyRefused(study=digest, step=0, reason="no"),
    }[name]
    if name == "refusal" and PartyRefused in TRANSITIONS[state]:
        effects = curator.receive("east", message)
        assert isinstance(effects[-1], Fail)
        assert curator.state is RoleState.ABORTED
    else:
        with pytest.raises(RemoteProtocolError):
            curator.receive("east", message)
        assert curator.state is state


def test_the_curator_relays_along_the_ring_and_nowhere_else(identities, rows, paillier_key):
    study = make_study(identities, rows, aggregation=Aggregation.PAILLIER)
    curator = roles.curator_role(study, EveryKindOfStep, key=paillier_key)
    curator.start()
    assert curator.waiting_for == ("north",)
    for sender, peer in (("north", "south"), ("east", "north"), ("south", "north")):
        with pytest.raises(RemoteProtocolError, match="the ring does not expect"):
            curator.receive(sender, say("envelope", b"e", study=study.digest, peer=peer))
    with pytest.raises(RemoteProtocolError, match="message to unknown party 'mallory'"):
        curator.receive("north", say("envelope", b"e", study=study.digest, peer="mallory"))
    (effect,) = curator.receive("north", say("envelope", b"e", study=study.digest, peer="east"))
    assert isinstance(effect, SendToParty)
    assert (effect.to, effect.message.peer) == ("east", "north")
    assert curator.waiting_for == ("east",)


def test_a_step_is_answered_once(masked_study, identities, tables):
    party = party_in(RoleState.SETTING_UP, masked_study, identities, tables)
    request = opened(masked_study, EveryKindOfStep(masked_study))
    assert any(isinstance(e, ChargeBudget) for e in party.receive(request))
    assert party.receive(request) == []
    with pytest.raises(RemoteProtocolError):
        party.receive(
            StepOpened(study=request.study, step=0, digest=request.digest, opening=b"again")
        )


def test_charges_come_before_answers(masked_study, identities, tables):
    party = party_in(RoleState.SETTING_UP, masked_study, identities, tables)
    effects = party.receive(opened(masked_study, EveryKindOfStep(masked_study)))
    assert isinstance(effects[0], ChargeBudget)
    assert not any(isinstance(e, ChargeBudget) for e in effects[1:])


def test_a_plan_that_costs_more_than_a_sound_study_promises_is_refused(identities, rows, tables):
    """With epsilon 1 the first sum leaves less than what the replacements after it cost."""
    study = make_study(identities, rows, epsilon=Fraction(1))
    with pytest.raises(PolicyError, match="more than the 1 that the study promises"):
        run_study(study, EveryKindOfStep, tables, identities, source=SeededRandomSource(1))
    paper = make_study(identities, rows, epsilon=Fraction(1), profile="paper")
    run_study(paper, EveryKindOfStep, tables, identities, source=SeededRandomSource(1))


class SmallerNoise(EveryKindOfStep):
    """What a curious curator would like to ask for."""

    def step(self):
        step = super().step()
        return (
            type(step)(**{**vars(step), "law": step.law.times(Fraction(1, 2))})
            if not self.results
            else step
        )


def test_a_smaller_noise_scale_is_refused(masked_study, identities, tables):
    party = party_in(RoleState.SETTING_UP, masked_study, identities, tables)
    with pytest.raises(RemoteProtocolError, match="not what the approved study"):
        party.receive(opened(masked_study, SmallerNoise(masked_study)))
    assert party.state is RoleState.SETTING_UP


def test_another_study_with_the_same_name_is_refused(masked_study, identities, rows, tables):
    other = make_study(identities, rows, epsilon=Fraction(3))
    assert other.name == masked_study.name
    party = new_party(masked_study, identities, tables)
    with pytest.raises(RemoteProtocolError, match="another study"):
        party.receive(StudyOpened(study=other.digest, public_key=b""))


def test_a_later_step_out_of_turn_is_refused(masked_study, identities, tables):
    party = party_in(RoleState.SETTING_UP, masked_study, identities, tables)
    plan = EveryKindOfStep(masked_study)
    with pytest.raises(RemoteProtocolError, match="step 0 is next"):
        party.receive(opened(masked_study, plan, number=1))


def test_a_result_before_the_party_contributed_is_refused(identities, rows, tables, paillier_key):
    study = make_study(identities, rows, aggregation=Aggregation.PAILLIER)
    party = new_party(study, identities, tables, name="east")
    key = paillier_key.public_key.to_bytes()
    party.receive(StudyOpened(study=study.digest, public_key=key))
    party.receive(opened(study, EveryKindOfStep(study), key=key))
    with pytest.raises(RemoteProtocolError, match="waiting for envelope"):
        party.receive(ResultPublished(study=study.digest, step=0, result=bytes(8)))


@pytest.mark.parametrize("value", [2**62, -(2**62), 10**9])
def test_a_result_that_nobodys_rows_can_add_up_to_is_refused(
    masked_study, identities, tables, value
):
    party = party_in(RoleState.IN_STEP, masked_study, identities, tables)
    result = encode_cells(np.full(8, value))
    with pytest.raises(RemoteProtocolError, match="no sum of honest contributions"):
        party.receive(ResultPublished(study=masked_study.digest, step=0, result=result))
    assert party.state is RoleState.IN_STEP


def test_a_weaker_key_than_the_study_says_is_refused(identities, rows, tables, paillier_key):
    study = make_study(identities, rows, aggregation=Aggregation.PAILLIER, key_bits=3072)
    party = new_party(study, identities, tables)
    key = paillier_key.public_key.to_bytes()
    with pytest.raises(RemoteProtocolError, match="2048 bits"):
        party.receive(StudyOpened(study=study.digest, public_key=key))


def test_a_seed_from_somebody_else_is_refused(one_share_study, identities, tables, paillier_key):
    study = one_share_study
    party = new_party(study, identities, tables, name="south")
    party.receive(StudyOpened(study=study.digest, public_key=paillier_key.public_key.to_bytes()))
    assert party.state is RoleState.SETTING_UP
    with pytest.raises(RemoteProtocolError, match="comes from 'north'"):
        party.receive(say("envelope", b"seed", study=study.digest, peer="east"))
    with pytest.raises(RemoteProtocolError, match="envelope refused"):
        party.receive(say("envelope", b"seed", study=study.digest, peer="north"))
    assert party.state is RoleState.SETTING_UP


def test_a_stranger_is_refused(masked_study):
    curator = new_curator(masked_study)
    curator.start()
    with pytest.raises(RemoteProtocolError, match="not a party"):
        curator.receive("mallory", PartyRefused(study=masked_study.digest, step=0, reason="x"))


def test_a_wrong_row_count_is_refused(identities, rows, tables):
    study = make_study(identities, {**rows, "north": rows["north"] + 1})
    with pytest.raises(PolicyError, match="rows"):
        new_party(study, identities, tables)


def test_one_share_of_noise_is_not_sound(identities, rows):
    with pytest.raises(InputError, match="does not protect from the other parties"):
        make_study(identities, rows, noise=Noise.ONE_SHARE, aggregation=Aggregation.PAILLIER)
