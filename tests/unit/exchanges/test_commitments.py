"""Owners commit before the first step, and notice a curator that drops or changes a commitment."""

from collections import deque
from dataclasses import replace
from fractions import Fraction

import pytest

from common.crypto.sums.plan import Aggregation
from common.errors import RemoteProtocolError
from common.exchanges.commitments import COMMITMENTS
from common.study.commitments import (
    TableCommitment,
    committed_table,
    framed_tables,
    read_tables,
    require_tables,
)
from common.study.messages import ResultPublished, StepMessage, StudyOpened
from curator.role import SendToParty
from parley.simulation.in_process import RowsInMemory, run_roles
from tests.harness.roles import curator_role, make_roles, party_role, stream_per_step
from tests.harness.small_study import Sums, make_study

LIMIT = 10_000  # messages


@pytest.fixture
def study(identities, rows):
    return make_study(identities, rows, commitments=True)


def hold(study, identities, tables, *, change=lambda message, to: message, key=None):
    """Run a study whose curator changes what it sends."""
    curator, parties = make_roles(study, Sums, identities, tables, key=key)
    waiting = deque(curator.start())
    for _ in range(LIMIT):
        if not waiting:
            break
        effect = waiting.popleft()
        if isinstance(effect, SendToParty):
            for answer in parties[effect.to].receive(change(effect.message, effect.to)):
                if hasattr(answer, "message"):
                    waiting.extend(curator.receive(effect.to, answer.message))
    return curator, parties


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"agreement": "hybrid"},
        {"delta": Fraction(1, 1000)},
        {"aggregation": Aggregation.CLEAR},
        {"aggregation": Aggregation.PAILLIER},
        {"aggregation": Aggregation.PAILLIER, "agreement": "hybrid"},
    ],
    ids=["masked", "hybrid", "delta", "clear", "ring", "hybrid ring"],
)
def test_a_study_ends_with_a_commitment_for_every_table_and_contribution(
    identities, rows, tables, paillier_key, options
):
    study = make_study(identities, rows, commitments=True, **options)
    run = run_roles(*make_roles(study, Sums, identities, tables, key=paillier_key))
    require_tables(study, run.commitments.tables)
    run.commitments.require_steps([step.parties for step in run.steps])
    values = [value for step in run.commitments.contributions for value in step]
    assert len(set(values)) == len(values), "each is of its party and step"


def test_a_study_without_the_key_has_none(identities, rows, tables):
    study = make_study(identities, rows)
    assert run_roles(*make_roles(study, Sums, identities, tables)).commitments is None


def test_a_study_asks_and_costs_the_same_with_commitments(identities, rows, tables):
    plain = make_study(identities, rows)
    runs = [
        run_roles(*make_roles(each, Sums, identities, tables, sources=stream_per_step))
        for each in (plain, replace(plain, commitments=True))
    ]
    steps = [[step.canonical for step in run.steps] for run in runs]
    assert steps[0] == steps[1]
    assert runs[0].charges == runs[1].charges


def without_east(tables):
    return {name: each for name, each in tables.items() if name != "east"}


def other_value(tables):
    return {**tables, "east": replace(tables["east"], value=bytes(32))}


@pytest.mark.parametrize("forge", [without_east, other_value])
@pytest.mark.parametrize("told", ["east", "north"])
def test_a_commitment_that_is_dropped_or_changed_is_noticed(study, identities, tables, forge, told):
    """By its owner; and, as it is not signed, by everybody else."""

    def change(message, to):
        if isinstance(message, StepMessage) and message.round == COMMITMENTS and to == told:
            forged = framed_tables(forge(read_tables(message.payload[0])))
            return replace(message, payload=(forged,))
        return message

    with pytest.raises(RemoteProtocolError, match=r"commitment"):
        hold(study, identities, tables, change=change)


def test_owners_that_are_told_different_commitments_finish_no_sum(study, identities, tables):
    """A colluding owner may sign two: then histories differ, and so do the steps."""
    second = TableCommitment.make(
        study.digest, "east", digest="other rows", salt=bytes(32), identity=identities["east"]
    )

    def change(message, to):
        if isinstance(message, StepMessage) and message.round == COMMITMENTS and to == "north":
            tables_told = {**read_tables(message.payload[0]), "east": second}
            return replace(message, payload=(framed_tables(tables_told),))
        return message

    with pytest.raises(RemoteProtocolError, match="is not what the approved study"):
        hold(study, identities, tables, change=change)


@pytest.mark.parametrize("forge", [lambda them: (bytes(32), *them[1:]), lambda them: them[1:]])
def test_a_contribution_s_commitment_that_is_changed_is_noticed(study, identities, tables, forge):
    first = study.parties[0]

    def change(message, to):
        if isinstance(message, ResultPublished) and to == first:
            return replace(message, contributions=forge(message.contributions))
        return message

    with pytest.raises(RemoteProtocolError, match="commitment"):
        hold(study, identities, tables, change=change)


def test_the_curator_refuses_a_commitment_in_another_s_name_and_a_second_one(
    study, identities, tables
):
    curator = curator_role(study, Sums)
    curator.start()
    opened = StudyOpened(study=study.digest, public_key=b"")
    north = party_role(study, Sums, "north", identities["north"], tables["north"])
    message = north.receive(opened)[0].message
    with pytest.raises(RemoteProtocolError, match="not signed by 'east'"):
        curator.receive("east", message)
    short = replace(message, payload=(*message.payload[:2], b"short"))
    with pytest.raises(RemoteProtocolError, match="salt"):
        curator.receive("north", short)
    curator.receive("north", message)
    again = replace(message, payload=(*message.payload[:2], bytes(32)))
    with pytest.raises(RemoteProtocolError, match="before"):
        curator.receive("north", again)


def test_a_party_that_is_built_again_commits_to_the_same(study, identities, tables):
    opened = StudyOpened(study=study.digest, public_key=b"")
    messages = [
        party_role(
            study, Sums, "north", identities["north"], tables["north"],
            source_of=stream_per_step("north"),
        ).receive(opened)
        for _ in range(2)
    ]  # fmt: skip
    assert messages[0] == messages[1]


def test_the_salt_of_the_table_stays_at_home(study, identities, tables):
    """What leaves are the commitment, its signature and the salt of contributions: another one."""
    opened = StudyOpened(study=study.digest, public_key=b"")
    role = party_role(study, Sums, "north", identities["north"], tables["north"])
    value, _, salt = role.receive(opened)[0].message.payload
    digest = RowsInMemory(tables["north"]).digest
    assert committed_table(study.digest, "north", digest=digest, salt=salt) != value


def test_a_party_that_is_gone_before_it_commits_is_left_out(identities, rows, tables):
    study = make_study(identities, rows, commitments=True, may_miss=1, colluders=0)
    curator, parties = make_roles(study, Sums, identities, tables)
    waiting = deque(curator.start())
    for _ in range(LIMIT):
        if not waiting and "east" not in curator.waiting_for:
            break
        if not waiting:
            waiting.extend(curator.declare_missing("east"))
            continue
        effect = waiting.popleft()
        if isinstance(effect, SendToParty) and effect.to != "east":
            for answer in parties[effect.to].receive(effect.message):
                if hasattr(answer, "message"):
                    waiting.extend(curator.receive(effect.to, answer.message))
    commitments = curator.commitments
    assert list(commitments.tables) == ["north", "south"]
    commitments.require_steps([step.parties for step in curator.steps])
    assert curator.model() is not None
