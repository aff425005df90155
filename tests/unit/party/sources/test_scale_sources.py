"""Tables too large to hold: read in parts, counted by the database, or where the partitions are."""

import pytest

from common.errors import LocalError
from party.sources.fingerprint import RowDigest
from tests.harness.people import ROWS
from tests.unit.party.sources.scaled import SCHEMA, people


def test_a_digest_shared_by_threads_is_that_of_all_rows():
    codes = SCHEMA.encode(people())
    whole = RowDigest(SCHEMA.sizes)
    whole.add(codes)
    shared = RowDigest(SCHEMA.sizes)
    for start in (3000, 0, 1000, 2000, 4000):
        list(shared.following([codes.take(slice(start, start + 1000))]))
    assert (shared.rows, shared.hexdigest()) == (ROWS, whole.hexdigest())
    counting = RowDigest(SCHEMA.sizes, rows_only=True)
    list(counting.following([codes]))
    assert counting.rows == ROWS
    with pytest.raises(LocalError, match="no digest"):
        counting.hexdigest()
