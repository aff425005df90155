"""An attribute: the order of its codes, what a cell of no value becomes, and contradictions."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.schema.attribute import Attribute, Listed, from_number, numbers_of, to_number
from common.schema.binning import Binning
from common.schema.hierarchy import Node, leaf

WORDS = Listed(("a", "b"))
AGES = Binning.equal_width(0, 80, 8, whole=True)


@given(st.booleans(), st.booleans(), st.sampled_from([("categorical", WORDS), ("integer", AGES)]))
def test_values_come_first_then_other_then_missing(other, missing, of):
    attribute = Attribute("x", *of, other=other, missing=missing)
    values = attribute.value_count
    assert attribute.size == values + other + missing == len(attribute.labels)
    assert attribute.labels[values:] == ("(other)",) * other + ("(missing)",) * missing
    assert attribute.other_code == (values if other else None)
    assert attribute.missing_code == (values + other if missing else None)
    below = attribute.hierarchy.root.children
    assert {node.code for node in below} >= set(range(values, attribute.size))


@pytest.mark.parametrize(
    ("kind", "domain", "changes", "empty"),
    [
        ("categorical", WORDS, {}, None),
        ("categorical", WORDS, {"other": True}, None),  # "(other)" can be written
        ("categorical", WORDS, {"other": True, "missing": True}, 3),
        ("integer", AGES, {"other": True}, 8),  # it cannot: an empty cell is what is left
        ("integer", AGES, {"other": True, "missing": True}, 9),
    ],
)
def test_an_empty_cell_is_missing_or_what_cannot_be_written_otherwise(kind, domain, changes, empty):
    attribute = Attribute("x", kind, domain, **changes)
    assert attribute.empty_code == empty


def test_a_forgiving_attribute_has_the_same_codes_and_refuses_no_cell():
    for kind, domain in (("categorical", WORDS), ("integer", AGES)):
        strict = Attribute("x", kind, domain)
        forgiven = strict.forgiven()
        assert forgiven.labels == strict.labels
        assert (strict.other_code, forgiven.other_code) == (None, 0)
        assert (strict.empty_code, forgiven.empty_code) == (None, 0)
        assert (strict.clips, forgiven.clips) == (False, kind == "integer")
    assert not Attribute("x", "integer", AGES, other=True).forgiven().clips


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        (("integer", WORDS), LocalError, "cannot have this domain"),
        (("categorical", AGES), LocalError, "cannot have this domain"),
        (("categorical", Listed(("a",))), InputError, "leave the attribute out"),
        (("ordinal", Listed(tuple(range(65_537)))), InputError, "not 65,537: use fewer"),
        (("categorical", WORDS, {"clip": True}), InputError, "clip: only numbers and dates"),
        (("integer", AGES, {"clip": True, "other": True}), InputError, "choose one"),
        (("categorical", WORDS, {"frequencies": (1,)}), InputError, "expected 2, one of each"),
        (("categorical", WORDS, {"missing_codes": ("9",)}), LocalError, "none missing"),
        (
            ("categorical", WORDS, {"missing": True, "missing_codes": ("a",)}),
            InputError,
            "'a' is a value, too",
        ),
        (
            ("categorical", Listed(("a", "(other)")), {"other": True}),
            InputError,
            "names a special category",
        ),
        (
            ("categorical", WORDS, {"tree": Node("", (leaf("a", 0), leaf("a", 0)))}),
            LocalError,
            "every value once",
        ),
    ],
)
def test_contradictions_are_refused(fields, error, words):
    kind, domain, *changes = fields
    with pytest.raises(error, match=words):
        Attribute("x", kind, domain, **(changes[0] if changes else {}))


def test_listed_values_are_of_one_type_and_there_once():
    with pytest.raises(InputError, match="all strings or all integers"):
        Listed(("a", 1))
    with pytest.raises(InputError, match="'a' is listed twice"):
        Listed(("a", "b", "a"))
    assert Listed(("7.0", "7", "x", "nan")).by_number == {7: 1}  # the number's own text wins


KINDS = {
    "integer": st.integers(-(10**12), 10**12),
    "real": st.floats(-1e12, 1e12),
    "date": st.dates(),
    "datetime": st.datetimes().map(lambda at: at.replace(microsecond=0)),
}


@given(st.sampled_from(sorted(KINDS)).flatmap(lambda k: st.tuples(st.just(k), KINDS[k])))
def test_a_bound_of_every_kind_is_a_number_and_comes_back(written):
    kind, value = written
    assert from_number(kind, to_number(kind, value)) == value


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("integer", True, "True is not a whole number"),
        ("integer", 1.0, "is not a whole number"),
        ("real", "1", "'1' is not a number"),
        ("date", dt.datetime(2024, 1, 1), "is not a date"),
        ("datetime", dt.date(2024, 1, 1), "is not a datetime"),
        ("datetime", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "has a time zone"),
        ("datetime", dt.datetime(2024, 1, 1, microsecond=5), "fraction of a second"),
    ],
)
def test_a_bound_of_another_kind_is_refused(kind, value, words):
    with pytest.raises(InputError, match=words):
        to_number(kind, value)


def test_numbers_are_those_of_values_or_centres_and_words_have_none():
    assert numbers_of(Attribute("x", "ordinal", Listed((5, 1)))).tolist() == [5, 1]
    assert numbers_of(Attribute("x", "categorical", WORDS)) is None
    assert numbers_of(Attribute("x", "boolean", Listed((False, True)))) is None
    centres = numbers_of(Attribute("x", "real", Binning.equal_width(0, 8, 4, whole=False)))
    np.testing.assert_allclose(centres, [1, 3, 5, 7])


def test_labels_of_real_bins_tell_every_edge_from_the_next():
    close = Binning.equal_width(1.00001, 1.00002, 4, whole=False)
    labels = Attribute("x", "real", close).labels
    assert len(set(labels)) == 4
    assert labels[0].startswith("[1.00001, ")
    whole = Attribute("x", "integer", AGES).labels
    assert (whole[0], whole[-1]) == ("0..10", "71..80")
