"""Reading the settings of a method: the table of study.toml that has the method's name.

Every method that has settings parses them into a frozen dataclass of its own with these functions,
so that a new method with new settings is one file. Values are texts and whole numbers; they are in
the study's canonical bytes as they were written.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from common.errors import InputError
from common.privacy.budget import parse_epsilon
from common.study.document import Study


class SettingsReader:
    """The settings of one study, taken out by name."""

    def __init__(self, study: Study) -> None:
        self._left = dict(study.settings)
        self._where = f"[{study.method}]"

    def whole(self, key: str, default: int, *, least: int = 0, most: int) -> int:
        """A whole number between two others, both included."""
        value = self._left.pop(key, default)
        if type(value) is not int or not least <= value <= most:
            raise InputError(
                f"{self._where} {key}: {value!r} is no whole number from {least} to {most}"
            )
        return value

    def optional(self, key: str, *, most: int) -> int | None:
        """A whole number from 0 on if there is one."""
        return self.whole(key, 0, most=most) if key in self._left else None

    def fraction(self, key: str, default: int) -> Fraction:
        """A number above zero, written as a text or a whole number."""
        return self._above_zero(key, self._left.pop(key, default))

    def parts(self, key: str, default: str, count: int) -> tuple[Fraction, ...]:
        """So many numbers above zero with colons between them, such as "1:1:2:4"."""
        written = str(self._left.pop(key, default)).split(":")
        if len(written) != count:
            raise InputError(
                f"{self._where} {key}: {':'.join(written)!r} has {len(written)} parts, not {count}"
            )
        return tuple(self._above_zero(key, part.strip()) for part in written)

    def word(self, key: str, default: str, known: Collection[str]) -> str:
        value = self._left.pop(key, default)
        if value not in known:
            raise InputError(f"{self._where} {key}: {value!r} is not one of {', '.join(known)}")
        return str(value)

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self._left.pop(key, None)
        if not isinstance(value, str):
            raise InputError(f"{self._where} {key}: is missing, or no text. Set it in study.toml")
        return value

    def finish(self) -> None:
        """Refuse, with InputError, what no reader asked for."""
        if self._left:
            raise InputError(f"{self._where} {min(self._left)}: the method has no such setting")

    def _above_zero(self, key: str, value: str | int) -> Fraction:
        try:
            return parse_epsilon(value)
        except InputError:
            raise InputError(f"{self._where} {key}: {value!r} is no number above 0") from None
