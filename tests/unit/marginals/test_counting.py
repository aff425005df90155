"""Counting agrees with a dictionary of rows, however the rows arrive."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError, LocalError
from common.marginals import counting
from common.marginals.counting import Tally, count, count_streams
from common.schema.codes import Codes


def dictionary_count(codes, attributes, weights=None):
    """The oracle: one dictionary entry per combination of values seen."""
    seen = Counter()
    for row in range(codes.rows):
        key = tuple(int(codes.columns[a][row]) for a in attributes)
        seen[key] += 1 if weights is None else int(weights[row])
    table = np.zeros([codes.sizes[a] for a in attributes], dtype=np.int64)
    for key, total in seen.items():
        table[key] = total
    return table


def random_codes(rows, sizes, seed=0):
    generator = np.random.default_rng(seed)
    return Codes.from_columns([generator.integers(0, s, rows) for s in sizes], sizes)


@st.composite
def requests(draw):
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7, 256, 257, 300]), min_size=1, max_size=5))
    codes = random_codes(draw(st.integers(0, 60)), sizes, draw(st.integers(0, 2**32)))
    attributes = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=3)
    sets = draw(st.lists(attributes, max_size=6))
    return codes, [s for s in sets if np.prod([sizes[a] for a in s]) <= 100_000]


@pytest.fixture(params=["bincount", "compiled by rows", "compiled by sets"])
def way(request, monkeypatch):
    """Each of the ways a request can take, whatever its size."""
    if request.param != "bincount":
        monkeypatch.setattr(counting, "_COMPILED_FROM", 0)
        monkeypatch.setattr(counting, "_BLOCK_ROWS", 7)
    if request.param == "compiled by sets":
        monkeypatch.setattr(counting, "_PRIVATE_CELLS", 0)
    return request.param


def assert_same_tables(got, expected):
    assert len(got) == len(expected)
    for table, oracle in zip(got, expected, strict=True):
        assert table.dtype == np.int64
        assert table.shape == oracle.shape
        np.testing.assert_array_equal(table, oracle)


def test_every_way_agrees_with_a_dictionary(way):
    @settings(max_examples=60, deadline=None)
    @given(requests(), st.integers(1, 3))
    def check(request, threads):
        codes, sets = request
        expected = [dictionary_count(codes, s) for s in sets]
        assert_same_tables(count(codes, sets, threads=threads), expected)

    check()


def test_every_way_agrees_with_a_dictionary_of_weights(way):
    @settings(max_examples=60, deadline=None)
    @given(requests(), st.integers(1, 3), st.integers(0, 2**32))
    def check(request, threads, seed):
        codes, sets = request
        weights = np.random.default_rng(seed).integers(0, 1000, codes.rows)
        expected = [dictionary_count(codes, s, weights) for s in sets]
        assert_same_tables(count(codes, sets, weights=weights, threads=threads), expected)

    check()


@settings(max_examples=60, deadline=None)
@given(requests(), st.lists(st.integers(0, 60), max_size=4))
def test_chunks_add_up_to_the_whole(request, cuts):
    codes, sets = request
    bounds = [0, *sorted(min(c, codes.rows) for c in cuts), codes.rows]
    chunks = (codes.take(slice(a, b)) for a, b in itertools.pairwise(bounds))
    tally = Tally(codes.sizes, sets)
    for chunk in chunks:
        tally.add(chunk)
    assert_same_tables(tally.tables(), count(codes, sets))


def test_many_tables_of_bits_among_other_attributes_agree_with_a_dictionary(way):
    codes = random_codes(70, [2, 5, 2, 2, 300, 2])
    sets = [*itertools.permutations((5, 0, 3, 2), 3), (2,), (), (0, 5)]
    assert_same_tables(count(codes, sets), [dictionary_count(codes, s) for s in sets])
    tables = count(codes, sets)
    tables[0][...] = 0
    assert tables[1].any()


def test_the_order_of_the_axes_is_the_order_asked_for(way):
    codes = random_codes(50, [2, 3, 5])
    forward, backward = count(codes, [(0, 1, 2), (2, 0, 1)])
    np.testing.assert_array_equal(backward, forward.transpose(2, 0, 1))


def test_the_empty_set_gives_the_row_total(way):
    codes = random_codes(50, [2, 3])
    (total,) = count(codes, [()])
    assert total.shape == ()
    assert total.dtype == np.int64
    assert total == 50
    assert count(codes, [()], weights=np.full(50, 3))[0] == 150


def test_no_rows_give_tables_of_zeros(way):
    codes = random_codes(0, [2, 300])
    pair, total = count(codes, [(1, 0), ()])
    assert pair.shape == (300, 2)
    assert not pair.any()
    assert total == 0


def test_one_row_gives_one_one(way):
    codes = Codes.from_columns([np.array([1]), np.array([299])], [2, 300])
    (table,) = count(codes, [(0, 1)])
    assert table[1, 299] == 1
    assert table.sum() == 1


def test_no_sets_give_no_tables(way):
    assert count(random_codes(5, [2]), []) == []


def test_a_large_table_is_exact_over_several_threads():
    codes = random_codes(700_000, [300, 41, 2, 5, 17], seed=3)
    sets = [(0, 1), (1, 4, 0), (3,), (2, 3, 4), (4, 2), ()]
    for table, attributes in zip(count(codes, sets, threads=2), sets, strict=True):
        flat = np.zeros(codes.rows, dtype=np.int64)
        for a in attributes:
            flat = flat * codes.sizes[a] + codes.columns[a]
        shape = [codes.sizes[a] for a in attributes]
        expected = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
        np.testing.assert_array_equal(table, expected)


def test_weights_beyond_the_precision_of_doubles_stay_exact(way):
    codes = Codes.from_columns([np.array([0, 0, 1])], [2])
    weights = np.array([2**62, 1, 2**60 + 1])
    np.testing.assert_array_equal(count(codes, [(0,)], weights=weights)[0], [2**62 + 1, 2**60 + 1])


def test_weights_whose_total_would_overflow_are_refused():
    codes = Codes.from_columns([np.array([0, 1])], [2])
    with pytest.raises(LocalError, match=r"2\^63"):
        count(codes, [(0,)], weights=np.array([2**62, 2**62]))
    assert count(codes, [()], weights=np.array([2**62, 2**62 - 1]))[0] == 2**63 - 1


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.array([1, -1]), "negative"),
        (np.array([1]), "expected 2 integer weights"),
        (np.array([0.5, 0.5]), "expected 2 integer weights"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, reason):
    codes = Codes.from_columns([np.array([0, 1])], [2])
    with pytest.raises(LocalError, match=reason):
        count(codes, [(0,)], weights=weights)


@pytest.mark.parametrize("attributes", [(0, 0), (2,), (-1,)])
def test_sets_of_unknown_or_repeated_attributes_are_refused(attributes):
    with pytest.raises(LocalError, match=r"distinct positions in 0\.\.1"):
        count(random_codes(3, [2, 2]), [attributes])


def test_a_table_too_large_is_refused_with_its_size():
    codes = random_codes(3, [60_000, 50_000])
    with pytest.raises(InputError, match=r"\(0, 1\) would have 3,000,000,000 cells"):
        count(codes, [(0,), (0, 1)])


def test_chunks_of_different_domains_are_refused():
    with pytest.raises(LocalError, match="same domains"):
        Tally((2,), [(0,)]).add(random_codes(3, [3]))


def test_no_threads_are_refused(monkeypatch):
    monkeypatch.setattr(counting, "_COMPILED_FROM", 0)
    with pytest.raises(LocalError, match="at least one thread"):
        count(random_codes(3, [2]), [(0,)], threads=0)


SIZES = (3, 4, 300)
SETS = [(), (0,), (1, 0), (2, 1), (0, 1, 2)]


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
    codes = random_codes(5000, SIZES)
    tables = count_streams(
        iter(streams_of(codes, 170, 3)), SIZES, SETS, groups=groups, threads=threads
    )
    for each, table, wanted in zip(SETS, tables, count(codes, SETS), strict=True):
        assert np.array_equal(table, folded(wanted, each, groups))


def test_no_stream_at_all_counts_nothing():
    assert [int(table.sum()) for table in count_streams([], SIZES, SETS)] == [0] * len(SETS)


def test_an_error_in_a_stream_is_raised():
    def broken():
        yield random_codes(10, SIZES)
        raise InputError("row 11")

    with pytest.raises(InputError, match="row 11"):
        count_streams(
            [*streams_of(random_codes(100, SIZES), 10, 1), broken], SIZES, SETS, threads=2
        )


def test_tallies_of_different_requests_do_not_mix():
    with pytest.raises(LocalError, match="same request"):
        Tally(SIZES, [(0,)]).merge(Tally(SIZES, [(1,)]))


@pytest.mark.parametrize("private", [True, False], ids=["totals apart", "totals shared"])
def test_without_a_compiler_chunks_and_weights_count_the_same(private, monkeypatch):
    monkeypatch.setattr(counting, "can_compile", lambda: False)
    monkeypatch.setattr(counting, "_COMPILED_FROM", 0)
    if not private:
        monkeypatch.setattr(counting, "_PRIVATE_CELLS", 0)
    codes = random_codes(301, (3, 4, 300))
    sets = [(0,), (1, 0), (2,), (2, 1), ()]
    weights = np.random.default_rng(2).integers(0, 9, 301)
    tally = Tally(codes.sizes, sets)
    for low in range(0, 301, 100):
        part = slice(low, low + 100)
        tally.add(codes.take(part), weights=weights[part], threads=2)
    assert_same_tables(tally.tables(), [dictionary_count(codes, each, weights) for each in sets])
    streamed = count_streams(streams_of(codes, 40, 2), codes.sizes, sets, threads=2)
    assert_same_tables(streamed, [dictionary_count(codes, each) for each in sets])
