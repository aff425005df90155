"""Waits grow, are bounded, and are not tried where they cannot help."""

import pytest

from common.privacy.randomness import SeededRandomSource
from common.wire.catalogue import ErrorCode, WireError
from party.client.dialer import Backoff


def backoff(attempts=100):
    return Backoff(first_s=1.0, longest_s=8.0, attempts=attempts, source=SeededRandomSource(1))


def waits(made, code, times):
    return [made.after(WireError(code)) for _ in range(times)]


def test_waits_double_up_to_the_longest_with_a_random_part():
    found = waits(backoff(), ErrorCode.UNAVAILABLE, 50)
    for wait, full in zip(found, [1, 2, 4, 8, 8, 8], strict=False):
        assert full / 2 <= wait <= full
    assert len(set(found)) > 40


def test_it_gives_up_after_so_many_failures_in_a_row():
    made = backoff(attempts=3)
    waits(made, ErrorCode.UNAVAILABLE, 2)
    made.progressed()
    waits(made, ErrorCode.UNAVAILABLE, 2)
    with pytest.raises(WireError):
        made.after(WireError(ErrorCode.UNAVAILABLE))


def test_a_curator_that_fails_in_the_same_place_is_given_up_on_soon():
    made = backoff(attempts=1000)
    waits(made, ErrorCode.INTERNAL, 9)
    with pytest.raises(WireError):
        made.after(WireError(ErrorCode.INTERNAL))


def test_a_failing_curator_counts_as_out_of_reach_where_the_caller_says_so():
    made, codes = backoff(attempts=30), (ErrorCode.UNAVAILABLE, ErrorCode.INTERNAL)
    for _ in range(29):
        made.after(WireError(ErrorCode.INTERNAL), out_of_reach=codes)
    with pytest.raises(WireError):
        made.after(WireError(ErrorCode.INTERNAL), out_of_reach=codes)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.CERTIFICATE_EXPIRED, ErrorCode.OUT_OF_TURN, ErrorCode.SEQUENCE_REUSED],
)
def test_what_waiting_cannot_cure_is_not_waited_for(code):
    with pytest.raises(WireError):
        backoff().after(WireError(code))
