"""Answers that have an order: ranges written as texts ("<5", "5-9", "10+"), and common scales."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_NUMBER = r"[$€£]?\s*([0-9]+(?:\.[0-9]+)?)\s*(?:k|%|years?|yrs?)?"
_FORMS = (  # of a range, and which of its ends are given
    (rf"(?:<=?|≤|under|below|less than|up to|at most)\s*{_NUMBER}", "high"),
    (rf"(?:>=?|≥|over|above|more than|at least)\s*{_NUMBER}", "low"),
    (rf"{_NUMBER}\s*(?:\+|plus|or more|or over|or older|and more|and over|and older)", "low"),
    (rf"{_NUMBER}\s*(?:-|–|to|\.\.)\s*{_NUMBER}", "both"),  # noqa: RUF001  # a dash of print
    (_NUMBER, "one"),
)
_PATTERNS = tuple((re.compile(form), ends) for form, ends in _FORMS)
_SCALES = (
    "none|very low|low|medium|moderate|high|very high",
    "none|minimal|mild|moderate|severe|very severe|extreme",
    "never|rarely|seldom|sometimes|occasionally|often|usually|always",
    "very poor|poor|fair|good|very good|excellent",
    "very bad|bad|average|good|very good",
    "strongly disagree|disagree|neutral|agree|strongly agree",
    "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
    "tiny|small|medium|large|very large",
)


def in_order(values: Sequence[str]) -> tuple[str, ...] | None:
    """Return answers in their order; None if they have none that is known."""
    plain = {value: " ".join(value.lower().split()) for value in values}
    for scale in _SCALES:
        places = {word: place for place, word in enumerate(scale.split("|"))}
        if len(values) > 1 and set(plain.values()) <= set(places):
            return tuple(sorted(values, key=lambda value: places[plain[value]]))
    ranges = {value: _range(text) for value, text in plain.items()}
    ends = {value: known for value, known in ranges.items() if known is not None}
    if len(ends) < len(values) or len(set(ends.values())) < len(values):
        return None
    if all(low == high for low, high in ends.values()):
        return None  # numbers, or codes
    return tuple(sorted(values, key=lambda value: ends[value]))


def _range(text: str) -> tuple[float, float] | None:
    """Return the ends of a range in a text; None if it is no range."""
    for pattern, ends in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is not None:
            numbers = [float(number) for number in match.groups()]
            low = -math.inf if ends == "high" else numbers[0]
            high = math.inf if ends == "low" else numbers[-1]
            return (low, high) if low <= high else None
    return (-math.inf, -math.inf) if text in ("none", "zero") else None
