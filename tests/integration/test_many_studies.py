"""A party in more studies than one answer of the curator lists."""

import pytest

from common.errors import LocalError
from common.wire.catalogue import PROTOCOL, ErrorCode, WireError
from common.wire.strict import MOST_LISTED
from common.wire.v1 import curator_pb2 as pb
from party.client.context import require_no_rollback
from tests.harness.consortium import finish

AT = "2026-11-18T00:00:00+00:00"


def add_newer_studies(consortium, number=MOST_LISTED):
    """Store studies that ended and that no party has acknowledged, newer than the one there is."""
    store = consortium.curator.store
    with store.transaction():
        for place in range(number):
            study = place.to_bytes(32, "big")
            store._file.write(
                "INSERT INTO study VALUES (?, ?, '', 'refused', 0, '', '', '', ?, ?)",
                (study, f"study {place}", AT, AT),
            )
            for party in consortium.parties:
                store._file.write("INSERT INTO member VALUES (?, ?, 0)", (study, party))


@pytest.mark.parametrize("with_ended", [True, False])
def test_every_study_is_listed_once_newest_first(consortium, with_ended):
    add_newer_studies(consortium, 2 * MOST_LISTED)
    with consortium.parties["north"].dial() as connection:
        listed = connection.enrol("north", b"", with_ended=with_ended)
    expected = [place.to_bytes(32, "big") for place in reversed(range(2 * MOST_LISTED))]
    assert [each.study for each in listed] == [*expected, consortium.study.digest]


def test_a_study_with_a_full_list_before_it_is_finished(consortium):
    add_newer_studies(consortium)
    finish(consortium)


def test_a_rollback_is_seen_in_the_oldest_study(consortium):
    finish(consortium)
    add_newer_studies(consortium)
    north = consortium.parties["north"]
    north.path = north.path.with_name("lost.db")  # an empty folder
    with north.context() as context, north.dial() as connection:
        listed = connection.enrol("north", b"")
        with pytest.raises(LocalError, match="rollback of the state folder"):
            require_no_rollback(context.journal, north.policy, listed)


def test_a_list_after_a_study_of_others_is_refused(consortium):
    request = pb.EnrolRequest(
        protocol=PROTOCOL, software="test", party="north", identity=b"", with_ended=True,
        after=b"a study of others".ljust(32),
    )  # fmt: skip
    with (
        consortium.parties["north"].dial() as connection,
        pytest.raises(WireError) as refused,
    ):
        connection._call("Enrol", request)
    assert refused.value.code is ErrorCode.STUDY_UNKNOWN
