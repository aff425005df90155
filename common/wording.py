"""What people are told: numbers in sentences, texts from outside, the progress of a long job."""

from __future__ import annotations

import re
from typing import Protocol

# Control characters but line feed and tab, line separators, and what turns the direction of text.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def many(number: int, word: str) -> str:
    """Count things in words: 1 row, 2 rows, 1 party, 1,200 parties, 1 person, 2 people."""
    return f"1 {word}" if number == 1 else f"{number:,} {plural(word)}"


def plural(word: str) -> str:
    """Return the word for several: rows, parties, people."""
    if word.endswith("person"):
        return f"{word.removesuffix('person')}people"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"


def moment(at: str) -> str:
    """Turn the time of a record, 2026-11-17T16:53:22+00:00, into 2026-11-17 16:53:22 UTC."""
    return at.replace("T", " ").removesuffix("+00:00").removesuffix("Z") + " UTC"


def harmless(text: str) -> str:
    """Escape the characters of a text that a terminal obeys.

    The escapes are those of JSON and TOML, so that such a document keeps its meaning.
    """
    return _HARMFUL.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


def one_line(text: str) -> str:
    """Escape those characters and line breaks, so that a text cannot look like several lines."""
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")


class Reporter(Protocol):
    """Is told how far a job is: `fraction` in 0..1 and what is being done, as "stage: detail"."""

    def __call__(self, fraction: float, doing: str) -> None:
        """Take note."""


def silent(fraction: float, doing: str) -> None:
    """Report nothing."""
