"""Numbers in sentences."""

from __future__ import annotations


def many(number: int, word: str) -> str:
    """A number of things: 1 row, 2 rows, 1 party, 1,200 parties."""
    if number == 1:
        return f"1 {word}"
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{number:,} {word[:-1]}ies"
    return f"{number:,} {word}s"
