"""Relations are those that the rows have, and none that chance made."""

import numpy as np
import pytest

import parley
from common.analysis.diagnostics import relations
from common.bayes.contingency import significant
from common.schema import Codes
from common.schema.linked import LinkedCodes

SIZES = (2, 3, 5, 12, 20, 60)
NAMES = tuple("abcdef")
SCHEMA = parley.Schema.from_toml(
    "".join(
        f'[[attribute]]\nname = "{name}"\nkind = "integer"\nmin = 1\nmax = {size}\nbins = {size}\n'
        for name, size in zip(NAMES, SIZES, strict=True)
    )
)


def independent(rows, seed):
    """Attributes of few and many values, some of them rare."""
    rng = np.random.default_rng(seed)
    return [rng.choice(size, rows, p=rng.dirichlet(np.full(size, 0.4))) for size in SIZES]


def related(rows, seed):
    """Half of the rows of the second attribute follow the first, and of the fourth the third."""
    columns = independent(rows, seed)
    half = np.random.default_rng(seed).random((2, rows)) < 0.5
    columns[1] = np.where(half[0], columns[0], columns[1])
    columns[3] = np.where(half[1], columns[2], columns[3])
    return columns


def codes(columns):
    return Codes.from_columns(columns, SIZES)


@pytest.mark.parametrize("rows", [100, 1_200, 20_000])
def test_independent_attributes_never_stand_out(rows):
    for seed in range(10):
        found = relations(NAMES, codes(independent(rows, seed)))
        assert found.related == 0
        assert found.alone == NAMES
        assert np.array_equal(found.strength, np.eye(len(SIZES)))


def test_related_attributes_do():
    found = relations(NAMES, codes(related(1_200, 1)))
    assert found.related == 2
    assert found.strength[0, 1] > 0.2
    assert found.strength[2, 3] > 0.2
    assert found.alone == ("e", "f")
    assert found.caution().startswith("No relations: 2 of 6 columns (e, f)")


def test_all_attributes_alone_are_a_caution():
    words = relations(NAMES, codes(independent(1_200, 1))).caution()
    assert words.startswith("No relations: 6 of 6 columns (a, b, c, d, e, f)")


def test_a_caution_about_people_does_not_speak_of_their_events():
    people = codes(independent(1_200, 1))
    numbers = np.zeros(1_200, dtype=np.int64)
    events = Codes.from_columns([numbers[:0]], [2])
    linked = LinkedCodes(people.columns, people.sizes, events, numbers, 4)
    words = relations(NAMES, linked).caution()
    assert "6 of 6 columns of people (a, b" in words
    assert "to any other column of people in these rows" in words


def test_two_attributes_may_well_be_independent():
    two = Codes.from_columns(independent(1_200, 1)[:2], SIZES[:2])
    assert relations(NAMES[:2], two).caution() is None


def test_one_attribute_or_one_value_has_no_relations():
    assert relations(["a"], Codes.from_columns([np.array([0, 1])], (2,))).alone == ("a",)
    assert not significant(np.array([[5, 7], [0, 0]]), among=1)
