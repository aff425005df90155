"""Whole studies over real gRPC and mutual TLS on loopback."""

import contextlib
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import grpc
import pytest
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from common.crypto.sums.plan import Aggregation, Noise
from common.wire import tls
from curator.store.records import StudyState
from party.journal import JournalState
from tests.harness.consortium import (
    Crash,
    Doubling,
    Mortal,
    check_release,
    finish,
    wrapping,
)

PAILLIER = {"aggregation": Aggregation.PAILLIER}
PAPER = {**PAILLIER, "noise": Noise.ONE_SHARE, "profile": "paper"}


@pytest.mark.parametrize(
    ("parties", "changes"),
    [
        (1, {}),
        (2, {}),
        (3, {}),
        (1, PAILLIER),
        (2, PAPER),
        (3, PAILLIER),
        pytest.param(3, PAPER, marks=pytest.mark.slow),
        pytest.param(10, {"epsilon": Fraction(20)}, marks=pytest.mark.slow),
        pytest.param(10, {**PAILLIER, "epsilon": Fraction(20)}, marks=pytest.mark.slow),
        pytest.param(10, PAPER, marks=pytest.mark.slow),
    ],
)
def test_a_study_ends_in_the_release_of_the_in_process_run(gathering, parties, changes):
    finish(gathering(parties, **changes))


def test_everything_delivered_twice_changes_nothing(gathering):
    consortium = gathering()
    for party in consortium.parties.values():
        party.dial = wrapping(party, Doubling)
    finish(consortium)


def test_a_party_that_dies_at_every_message_changes_nothing(gathering):
    consortium = gathering()
    mortal = consortium.parties["east"]
    mortal.dial = wrapping(mortal, Mortal)
    living = mortal.attend

    def attend_again_and_again(study):
        for _ in range(100):
            with contextlib.suppress(Crash):
                return living(study)
        raise AssertionError("the study does not end")

    mortal.attend = attend_again_and_again
    finish(consortium)


def test_a_curator_that_restarts_again_and_again_changes_nothing(gathering):
    consortium = gathering(2)
    stopped = threading.Event()
    restarts = []

    def restart():
        while not stopped.is_set() and len(restarts) < 6:
            restarts.append(consortium.curator.store.record(consortium.study.digest).step)
            consortium.curator.restart()
            stopped.wait(0.1)

    restarting = threading.Thread(target=restart)
    restarting.start()
    try:
        ends = consortium.attend_all()
    finally:
        stopped.set()
        restarting.join()
    assert set(ends.values()) == {JournalState.FINISHED}
    assert restarts
    check_release(consortium)


def test_two_studies_run_side_by_side(gathering):
    consortium = gathering(2)
    other = dataclasses.replace(consortium.study, name="another")
    second = consortium.curator.studies.propose(other)
    with consortium.parties["north"].dial() as connection:
        names = [each.name for each in connection.enrol("north", b"")]
        assert names == ["another", "test"], "the newest first"
    with ThreadPoolExecutor(4) as threads:
        attending = [
            threads.submit(party.attend, study)
            for study in (consortium.study, other)
            for party in consortium.parties.values()
        ]
        assert {each.result(timeout=60) for each in attending} == {JournalState.FINISHED}
    assert consortium.session.record.state is second.record.state is StudyState.DONE
    assert len(consortium.curator.outcomes) == 2


def test_a_stopped_node_leaves_and_comes_back(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]
    north.policy = dataclasses.replace(north.policy, automatic=False)
    north.stopping.set()
    assert north.attend(consortium.study) is None
    assert consortium.session.record.state is StudyState.WAITING


def test_a_release_that_cannot_be_made_is_made_after_a_restart(gathering):
    consortium = gathering(1)
    curator = consortium.curator
    working = curator.publish
    curator.publish = lambda outcome: (_ for _ in ()).throw(OSError("the disk is full"))
    curator.restart()
    north = consortium.parties["north"]
    attending = threading.Thread(target=north.attend, args=(consortium.study,))
    attending.start()
    for _ in range(500):
        record = curator.store.record(consortium.study.digest)
        if record.cause:
            break
        north.stopping.wait(0.02)
    assert record.state is StudyState.PUBLISHING
    assert "the disk is full" in record.cause
    curator.publish = working
    curator.restart()
    attending.join(timeout=60)
    check_release(consortium)


def test_health_is_told_to_whoever_has_a_certificate(gathering):
    consortium = gathering(1)
    credentials = tls.channel_credentials(consortium.parties["north"].ring.files.load())
    with grpc.secure_channel(f"127.0.0.1:{consortium.curator.port}", credentials) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=Int32Value.FromString,
        )
        assert check(StringValue(value="parley.v1.CuratorService"), timeout=20).value == 1
        with pytest.raises(grpc.RpcError) as refused:
            check(StringValue(value="nothing"), timeout=20)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
