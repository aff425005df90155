"""Messages in frames of at most 1 MiB, numbered and digested.

Each direction of each (party, study) numbers its messages 1, 2, 3, ... A receiver knows the last
number on its disk. A number up to it is a repetition, which the receiver compares by digest; the
number after it is new; a later one is a gap and is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from common.errors import LocalError
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError
from common.wire.v1.curator_pb2 import Frame, SubmitRequest, WorkResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedMessage:
    """An encoded message, and its position in its stream."""

    sequence: int
    body: bytes


def split(message: NumberedMessage) -> Iterator[Frame]:
    sequence, body, size = message.sequence, message.body, strict.MOST_FRAME_BYTES
    if not 0 < len(body) <= strict.MOST_MESSAGE_BYTES or sequence < 1:
        raise LocalError(f"message {sequence} of {len(body):,} bytes cannot be sent")
    digest = hashlib.sha256(body).digest()
    parts = -(-len(body) // size)
    for part in range(parts):
        yield Frame(
            sequence=sequence,
            digest=digest,
            part=part,
            parts=parts,
            payload=body[part * size : (part + 1) * size],
        )


class Assembler:
    """Puts one stream's frames together again; holds one message at most.

    Memory grows with what has arrived, never with what a frame announces.

    Attributes:
        latest: the highest number that leaves no gap; lower ones are repetitions.
    """

    def __init__(self, *, stored: int) -> None:
        self.latest = stored + 1
        self._sequence = 0  # of the message under way, or of the last one
        self._digest = b""
        self._parts = 0
        self._payloads: list[bytes] = []

    def add(self, call: SubmitRequest | WorkResponse) -> NumberedMessage | None:
        """Check the next frame; return the message with its last. A WireError ends the stream."""
        strict.check(call)
        frame = call.frame
        if not self._payloads:
            self._begin(frame)
        payload = frame.payload
        self._continue(frame, len(payload))
        self._payloads.append(payload)
        if len(self._payloads) < self._parts:
            return None
        body = b"".join(self._payloads)
        self._payloads = []
        if hashlib.sha256(body).digest() != self._digest:
            raise WireError(ErrorCode.FIELD_INVALID, f"message {frame.sequence}: wrong digest")
        self.latest = max(self.latest, self._sequence + 1)
        return NumberedMessage(sequence=self._sequence, body=body)

    def finish(self) -> None:
        """Take note that the stream ended; WireError if that is within a message."""
        if self._payloads:
            raise WireError(ErrorCode.OUT_OF_ORDER, f"message {self._sequence} is incomplete")

    def _begin(self, frame: Frame) -> None:
        if not 1 <= frame.sequence <= self.latest:
            raise WireError(
                ErrorCode.OUT_OF_ORDER, f"message {frame.sequence} before {self.latest}"
            )
        if self._sequence and frame.sequence != self._sequence + 1:
            raise WireError(
                ErrorCode.OUT_OF_ORDER, f"message {frame.sequence} after {self._sequence}"
            )
        most = strict.MOST_MESSAGE_BYTES // strict.MOST_FRAME_BYTES
        if not 1 <= frame.parts <= most:
            raise WireError(ErrorCode.TOO_LARGE, f"{frame.parts:,} parts, at most {most:,}")
        self._sequence, self._digest, self._parts = frame.sequence, frame.digest, frame.parts

    def _continue(self, frame: Frame, length: int) -> None:
        expected = (self._sequence, self._digest, self._parts, len(self._payloads))
        if (frame.sequence, frame.digest, frame.parts, frame.part) != expected:
            raise WireError(
                ErrorCode.OUT_OF_ORDER,
                f"part {frame.part} of message {frame.sequence} cannot come next",
            )
        last = frame.part == frame.parts - 1
        if not last and length != strict.MOST_FRAME_BYTES:
            raise WireError(ErrorCode.FIELD_INVALID, "a part that is not the last must be full")
