"""The parties of a study: read from [[party]], or refused by name."""

import base64

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.study.members import Member, member_in

IDENTITY = Identity.generate(SeededRandomSource("north")).public
ENTRY = {
    "name": "north",
    "rows": 7,
    "identity": base64.b64encode(IDENTITY.encoded).decode(),
}


def test_a_party_is_read_as_it_is_written():
    assert member_in(ENTRY) == Member(name="north", rows=7, identity=IDENTITY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "party: "),
        ({"name": "a\nb"}, "party: "),
        ({"name": "x" * 10_000}, "party: "),
        ({"name": 5}, "a name is a text, not 5"),
        ({"rows": 0}, "party 'north': rows must be a whole number of at least 1, not 0"),
        ({"rows": True}, "whole number of at least 1, not True"),
        ({"rows": 7.0}, "whole number of at least 1, not 7.0"),
        ({"rows": 10**15}, "party 'north': rows"),
        ({"identity": "?"}, "party 'north': identity is not base64"),
        ({"identity": None}, "party 'north': identity is not base64"),
        ({"extra": 1}, "expected name, rows and identity"),
    ],
)
def test_what_cannot_take_part_is_refused_by_name(change, words):
    with pytest.raises(InputError, match=words):
        member_in(ENTRY | change)


def test_an_entry_that_is_no_table_is_refused_and_shown_in_part_only():
    with pytest.raises(InputError, match="expected name, rows and identity") as refused:
        member_in("x" * 10_000)
    assert len(str(refused.value)) < 200
