"""Counting while reading: any number of threads gives the counts of all rows together."""

import numpy as np
import pytest

from common.errors import InputError, LocalError
from common.marginals import count, count_streams, counting
from common.marginals.counting import Tally
from common.schema.codes import Codes

SIZES = (3, 4, 300)
SETS = [(), (0,), (1, 0), (2, 1), (0, 1, 2)]


def rows(count_of_rows, seed=1):
    generator = np.random.default_rng(seed)
    return Codes.from_columns([generator.integers(0, s, count_of_rows) for s in SIZES], SIZES)


def streams_of(codes, chunk, per_stream):
    chunks = [codes.take(slice(at, at + chunk)) for at in range(0, codes.rows, chunk)]
    groups = [chunks[at : at + per_stream] for at in range(0, len(chunks), per_stream)]
    return [lambda group=group: iter(group) for group in groups]


def folded(table, attributes, groups):
    """A table of values as a table of groups: the sum of the cells of each."""
    for axis, attribute in enumerate(attributes):
        if attribute in groups:
            own = np.array(groups[attribute])
            parts = [table.take(np.flatnonzero(own == g), axis) for g in range(own.max() + 1)]
            table = np.stack([part.sum(axis=axis) for part in parts], axis=axis)
    return table


@pytest.mark.parametrize("groups", [{}, {1: [1, 0, 1, 1], 2: [*range(150), *range(150)]}])
@pytest.mark.parametrize("private", [True, False], ids=["totals apart", "totals shared"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_streams_add_up_to_the_table(threads, private, groups, monkeypatch):
    monkeypatch.setattr(counting, "_PRIVATE_CELLS", 1 << 20 if private else 0)
    codes = rows(5000)
    tables = count_streams(
        iter(streams_of(codes, 170, 3)), SIZES, SETS, groups=groups, threads=threads
    )
    for each, table, wanted in zip(SETS, tables, count(codes, SETS), strict=True):
        assert np.array_equal(table, folded(wanted, each, groups))


def test_no_stream_at_all_counts_nothing():
    assert [int(table.sum()) for table in count_streams([], SIZES, SETS)] == [0] * len(SETS)


def test_an_error_in_a_stream_is_raised():
    def broken():
        yield rows(10)
        raise InputError("row 11")

    with pytest.raises(InputError, match="row 11"):
        count_streams([*streams_of(rows(100), 10, 1), broken], SIZES, SETS, threads=2)


def test_tallies_of_different_requests_do_not_mix():
    with pytest.raises(LocalError, match="same request"):
        Tally(SIZES, [(0,)]).merge(Tally(SIZES, [(1,)]))
