"""Seeds of masks are exchanged before the first step; roles refuse what is not that exchange."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from common.crypto.framing import frame, unframe
from common.errors import RemoteProtocolError
from common.exchanges.recoverable import Round
from common.privacy.randomness import SeededRandomSource
from common.study.messages import StepOpened, StudyOpened, message_bytes
from common.study.states import RoleState
from curator.role import SendToParty
from parley.simulation.in_process import run_study
from tests.harness import roles
from tests.harness.rounds import moment, say
from tests.harness.small_study import EveryKindOfStep, make_study

NAMES = ("north", "east", "south")
OF_STUDY = "setting up"


@pytest.fixture
def study(identities, rows):
    return make_study(identities, rows, agreement="hybrid")


@pytest.fixture
def begun(study, identities, tables):
    """Return the roles after every party has offered its seeds, and what it sent."""
    curator, parties = roles.make_roles(study, EveryKindOfStep, identities, tables)
    sent = {}
    for effect in curator.start():
        assert isinstance(effect.message, StudyOpened)
        (sent[effect.to],) = (each.message for each in parties[effect.to].receive(effect.message))
    return curator, parties, sent


def relays(curator, sent):
    """Hand in what the parties sent; return what the curator sends, by party."""
    effects = [
        effect for name, message in sent.items() for effect in curator.receive(name, message)
    ]
    found = {name: [] for name in sent}
    for effect in effects:
        assert isinstance(effect, SendToParty)
        found[effect.to].append(effect.message)
    return found


def test_the_last_party_s_seeds_open_the_first_step(begun):
    curator, parties, sent = begun
    assert {moment(message) for message in sent.values()} == {Round.SHARE_KEYS}
    assert set(curator.waiting_for) == set(NAMES)
    for name, messages in relays(curator, sent).items():
        keys, step = messages
        assert (moment(keys), moment(step)) == (Round.SHARE_KEYS, StepOpened)
        assert parties[name].receive(keys) == []
        assert parties[name].receive(keys) == [], "a repeated message changes nothing"
        assert parties[name].side.done
        assert parties[name].receive(step)


def test_sums_are_the_same_under_either_agreement(identities, tables, rows):
    results = [
        run_study(
            make_study(identities, rows, agreement=agreement), EveryKindOfStep, tables, identities,
            source=SeededRandomSource(1),
        )
        for agreement in ("", "hybrid")
    ]  # fmt: skip
    truth = [np.abs(run.model.results[0]).sum() for run in results]
    assert abs(int(truth[0]) - int(truth[1])) < 400, "of 2 x 6 cells under noise"
    sent = [run.traffic[OF_STUDY].sent["north"] for run in results]
    assert sent[0] == 0 < sent[1] < 4_000, "two envelopes"


def test_a_curator_cannot_change_or_swap_seeds(begun, study):
    curator, parties, sent = begun
    keys = relays(curator, sent)["south"][0]
    north, east = unframe(keys.payload[1])
    flipped = bytes([*north[:-1], north[-1] ^ 1])
    for wrong in ([flipped, east], [east, north], [north, north], [north], []):
        message = replace(keys, payload=((), frame(wrong)))
        with pytest.raises(RemoteProtocolError):
            parties["south"].receive(message)
    assert parties["south"].receive(keys) == [], "the right ones are still taken"


def test_a_party_answers_nothing_before_it_has_its_seeds(begun, study):
    curator, parties, sent = begun
    step = relays(curator, sent)["north"][1]
    envelope = say("envelope", b"x", study=study.digest, peer="north")
    for message in (step, envelope):
        with pytest.raises(RemoteProtocolError, match="not expected"):
            parties["east"].receive(message)


def test_the_curator_takes_each_party_s_seeds_once_and_nothing_else(begun, study):
    curator, _, sent = begun
    posted = say("envelope", b"x", study=study.digest, peer="east")
    with pytest.raises(RemoteProtocolError, match="envelope of 'north' is not expected"):
        curator.receive("north", posted)
    dealt = partial(say, Round.SHARE_KEYS, study=study.digest)
    for payload in (b"", b"x", frame([b"one"])):
        with pytest.raises(RemoteProtocolError, match="expected 2 sealed envelopes"):
            curator.receive("north", dealt(payload))
    assert curator.receive("north", sent["north"]) == []
    assert curator.receive("north", sent["north"]) == [], "a repeated message changes nothing"
    with pytest.raises(RemoteProtocolError, match="'north' sent its share keys before"):
        curator.receive("north", dealt(frame([b"one", b"two"])))
    assert curator.state is RoleState.SETTING_UP
    assert set(curator.waiting_for) == {"east", "south"}


def test_other_studies_know_no_seeds_of_masks(identities, tables, rows):
    study = make_study(identities, rows)
    curator, parties = roles.make_roles(study, EveryKindOfStep, identities, tables)
    opened, step = (effect.message for effect in curator.start() if effect.to == "north")
    assert parties["north"].receive(opened) == []
    keys = say(Round.SHARE_KEYS, (), b"", study=study.digest)
    with pytest.raises(RemoteProtocolError, match="not expected"):
        parties["north"].receive(keys)
    assert message_bytes(step)


def test_a_role_that_is_rebuilt_has_the_same_masks(study, identities, tables):
    """Seeds come from the step's own randomness: a replay sends the same words."""

    def words():
        curator, parties = roles.make_roles(
            study, EveryKindOfStep, identities, tables, sources=roles.stream_per_step
        )
        return curator, parties

    curator, parties = words()
    sent = {}
    for effect in curator.start():
        (sent[effect.to],) = (each.message for each in parties[effect.to].receive(effect.message))
    received = relays(curator, sent)
    opened = StudyOpened(study=study.digest, public_key=b"")
    first = [parties["north"].receive(message) for message in received["north"]]
    again = words()[1]["north"]
    again.receive(opened)
    assert [again.receive(message) for message in received["north"]] == first
