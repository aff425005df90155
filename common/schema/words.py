"""The text of a cell, and what that text means: one grammar for every kind of attribute.

Every cell is a text, and the text and the schema alone decide its code. A text in a table is that
text (UTF-8). Other cells have the text that a file would hold:

* a boolean: True, False;
* a number that is whole and below 10^300: its digits, so 3.0 is 3 and -0.0 is 0;
* any other number: the shortest text that reads back as the same double (single precision and
  decimals are read as doubles first);
* a date: 2024-01-31; a time without a zone: 2024-01-31 12:00:00, and the fraction if there is one;
* null, NaN and a text of no characters are no text: the cell is empty.

White space (of ASCII) around a number, a date or a boolean does not count. The grammars:

* A number is an optional sign, digits with or without a decimal point, and an optional exponent; or
  `inf`, `infinity`, `nan` (an empty cell) in any case. Digits alone are that integer, everything
  else is the nearest double. So there is no hexadecimal, no underscore, no digit beyond ASCII.
* A whole number is a number without a fraction: 12, 12.0, 1.2e1. Beyond 64 bits it keeps its sign.
* A moment is 2024-01-31, or 20240131, or a date with a time after `T` or a blank: hours, or hours
  and minutes, or hours, minutes and seconds, and then a fraction. It has no zone.
* A boolean is true, t, yes, y, false, f, no or n in any case, or a number that is 1 or 0.
* A listed text is that text; where it is not listed and is a number, the listed one that is the
  same number, however either is written.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import Any

import numpy as np

LARGEST = 2**63 - 1
SMALLEST = -(2**63)
_MOST_DIGITS = 300  # of an integer; more are beyond every double, and slow to read
_DIGITS = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_MOMENT = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    rb"(?:[ T]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?)?)?"
    rb"|([0-9]{4})([0-9]{2})([0-9]{2})"
)
_FRACTION = re.compile(r"\.[0-9]+")
_TRUTH = {
    **dict.fromkeys((b"false", b"f", b"no", b"n"), 0),
    **dict.fromkeys((b"true", b"t", b"yes", b"y"), 1),
}


def real(word: bytes) -> float | None:
    """Return the nearest double; None if the text is not a number."""
    word = word.strip()
    return float(word) if _NUMBER.fullmatch(word) else None


def number(word: bytes) -> int | float | None:
    """Return the integer, else the nearest double; None if the text is not a number."""
    word = word.strip()
    if _DIGITS.fullmatch(word):
        digits, sign = word.lstrip(b"+-0") or b"0", -1 if word.startswith(b"-") else 1
        return sign * (int(digits) if len(digits) <= _MOST_DIGITS else math.inf)
    value = real(word)
    return int(value) if value is not None and value.is_integer() else value


def whole(word: bytes) -> int | float | None:
    """Return the whole number, cut to 64 bits; None if it is not whole, NaN for NaN."""
    value = number(word)
    if value is None or (isinstance(value, float) and math.isfinite(value)):
        return None
    return value if math.isnan(value) else min(max(value, SMALLEST), LARGEST)


def moment(word: bytes) -> int | None:
    """Return seconds since 1970, rounded down; None if the text is no moment, or has a zone."""
    fields = _MOMENT.fullmatch(word.strip())
    if fields is None:
        return None
    parts = [part.decode() for part in fields.groups() if part is not None]
    date, time = "-".join(parts[:3]), ":".join([*parts[3:], "00", "00", "00"][:3])
    try:
        return int(np.datetime64(f"{date}T{time}", "s").astype(np.int64))
    except ValueError:  # the 31st of February
        return None


def boolean(word: bytes) -> int | None:
    """Return 1 or 0; None if the text is neither true nor false."""
    truth = _TRUTH.get(word.strip().lower())
    if truth is not None:
        return truth
    value = number(word)
    return int(value) if value in (0, 1) else None


def word_of_number(value: float) -> str:
    """Return the text of a number that is not NaN."""
    whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if whole and abs(value) < 10**_MOST_DIGITS else repr(float(value))


def member_of(value: Any) -> bytes | None:  # noqa: ANN401  (whatever pandas may hold)
    """Return the text of an object in a table; None for an empty cell.

    A text that cannot be written as UTF-8 becomes bytes that are no text: outside every domain.
    """
    if isinstance(value, np.generic):
        value = _plain(value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, complex):
        value = value.real if value.imag == 0 else value
    elif isinstance(value, decimal.Decimal):
        value = math.nan if value.is_nan() else float(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, bool):
        return b"True" if value else b"False"
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        value = math.inf if value > 0 else -math.inf
    if isinstance(value, int | float):
        return word_of_number(value).encode()
    return _text(value).encode("utf-8", "surrogatepass")


def _plain(value: np.generic) -> Any:  # noqa: ANN401
    """Return the Python object of a numpy one; numpy gives numbers for times in nanoseconds."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        import pandas as pd

        try:
            return pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)
        except ValueError:  # months, and times too far away for pandas
            return str(value)
    return float(value) if isinstance(value, np.floating) else value.item()


def _text(value: Any) -> str:  # noqa: ANN401
    if not isinstance(value, dt.date | dt.time):  # a datetime is a date
        return str(value)
    text = value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    return _FRACTION.sub(lambda fraction: fraction[0].rstrip("0").rstrip("."), text)
