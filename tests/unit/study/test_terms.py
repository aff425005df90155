"""The terms of a study are written once, and a study has them all."""

from dataclasses import fields
from typing import get_type_hints

from common.study.document import Study
from common.study.terms import DOCUMENT_TERMS, PARSERS, TERMS, Terms

# The order in which releases of version 0.2 have them: a release is compared with it to the byte.
WRITTEN = (
    "name method epsilon delta profile noise aggregation colluders may_miss cohorts key_bits "
    "encoding output_rows rows_per_person owners_per_person criteria_epsilon others purpose "
    "recipient contact ethics expires prior curator agreement method_version seeded commitments "
    "rehearsal"
)


def test_a_study_has_a_field_for_every_term_and_hardly_any_other():
    names = {each.name for each in fields(Study)}
    assert names - set(DOCUMENT_TERMS) == {"schema", "members", "signature"}
    assert set(DOCUMENT_TERMS) <= names


def test_the_keys_of_the_document_keep_their_order():
    assert list(PARSERS) == WRITTEN.split()


def test_a_term_says_what_it_means_and_how_it_is_read():
    assert set(TERMS) == set(get_type_hints(Terms))
    for name, term in DOCUMENT_TERMS.items():
        assert term.meaning.rstrip("]").endswith((".", "profile", "ones", "forecast")), name
        assert term.kind is not None
    assert TERMS["epsilon"].read("1/3") == TERMS["epsilon"].read("2/6")
    assert TERMS["settings"].key == "set"
