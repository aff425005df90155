"""What identifies people is told by headers and cells; what does not is left alone."""

import pytest

from common.schema.identifying import by_header, by_texts


@pytest.mark.parametrize(
    ("header", "about"),
    [
        ("name", "names of people"), ("first_name", "names of people"),
        ("LastName", "names of people"), ("patient name", "names of people"),
        ("Nachname", "names of people"), ("Prénom", "names of people"),
        ("id", "identifiers"), ("subject_id", "identifiers"), ("patientId", "identifiers"),
        ("Medical Record Number", "identifiers"), ("SSN", "identifiers"),
        ("e-mail", "addresses or telephone numbers"),
        ("Home Phone", "addresses or telephone numbers"), ("notes", "free text"),
        ("age", None), ("city_name", None), ("drug name", None), ("region_id", None),
        ("number", None), ("number of children", None), ("household size", None), ("sex", None),
        ("medical history", None), ("status", None),
    ],
)  # fmt: skip
def test_headers(header, about):
    assert by_header(header, is_text=True) == about


def test_a_column_of_numbers_is_no_free_text():
    assert by_header("notes", is_text=False) is None


@pytest.mark.parametrize(
    ("texts", "about"),
    [
        (["a@example.org", "b.c@example.org", "none"], "e-mail addresses"),
        (["+44 20 1234 5678", "(030) 123-4567", "020/765432"], "telephone numbers or identifiers"),
        ([f"was seen in room {n} and left" for n in range(30)], "free text"),
        (["flu", "cold", "kuru"], None),
        (["some college but no degree at all", "none"], None),
        (["01067", "80331", "10115"], None),
    ],
)
def test_texts(texts, about):
    assert by_texts(texts) == about
