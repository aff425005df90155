"""Rows dealt out to owners."""

import numpy as np
import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from parley.simulation.partition import at_random, by_column


def test_dealing_out_loses_and_repeats_no_row(people):
    parts = at_random(people, 4, SeededRandomSource(1))
    assert sorted(np.concatenate([part.index for part in parts.values()])) == list(people.index)
    assert {len(part) for part in parts.values()} == {150}


def test_dealing_out_by_column_makes_an_owner_of_every_value(people):
    parts = by_column(people, "region")
    assert {name: set(part["region"]) for name, part in parts.items()} == {
        region: {region} for region in set(people["region"])
    }


def test_more_owners_than_rows_is_refused(people):
    with pytest.raises(InputError, match="cannot be dealt out"):
        at_random(people.head(2), 3, SeededRandomSource(1))
