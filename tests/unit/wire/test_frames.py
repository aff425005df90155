"""Large messages travel in numbered parts."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import LocalError
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.frames import Assembler, NumberedMessage
from common.wire.frames import split as frames_of
from common.wire.v1.curator_pb2 import SubmitRequest


def split(data, *, sequence):
    """Return the calls that bring a message."""
    for frame in frames_of(NumberedMessage(sequence=sequence, body=data)):
        yield SubmitRequest(study=bytes(32), frame=frame)


@pytest.fixture
def small_frames(monkeypatch):
    monkeypatch.setattr(strict, "MOST_FRAME_BYTES", 4)
    monkeypatch.setattr(strict, "MOST_MESSAGE_BYTES", 40)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 39, 40])
def test_a_message_is_put_together_again(small_frames, size):
    data = bytes(range(size))
    frames = list(split(data, sequence=1))
    assert [len(f.frame.payload) for f in frames[:-1]] == [4] * (len(frames) - 1)
    assembler = Assembler(stored=0)
    assert [assembler.add(frame) for frame in frames[:-1]] == [None] * (len(frames) - 1)
    whole = assembler.add(frames[-1])
    assert (whole.sequence, whole.body) == (1, data)
    assembler.finish()


def test_a_real_message_above_the_limit_of_one_call_is_cut_to_size():
    data = bytes(5 * strict.MIB + 7)
    frames = list(split(data, sequence=3))
    assert len(frames) == 6
    assert max(frame.ByteSize() for frame in frames) < strict.MIB + 150 < strict.MOST_CALL_BYTES
    assembler = Assembler(stored=2)
    assert [assembler.add(frame) for frame in frames][-1].body == data


@pytest.mark.parametrize("size", [0, 41])
def test_what_cannot_be_received_is_not_sent(small_frames, size):
    with pytest.raises(LocalError, match="cannot be sent"):
        list(split(bytes(size), sequence=1))


def test_several_messages_follow_each_other_and_repetitions_are_taken(small_frames):
    assembler = Assembler(stored=5)
    for sequence in (4, 5, 6, 7):
        for frame in split(b"message %d" % sequence, sequence=sequence):
            whole = assembler.add(frame)
        assert whole.sequence == sequence


@pytest.mark.parametrize("sequence", [0, 7, 1 << 63])
def test_a_gap_is_refused(small_frames, sequence):
    frame = next(split(b"abc", sequence=1))
    frame.frame.sequence = sequence
    with pytest.raises(WireError) as refusal:
        Assembler(stored=5).add(frame)
    assert refusal.value.code is ErrorCode.OUT_OF_ORDER


def test_going_back_within_a_stream_is_refused(small_frames):
    assembler = Assembler(stored=5)
    assembler.add(next(split(b"abc", sequence=5)))
    with pytest.raises(WireError, match="message 5 after 5"):
        assembler.add(next(split(b"abc", sequence=5)))


def test_a_stream_that_ends_within_a_message_is_refused(small_frames):
    assembler = Assembler(stored=0)
    assembler.add(next(split(b"abcdef", sequence=1)))
    with pytest.raises(WireError, match="incomplete"):
        assembler.finish()


@pytest.mark.parametrize(
    ("place", "change", "code"),
    [
        (0, {"parts": 0}, ErrorCode.TOO_LARGE),
        (0, {"parts": 11}, ErrorCode.TOO_LARGE),
        (0, {"part": 1}, ErrorCode.OUT_OF_ORDER),
        (0, {"payload": b"abc"}, ErrorCode.FIELD_INVALID),
        (1, {"part": 0}, ErrorCode.OUT_OF_ORDER),
        (1, {"part": 2}, ErrorCode.OUT_OF_ORDER),
        (1, {"parts": 4}, ErrorCode.OUT_OF_ORDER),
        (1, {"sequence": 2}, ErrorCode.OUT_OF_ORDER),
        (1, {"digest": bytes(32)}, ErrorCode.OUT_OF_ORDER),
        (2, {"payload": b"!"}, ErrorCode.FIELD_INVALID),
    ],
)
def test_a_frame_that_cannot_come_next_is_refused(small_frames, place, change, code):
    frames = list(split(b"abcdefghij", sequence=1))
    for name, value in change.items():
        setattr(frames[place].frame, name, value)
    assembler = Assembler(stored=0)
    with pytest.raises(WireError) as refusal:
        list(map(assembler.add, frames))
    assert refusal.value.code is code


@given(st.data())
@settings(deadline=None)
def test_no_sequence_of_frames_yields_anything_but_the_messages_sent(data):
    """Shuffled, dropped and repeated frames are refused or give exactly what was sent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "MOST_FRAME_BYTES", 4)
        sent = {1: b"first message", 2: b"second", 3: b"third one"}
        frames = [f for number, text in sent.items() for f in split(text, sequence=number)]
        order = data.draw(st.lists(st.sampled_from(range(len(frames))), max_size=12))
        assembler = Assembler(stored=data.draw(st.integers(0, 3)))
        with contextlib.suppress(WireError):
            for position in order:
                whole = assembler.add(frames[position])
                assert whole is None or whole.body == sent[whole.sequence]
