"""Waiting grows, is bounded, and is not tried where it cannot help."""

import pytest

from common.privacy.randomness import SeededRandomSource
from common.wire.catalogue import ErrorCode, WireError
from party.client.patience import Patience


def patience(attempts=100, *, stop=False):
    waits = []
    made = Patience(
        first_s=1.0, longest_s=8.0, attempts=attempts,
        sleep=lambda seconds: bool(waits.append(seconds)) or stop, source=SeededRandomSource(1),
    )  # fmt: skip
    return made, waits


def test_waits_double_up_to_the_longest_with_a_random_part():
    made, waits = patience()
    for _ in range(50):
        assert made.wait_after(WireError(ErrorCode.UNAVAILABLE)) is False
    for wait, full in zip(waits, [1, 2, 4, 8, 8, 8], strict=False):
        assert full / 2 <= wait <= full
    assert len(set(waits)) > 40


def test_it_gives_up_after_so_many_failures_in_a_row():
    made, waits = patience(attempts=3)
    for _ in range(2):
        made.wait_after(WireError(ErrorCode.UNAVAILABLE))
    made.progressed()
    for _ in range(2):
        made.wait_after(WireError(ErrorCode.UNAVAILABLE))
    with pytest.raises(WireError):
        made.wait_after(WireError(ErrorCode.UNAVAILABLE))
    assert len(waits) == 4


def test_a_curator_that_fails_in_the_same_place_is_given_up_on_soon():
    made, waits = patience(attempts=1000)
    for _ in range(9):
        made.wait_after(WireError(ErrorCode.INTERNAL))
        made.reached()  # it answers, and fails again
    with pytest.raises(WireError):
        made.wait_after(WireError(ErrorCode.INTERNAL))
    assert len(waits) == 9


@pytest.mark.parametrize(
    "code",
    [ErrorCode.CERTIFICATE_EXPIRED, ErrorCode.OUT_OF_TURN, ErrorCode.SEQUENCE_REUSED],
)
def test_what_waiting_cannot_cure_is_not_waited_for(code):
    made, waits = patience()
    with pytest.raises(WireError):
        made.wait_after(WireError(code))
    assert waits == []


def test_being_told_to_stop_is_passed_on():
    made, _ = patience(stop=True)
    assert made.wait_after(WireError(ErrorCode.UNAVAILABLE)) is True
