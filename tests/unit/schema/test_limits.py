"""Limits: what is exactly at one passes, what is beyond is refused by name."""

import pytest

from common.errors import InputError
from common.schema.limits import (
    MOST_TEXT,
    check_digest,
    check_most,
    check_name,
    check_text,
)


def test_a_limit_itself_passes_and_one_more_is_refused_with_both_numbers():
    check_most("rows", 1000, most=1000)
    with pytest.raises(InputError, match=r"^rows: at most 1,000, not 1,001$"):
        check_most("rows", 1001, most=1000)
    with pytest.raises(InputError, match=r"^rows: at most 1,000$"):
        check_most("rows", 10**5000, most=1000)  # a number whose digits fill no terminal


@pytest.mark.parametrize("name", ["north", "été", "a b", "x" * 100, "東京"])
def test_names_that_can_be_printed_pass(name):
    check_name(name, most=100)
    check_text("purpose", name)


@pytest.mark.parametrize(
    "name", ["a\nb", "\x1b[31mred", "a\u2028b", "a\u202eb", "\x00", "a\u00a0b"]
)
def test_names_that_a_terminal_would_not_show_as_they_are_are_refused_in_escapes(name):
    for check in (lambda: check_name(name, most=100), lambda: check_text("purpose", name)):
        with pytest.raises(InputError, match="cannot be printed") as refused:
            check()
        assert str(refused.value).isprintable()


def test_a_name_has_a_length():
    for name in ("", "x" * 101):
        with pytest.raises(InputError, match=f"1 to 100 characters, got {len(name)}"):
            check_name(name, most=100)
    check_text("purpose", "")
    with pytest.raises(InputError, match="purpose: characters: at most 1,000, not 1,001"):
        check_text("purpose", "x" * (MOST_TEXT + 1))


@pytest.mark.parametrize("text", ["ab" * 31, "AB" * 32, "g" * 64, "ab" * 33, " " * 64])
def test_what_is_no_digest_is_refused(text):
    check_digest("prior", "")
    check_digest("prior", "0f" * 32)
    with pytest.raises(InputError, match="prior: expected the SHA-256"):
        check_digest("prior", text)
