"""Every field of the contract has a limit, and is checked."""

import pytest

from common.schema.limits import MOST_PARTIES
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1 import curator_pb2, messages_pb2
from tests.unit.wire.conftest import DIGEST


def every_message_of_the_contract():
    for file in (messages_pb2, curator_pb2):
        yield from file.DESCRIPTOR.message_types_by_name.values()


def test_every_field_with_a_length_has_a_limit():
    with_length = {
        f"{message.name}.{field.name}"
        for message in every_message_of_the_contract()
        for field in message.fields
        if field.is_repeated or field.type in (field.TYPE_BYTES, field.TYPE_STRING)
    }
    limited = set(strict.LIMITS)
    assert {name for name in with_length if not {name, name.partition(".")[2]} & limited} == set()
    assert limited <= with_length | {name.partition(".")[2] for name in with_length}


def test_every_field_can_be_told_from_a_missing_one():
    for message in every_message_of_the_contract():
        for field in message.fields:
            assert field.is_repeated or field.has_presence, f"{message.name}.{field.name}"


def test_states_and_lists_are_checked_too():
    strict.check(curator_pb2.ApproveResponse(state=2))
    strict.check(messages_pb2.ListPublished(step=0, missing=["north"]))
    for bad, code in (
        (curator_pb2.ApproveResponse(state=0), ErrorCode.FIELD_UNKNOWN),
        (curator_pb2.ApproveResponse(state=99), ErrorCode.FIELD_UNKNOWN),
        (messages_pb2.ListPublished(step=0, missing=[""]), ErrorCode.FIELD_INVALID),
        (messages_pb2.ListPublished(step=0, missing=["a\nb"]), ErrorCode.FIELD_INVALID),
        (
            messages_pb2.ListPublished(step=0, missing=["x"] * (MOST_PARTIES + 1)),
            ErrorCode.TOO_LARGE,
        ),
    ):
        with pytest.raises(WireError) as refusal:
            strict.check(bad)
        assert refusal.value.code is code
    summary = curator_pb2.StudySummary(study=DIGEST, name="s", state=1, approved=False)
    listing = curator_pb2.EnrolResponse(protocol=1, software="parley", studies=[summary])
    with pytest.raises(WireError, match=r"StudySummary\.submitted"):
        strict.check(listing)
