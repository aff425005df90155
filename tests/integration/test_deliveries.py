"""Messages that arrive twice, late, or before their turn: the same release, or a named refusal."""

import pytest

from common.errors import RemoteProtocolError
from common.wire.catalogue import ErrorCode, WireError
from tests.harness.consortium import Wrapped, finish, wrapping


class LateCopies(Wrapped):
    """After every message, in both directions, all that came before it once more, newest first."""

    def __init__(self, connection):
        super().__init__(connection)
        self.came, self.left = [], []

    def work(self, study, *, received):
        for whole in self.connection.work(study, received=received):
            yield whole
            yield from reversed(self.came)
            self.came.append(whole)

    def submit(self, study, messages):
        messages = list(messages)
        newest = self.connection.submit(study, messages)
        for late in reversed(self.left):
            assert self.connection.submit(study, [late]) == newest
        self.left += messages
        return newest


def test_late_copies_of_old_messages_change_nothing(gathering):
    consortium = gathering(2)
    for party in consortium.parties.values():
        party.dial = wrapping(party, LateCopies)
    finish(consortium)


def test_work_in_another_order_is_refused_and_goes_on_in_the_right_one(gathering):
    consortium = gathering(1)
    north = consortium.parties["north"]

    class Swapping(Wrapped):
        """The first two messages, which are queued together, the wrong way round."""

        def work(self, study, *, received):
            stream = self.connection.work(study, received=received)
            first, second = next(stream), next(stream)
            yield second
            yield first

    living = north.dial
    north.dial = wrapping(north, Swapping)
    with pytest.raises(RemoteProtocolError, match="message 2 came after message 0"):
        north.attend(consortium.study)
    with north.context() as context:
        assert context.ledger.entries() == []
        assert context.journal.sent_log() == []
    north.dial = living
    finish(consortium)


def test_answers_in_another_order_are_refused_and_go_on_in_the_right_one(gathering):
    consortium = gathering(2)
    east = consortium.parties["east"]
    refusals = []

    class Ahead(Wrapped):
        """Before every answer, the same answer under the number of the one after it."""

        def submit(self, study, messages):
            last = messages[-1]
            early = type(last)(sequence=last.sequence + 1, body=last.body)
            with pytest.raises(WireError) as refusal:
                self.connection.submit(study, [early])
            refusals.append(refusal.value.code)
            return self.connection.submit(study, messages)

    east.dial = wrapping(east, Ahead)
    finish(consortium)
    assert set(refusals) == {ErrorCode.OUT_OF_ORDER}
