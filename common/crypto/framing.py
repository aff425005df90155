"""One way to turn fields into bytes that are signed, hashed or used to derive keys.

`frame` is injective: two different lists of fields never give the same bytes, so nothing that is
bound to a frame can be reinterpreted as bound to another one. Each field is tagged with its kind
and preceded by its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from common.errors import LocalError

_LENGTH_BYTES = 4


def frame(fields: Iterable[bytes | str | int]) -> bytes:
    """Return the fields, in order, as unambiguous bytes."""
    parts: list[bytes] = []
    for field in fields:
        if isinstance(field, str):  # a roster has one for every party
            tag, body = b"s", field.encode()
        elif isinstance(field, bytes):
            tag, body = b"b", field
        elif field < 0:
            raise LocalError("a framed integer is a count, a position or a bound: not negative")
        else:
            tag, body = b"i", field.to_bytes((field.bit_length() + 7) // 8, "big")
        parts += (tag, len(body).to_bytes(_LENGTH_BYTES, "big"), body)
    return b"".join(parts)


def unframe(data: bytes) -> list[bytes | str | int]:
    """Return the fields of a frame; ValueError if `frame` would not write exactly these bytes."""
    fields = list(_fields(data))
    if frame(fields) != data:
        raise ValueError("not the normal form of a frame")
    return fields


def _fields(data: bytes) -> Iterator[bytes | str | int]:
    start = 0
    while start < len(data):
        body_start = start + 1 + _LENGTH_BYTES
        end = body_start + int.from_bytes(data[start + 1 : body_start], "big")
        if end > len(data):
            raise ValueError("the frame is cut short")
        body = data[body_start:end]
        match data[start : start + 1]:
            case b"b":
                yield body
            case b"s":
                yield body.decode()
            case b"i":
                yield int.from_bytes(body, "big")
            case _:
                raise ValueError("a frame has no field of this kind")
        start = end
