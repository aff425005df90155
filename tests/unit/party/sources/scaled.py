"""A table that is read in parts."""

from functools import partial

import numpy as np

from party.sources import SourceSettings
from tests.harness.people import people as everybody
from tests.harness.people import schema_of

NAMES = ("sex", "age", "income", "smokes")
SCHEMA = schema_of(*NAMES)
people = partial(everybody, columns=NAMES)
SETS = [(0, 1), (3,), (1, 3, 0), (0, 3)]
HALVES = {1: [code % 2 for code in range(SCHEMA.sizes[1])], 2: [0] * SCHEMA.sizes[2]}


def assert_same(tables, wanted):
    for one, other in zip(tables, wanted, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def opened(folder, table, **changes):
    made = SourceSettings.from_table({**table, **changes}, folder=folder, environment={})
    return made.open(SCHEMA, held_bytes=0)
