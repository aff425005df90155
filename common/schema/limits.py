"""Limits: the most that a study or a schema may ask of a machine that reads it.

A node parses a study and goes through its steps before its owner has approved anything. So what a
document can make a node hold or compute is limited here; docs/operations.md has the list.
The limits are far above what a study of people needs: a document beyond them is refused, never cut.
"""

from __future__ import annotations

from common.errors import InputError

MOST_NAME = 100  # characters of the name of a study or a party
MOST_ATTRIBUTE_NAME = 1_000  # characters; surveys name columns by their questions
MOST_MISSING_CODES = 100  # of an attribute
MOST_VALUE = 1_000  # characters of a listed value
MOST_TEXT = 1_000  # characters of a study's purpose, and of its other texts
MOST_PARTIES = 1_000
MOST_ROWS = 10_000_000_000  # of all parties together, and of synthetic rows
MOST_ATTRIBUTES = 500
MOST_EVENTS = 64  # of a person that count
MOST_VALUES = 1 << 20  # of all attributes together
MOST_RULES = 1_000
MOST_RULE_CELLS = 1 << 20  # of the table of a rule's attributes
MOST_PEOPLE_CELLS = 1 << 16  # of people's columns in rules about events, together
MOST_KINDS = 1 << 10  # of people that rules about events tell apart
MOST_KIND_RULES = 1 << 16  # kinds of people times rules about events
MOST_STEP_CELLS = 1 << 24  # integers that a party sends in one step
MOST_PLAN_CELLS = 1 << 26  # of all steps of a plan together, with the bytes of parties' choices
MOST_PLAN_TABLES = 1 << 22  # of all steps of a plan together; each takes some microseconds


def check_name(name: str, *, most: int) -> None:
    """Refuse a name that a terminal, a log or a page could not show unchanged."""
    if not 0 < len(name) <= most:
        raise InputError(f"name: expected 1 to {most:,} characters, got {len(name):,}")
    if not name.isprintable():
        raise InputError(
            f"name: {name!r:.200} has characters that cannot be printed, such as line breaks, "
            "control characters or unusual spaces. Leave them out, in the table's column too"
        )


def check_digest(key: str, text: str) -> None:
    """Refuse a text that is neither empty nor a SHA-256 in hexadecimal."""
    if text and (len(text) != 64 or set(text) - set("0123456789abcdef")):
        raise InputError(f"{key}: expected the SHA-256 of a manifest.json, 64 hexadecimal digits")


def check_text(key: str, text: str) -> None:
    """Refuse a text for people that is too long, or that a terminal could not show unchanged."""
    check_most(f"{key}: characters", len(text), most=MOST_TEXT)
    if not text.isprintable():
        raise InputError(
            f"{key}: {text!r:.200} has characters that cannot be printed. Use one line"
        )


def check_most(what: str, number: int, *, most: int) -> None:
    """Refuse more than a limit, naming it."""
    if number > most:
        raise InputError(
            f"{what}: at most {most:,}{f', not {number:,}' if number < 1 << 99 else ''}"
        )
