"""Values that must never be printed, logged or written down by accident.

A key, a seed and an exact count are shown only by a call that says so: `reveal`. What a log line,
an error or a traceback makes of a secret is its kind alone, and a secret cannot be pickled.
"""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Secret(Generic[T]):
    """A value that only a call of `reveal` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({type(self._value).__name__})"

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __deepcopy__(self, memo: dict[int, object]) -> Secret[T]:
        return self  # it does not leave the process

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")
