"""Commitments open to one content, are signed, and say nothing without their salt."""

from dataclasses import replace
from itertools import combinations

import pytest

from common.errors import RemoteProtocolError
from common.study.commitments import (
    COMMITMENT_BYTES,
    SALT_BYTES,
    Commitments,
    TableCommitment,
    committed_contribution,
    committed_table,
    content_digest,
    framed_tables,
    read_tables,
    require_tables,
)
from common.study.messages import StepMessage
from tests.harness.run_script import identities_of, random_tables, study_of

ROWS = random_tables((2, 3), (40, 50, 60))
STUDY = replace(study_of(ROWS), commitments=True)
IDENTITIES = identities_of(ROWS)
SALT, OTHER = bytes(SALT_BYTES), b"\1" * SALT_BYTES


def table_of(name, signer=None, study=STUDY):
    return TableCommitment.make(
        study.digest, name, digest=f"rows of {name}", salt=SALT, identity=IDENTITIES[signer or name]
    )


TABLES = {name: table_of(name) for name in STUDY.parties}


def test_a_table_s_commitment_is_of_one_table_salt_party_and_study():
    values = {
        committed_table(study, party, digest=digest, salt=salt)
        for study in (STUDY.digest, bytes(32))
        for party in ("p0", "p1")
        for digest in ("a", "b")
        for salt in (SALT, OTHER)
    }
    assert len(values) == 16
    assert {len(value) for value in values} == {COMMITMENT_BYTES}


def test_a_contribution_s_commitment_is_of_its_messages_in_order():
    def committed(*sent, step=0, salt=SALT):
        return committed_contribution(STUDY.digest, "p0", step=step, sent=sent, salt=salt)

    values = [
        committed(), committed(b"a"), committed(b"a", b"b"), committed(b"b", b"a"),
        committed(b"ab"), committed(step=1), committed(salt=OTHER),
    ]  # fmt: skip
    assert all(one != other for one, other in combinations(values, 2))


def test_a_message_is_told_from_every_other_of_its_step():
    def digest(**fields):
        return content_digest(StepMessage(study=STUDY.digest, step=0, **fields))

    messages = [
        {"round": "choice", "payload": (b"1",)},
        {"round": "masked input", "payload": (b"1",)},
        {"round": "masked input", "payload": (1, b"1")},
        {"round": "masked input", "payload": (0, b"1")},
        {"round": "masked input", "payload": (("a", "b"),)},
        {"round": "masked input", "payload": ("a", "b")},
    ]
    assert len({digest(**fields) for fields in messages}) == len(messages)


def test_published_commitments_come_back():
    assert read_tables(framed_tables(TABLES)) == TABLES
    require_tables(STUDY, TABLES)


@pytest.mark.parametrize(
    "data",
    [b"x", framed_tables(TABLES)[:-1], framed_tables(TABLES) + framed_tables(TABLES)],
)
def test_damaged_ones_are_refused(data):
    with pytest.raises(RemoteProtocolError, match=r"commitments|two tables"):
        read_tables(data)


def test_only_the_owner_can_commit_in_its_name():
    other = replace(STUDY, name="another")
    forged = [
        {**TABLES, "p1": table_of("p1", signer="p0")},
        {**TABLES, "p1": TABLES["p0"]},
        {**TABLES, "p1": replace(TABLES["p1"], value=bytes(32))},
        {**TABLES, "p1": replace(TABLES["p1"], value=b"")},
        {name: table_of(name, study=other) for name in STUDY.parties},
    ]
    for tables in forged:
        with pytest.raises(RemoteProtocolError, match="not signed by"):
            require_tables(STUDY, tables)


def test_all_parties_commit_in_the_order_of_the_study():
    with pytest.raises(RemoteProtocolError, match="is missing"):
        require_tables(STUDY, {name: TABLES[name] for name in ("p0", "p1")})
    with pytest.raises(RemoteProtocolError, match="not of the study's parties"):
        require_tables(STUDY, {name: TABLES[name] for name in ("p1", "p0", "p2")})


@pytest.mark.parametrize(
    ("contributions", "why"),
    [
        (((bytes(32),) * 3,), "one for each party"),
        (((bytes(32),) * 3, (bytes(32),) * 2), "one for each party"),
        (((bytes(32),) * 3, (b"",)), "has 32 bytes"),
    ],
)
def test_every_party_of_every_step_has_a_commitment(contributions, why):
    steps = [STUDY.parties, ("p1",)]
    Commitments(TABLES, ((bytes(32),) * 3, (bytes(32),))).require_steps(steps)
    with pytest.raises(RemoteProtocolError, match=why):
        Commitments(TABLES, contributions).require_steps(steps)
    uncommitted = {name: TABLES[name] for name in ("p0", "p2")}
    lacking = Commitments(uncommitted, ((bytes(32),) * 3, (bytes(32),)))
    with pytest.raises(RemoteProtocolError, match="p1: no commitment"):
        lacking.require_steps(steps)
