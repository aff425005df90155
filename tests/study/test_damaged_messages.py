"""Every message of a study, damaged on its way: refused by name, and never a crash of a role."""

import contextlib
import copy
import dataclasses
from collections import deque
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.crypto.sums.plan import Aggregation, Noise
from common.errors import InputError, PolicyError, RemoteProtocolError
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.study.document import Study
from common.study.messages import name_of
from curator.role import CuratorRole, SendToParty
from parley.simulation.in_process import RowsInMemory
from party.role import PartyRole, SendToCurator
from tests.harness.roles import make_roles
from tests.harness.run_script import chain_tables, study_of
from tests.harness.small_study import EveryKindOfStep, Sums, make_study
from tests.unit.wire.test_fuzzing import damaged

MODES = {
    "clear": {"aggregation": Aggregation.CLEAR},
    "masked": {"aggregation": Aggregation.MASKED},
    "may miss": {"aggregation": Aggregation.MASKED, "may_miss": 1, "colluders": 0},
    "paillier": {"aggregation": Aggregation.PAILLIER},
    "one share": {
        "aggregation": Aggregation.PAILLIER, "noise": Noise.ONE_SHARE, "profile": "paper",
    },
}  # fmt: skip


class CopiedSource(SeededRandomSource):
    """Goes wherever its role is copied to, as another stream."""

    def __deepcopy__(self, memo):
        return CopiedSource("a copy")


@dataclasses.dataclass
class OneSource:
    """The same stream for every step."""

    source: CopiedSource

    def __call__(self, step):
        return self.source


@dataclasses.dataclass
class Delivery:
    """A message that is about to be received, and the role that will receive it, as it is then.

    Secret keys refuse to be copied, so copies of a role share them.
    """

    role: PartyRole | CuratorRole
    sender: str | None
    message: object
    secrets: tuple

    def __post_init__(self):
        self.role = self.copied()

    def copied(self):
        return copy.deepcopy(self.role, {id(secret): secret for secret in self.secrets})

    def receive(self, message):
        """By a copy of the role, so that the next one finds it as it was."""
        role = self.copied()
        return role.receive(message) if self.sender is None else role.receive(self.sender, message)


def deliveries_of(study, identities, tables, key):
    """Every delivery of a whole study."""
    begin = partial(Sums, number=2) if study.may_miss else EveryKindOfStep
    curator, parties = make_roles(
        study,
        begin,
        identities,
        tables,
        key=key,
        sources=lambda name: OneSource(CopiedSource(name)),
    )
    secrets = (*identities.values(), key, study)
    found, waiting = [], deque(curator.start())
    while waiting:
        effect = waiting.popleft()
        if not isinstance(effect, SendToParty):
            continue
        party = parties[effect.to]
        found.append(Delivery(party, None, effect.message, secrets))
        for answer in party.receive(effect.message):
            if isinstance(answer, SendToCurator):
                found.append(Delivery(curator, effect.to, answer.message, secrets))
                waiting.extend(curator.receive(effect.to, answer.message))
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("clear", marks=pytest.mark.slow),
        "masked",
        "may miss",
        pytest.param("paillier", marks=pytest.mark.slow),
        "one share",
    ],
)
def deliveries(request, identities, rows, tables, paillier_key):
    names = ("north", "east", "south")[: 3 if request.param == "may miss" else 2]
    some = {name: identities[name] for name in names}
    study = make_study(some, rows, **MODES[request.param])
    return deliveries_of(study, some, {name: tables[name] for name in some}, paillier_key)


def other_values(value, rng):
    """What a field might hold when it arrives, other than what was sent."""
    if isinstance(value, str):
        return ["north", "east", "south", "", "x" * 1000]
    if isinstance(value, tuple):
        return [(), ("north",), ("east",), ("south",), ("east", "north"), ("nobody",), ("",)]
    if isinstance(value, int):
        return [0, max(value - 1, 0), value + 1, 2**31, 2**32 - 1]  # as the wire has them
    place = int(rng.integers(0, len(value) + 1))
    flipped = bytearray(value or b"x")
    flipped[place % len(flipped)] ^= 1 << int(rng.integers(8))
    return [
        b"", b"\0" * len(value), b"\xff" * len(value), value[:place], value + value[:place],
        value[place:] + b"\0" * place, bytes(flipped), rng.bytes(len(value)), rng.bytes(40),
    ]  # fmt: skip


def test_every_kind_of_message_was_on_its_way(deliveries):
    kinds = {name_of(each.message) for each in deliveries}
    assert {"StudyOpened", "StepOpened", "ResultPublished", "masked input"} <= kinds


def test_every_field_of_every_message_damaged_is_refused_or_means_something(deliveries):
    rng = np.random.default_rng(11)
    refused = 0
    for delivery in deliveries:
        for field in dataclasses.fields(delivery.message):
            for value in other_values(getattr(delivery.message, field.name), rng):
                try:
                    delivery.receive(dataclasses.replace(delivery.message, **{field.name: value}))
                except (RemoteProtocolError, PolicyError):
                    refused += 1
    assert refused > 10 * len(deliveries)


def test_every_message_at_every_other_moment_is_refused_or_means_something(deliveries):
    for delivery in deliveries:
        for other in deliveries:
            if (other.sender is None) == (delivery.sender is None):
                with contextlib.suppress(RemoteProtocolError, PolicyError):
                    delivery.receive(other.message)


@pytest.fixture(scope="module")
def choices():
    """One choice of every method that lets a party choose, with what the party chose."""
    tables = chain_tables(4, [360, 360])
    found = []
    for method in ("dp-subn", "independent"):
        study = study_of(tables, method=method, epsilon=Fraction(8))
        plan = run_of(study)
        while not (step := plan.step()).choices:
            plan.advance(np.zeros(step.request.cells, np.int64))
        data = RowsInMemory(tables[step.exchange.chooser])
        choice = step.exchange.choice
        found.append((choice, choice.run(data, SeededRandomSource(method))))
    return found


@given(choice=st.data())
@settings(deadline=None, max_examples=200)
def test_a_damaged_choice_is_refused_or_means_something(choices, choice):
    made, payload = choice.draw(st.sampled_from(choices))
    made.check(payload)
    try:
        made.check(choice.draw(damaged([payload]) | st.binary(max_size=100)))
    except RemoteProtocolError:
        return


@given(choice=st.data())
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_damaged_study_is_another_study_or_none(masked_study, choice):
    text = choice.draw(damaged([masked_study.to_toml().encode()])).decode(errors="replace")
    try:
        study = Study.from_toml(text, where="fetched")
    except InputError:
        return
    assert study.digest != masked_study.digest or study.to_toml() == masked_study.to_toml()
