"""A keyed source repeats under its key, and under no other, and in no other process."""

import copy
import os
import pickle

import numpy as np
import pytest
from scipy import stats

from common.errors import LocalError
from common.privacy import randomness
from common.privacy.randomness import KeyedRandomSource
from tests.harness.forked import exit_code, fork

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
