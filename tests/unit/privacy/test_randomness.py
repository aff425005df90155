"""x"""

import copy
import os
import pickle
from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.stats import chisquare

from common.errors import LocalError
from common.privacy import randomness
from common.privacy.randomness import (
    KeyedRandomSource,
    OsRandomSource,
    SeededRandomSource,
    below,
    permutation,
    uniforms,
)
from tests.harness.forked import exit_code, fork

NEVER = 1e-9
ROOT = Path(randomness.__file__).parents[2]


@pytest.mark.parametrize("make", [OsRandomSource, lambda: SeededRandomSource(3)])
def test_bytes_are_uniform_and_as_many_as_asked_for(make):
    source = make()
    assert [len(source.random_bytes(count)) for count in (0, 1, 17, 70_000)] == [0, 1, 17, 70_000]
    seen = np.bincount(np.frombuffer(source.random_bytes(256_000), dtype=np.uint8), minlength=256)
    assert chisquare(seen).pvalue > NEVER
    assert source.words(5).dtype == np.uint64


def test_only_the_operating_systems_source_is_private():
    assert OsRandomSource().private
    assert not SeededRandomSource(1).private


# What is made of a release, or shown to its owner alone, costs nothing and may be repeated.
AFTERWARDS = {
    "analysis/answers.py", "analysis/attacks.py", "analysis/direct.py", "analysis/evaluation.py",
    "analysis/linked_answers.py", "analysis/replicates.py", "analysis/statistics.py",
    "analysis/views.py",
    "fitted/linked.py",  # people of the model, by whom rules keep the frequencies of events
    "fitted/model.py",  # rows that stand for sums, of a release without synthetic rows
}  # fmt: skip


def test_no_service_and_no_algorithm_can_make_a_seeded_source():
    for package in ("common", "curator", "party"):
        for path in (ROOT / package).rglob("*.py"):
            afterwards = f"{path.parent.name}/{path.name}" in AFTERWARDS
            if path.name != "randomness.py" and not afterwards:
                text = path.read_text(encoding="utf-8")
                assert "SeededRandomSource(" not in text, path
                assert package == "common" or "source_of(seed" not in text, path


def test_seeds_repeat_themselves_and_differ_from_each_other():
    assert SeededRandomSource(1).random_bytes(32) == SeededRandomSource(1).random_bytes(32)
    assert SeededRandomSource(1).random_bytes(32) != SeededRandomSource(2).random_bytes(32)


def test_a_stream_does_not_depend_on_how_it_is_read():
    whole, parts = SeededRandomSource(8), SeededRandomSource(8)
    assert whole.random_bytes(100) == parts.random_bytes(33) + parts.random_bytes(67)


def test_operating_system_sources_never_repeat():
    source = OsRandomSource()
    seen = {source.random_bytes(16), source.random_bytes(16), OsRandomSource().random_bytes(16)}
    assert len(seen) == 3


def test_the_key_is_replaced_when_it_is_used_up(monkeypatch):
    monkeypatch.setattr(randomness, "_REKEY_AFTER_BYTES", 100)
    source = OsRandomSource()
    first = source._stream
    source.random_bytes(100)
    assert source._stream is first
    source.random_bytes(1)
    assert source._stream is not first


def test_a_forked_child_does_not_repeat_its_parent(monkeypatch):
    source = OsRandomSource()
    before = source._stream
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    source.random_bytes(16)
    assert source._stream is not before


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_operating_systems_source_cannot_be_copied(copier):
    with pytest.raises(LocalError, match="not copied"):
        copier(OsRandomSource())


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 256, 257])
def test_integers_below_a_bound_are_uniform(bound):
    source = SeededRandomSource("below")
    draws = 3_000
    seen = np.bincount([below(bound, source) for _ in range(draws)], minlength=bound)
    assert len(seen) == bound
    assert bound == 1 or chisquare(seen).pvalue > NEVER


def test_a_bound_of_any_size_works_and_an_empty_range_is_refused():
    source = SeededRandomSource("large")
    bound = 10**500
    draws = [below(bound, source) for _ in range(50)]
    assert 0 < min(draws) < bound // 4 < 3 * bound // 4 < max(draws) < bound
    with pytest.raises(LocalError):
        below(0, source)


def test_every_permutation_is_equally_likely():
    source = SeededRandomSource("permutation")
    seen = Counter(tuple(permutation(4, source)) for _ in range(4_800))
    assert set(seen) == set(permutations(range(4)))
    assert chisquare(list(seen.values())).pvalue > NEVER
    assert permutation(0, source) == []


def test_uniforms_fill_the_unit_interval_and_never_reach_one():
    draws = uniforms(100_000, SeededRandomSource("uniforms"))
    assert draws.min() >= 0
    assert draws.max() < 1
    assert chisquare(np.bincount((draws * 50).astype(int))).pvalue > NEVER


KEY = bytes(range(32))


def test_the_same_key_and_reads_give_the_same_bytes():
    first, again = KeyedRandomSource(KEY), KeyedRandomSource(KEY)
    reads = [1, 7, 100, 1 << 17, 3]
    assert [first.random_bytes(n) for n in reads] == [again.random_bytes(n) for n in reads]
    assert np.array_equal(first.words(50), again.words(50))


def test_how_a_stream_is_read_does_not_change_it():
    whole = KeyedRandomSource(KEY).random_bytes(1000)
    parts = KeyedRandomSource(KEY)
    assert whole == b"".join(parts.random_bytes(n) for n in (1, 99, 900))


def test_another_key_gives_other_bytes():
    other = bytes([1]) + KEY[1:]
    assert KeyedRandomSource(KEY).random_bytes(32) != KeyedRandomSource(other).random_bytes(32)


def test_a_stream_never_repeats_when_its_inner_key_is_replaced(monkeypatch):
    monkeypatch.setattr(randomness, "_REKEY_AFTER_BYTES", 64)
    source = KeyedRandomSource(KEY)
    blocks = [source.random_bytes(16) for _ in range(400)]
    assert len(set(blocks)) == 400
    again = KeyedRandomSource(KEY)
    assert blocks == [again.random_bytes(16) for _ in range(400)]


def test_the_bytes_are_uniform():
    seen = np.bincount(
        np.frombuffer(KeyedRandomSource(KEY).random_bytes(1 << 18), dtype=np.uint8), minlength=256
    )
    assert stats.chisquare(seen).pvalue > 1e-9


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused(length):
    with pytest.raises(LocalError, match="32 bytes"):
        KeyedRandomSource(bytes(length))


def test_privacy_is_what_the_caller_says_of_the_key():
    assert KeyedRandomSource(KEY).private
    assert not KeyedRandomSource(KEY, private=False).private


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_is_not_copied(copying):
    with pytest.raises(LocalError, match="not copied"):
        copying(KeyedRandomSource(KEY))


def test_a_forked_child_cannot_repeat_its_parents_stream():
    source = KeyedRandomSource(KEY)
    child = fork()
    if child == 0:
        try:
            source.random_bytes(1)
        except LocalError:
            os._exit(0)
        os._exit(1)
    assert exit_code(child) == 0
