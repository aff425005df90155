"""Shamir's sharing against a brute-force oracle."""

import contextlib
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.crypto.sums import shamir
from common.errors import LocalError, RemoteProtocolError
from common.privacy.randomness import SeededRandomSource


@settings(max_examples=40, deadline=None)
@given(secret=st.binary(min_size=32, max_size=32), holders=st.integers(1, 6), data=st.data())
def test_every_set_of_threshold_holders_opens_the_secret(secret, holders, data):
    threshold = data.draw(st.integers(1, holders))
    dealt = shamir.split(
        secret, holders=holders, threshold=threshold, source=SeededRandomSource("shares")
    )
    for places in combinations(range(1, holders + 1), threshold):
        assert shamir.join({place: dealt[place - 1] for place in places}) == secret


def test_fewer_holders_can_be_completed_to_every_secret():
    """The oracle solves for the missing value: each secret has exactly one, so nothing is known."""
    dealt = shamir.split(bytes(32), holders=3, threshold=3, source=SeededRandomSource("two of 3"))
    known = {1: dealt[0], 2: dealt[1]}
    for number in range(5):
        secret = bytes(31) + bytes([number])
        weights = shamir._weights((1, 2, 3))
        rest = number - sum(
            weight * int.from_bytes(known[place], "big")
            for place, weight in zip((1, 2), weights, strict=False)
        )
        value = rest * pow(int(weights[2]), -1, int(shamir.PRIME)) % int(shamir.PRIME)
        assert shamir.join({**known, 3: int(value).to_bytes(33, "big")}) == secret


def test_a_changed_share_opens_another_secret_or_none():
    dealt = shamir.split(b"s" * 32, holders=3, threshold=2, source=SeededRandomSource("changed"))
    changed = dealt[1][:-1] + bytes([dealt[1][-1] ^ 1])
    with contextlib.suppress(RemoteProtocolError):
        assert shamir.join({1: dealt[0], 2: changed}) != b"s" * 32
    with pytest.raises(RemoteProtocolError, match="holder 2"):
        shamir.join({1: dealt[0], 2: b"\xff" * 33})


def test_impossible_thresholds_are_refused():
    for threshold in (0, 4):
        with pytest.raises(LocalError):
            shamir.split(
                bytes(32), holders=3, threshold=threshold, source=SeededRandomSource("none")
            )
