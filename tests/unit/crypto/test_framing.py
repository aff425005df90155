"""Frames bring their fields back, and no two lists of fields share one."""

from hypothesis import given
from hypothesis import strategies as st

from common.crypto.framing import frame, unframe

FIELDS = st.lists(st.binary() | st.text() | st.integers(min_value=0))


@given(FIELDS)
def test_a_frame_brings_its_fields_back(fields):
    assert unframe(frame(fields)) == fields


@given(FIELDS, FIELDS)
def test_different_fields_never_share_a_frame(left, right):
    assert (frame(left) == frame(right)) == (left == right)


@given(st.binary())
def test_bytes_are_a_frame_or_refused(data):
    try:
        fields = unframe(data)
    except ValueError:
        return
    assert frame(fields) == data
