"""Random bits are fresh where they must be, repeat where they may, and have the law they claim."""

import copy
import hashlib
import itertools
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from common.errors import LocalError
from common.privacy import randomness
from common.privacy.randomness import (
    OsRandomSource,
    SeededRandomSource,
    below,
    permutation,
    uniforms,
)

ROOT = Path(__file__).resolve().parents[3]
CANNOT_FLAKE = 1e-9


class ScriptedSource:
    """Gives out the bytes it was given, and remembers how many are left."""

    private = False

    def __init__(self, script):
        self.script = bytes(script)

    def random_bytes(self, count):
        if count > len(self.script):
            raise EOFError
        taken, self.script = self.script[:count], self.script[count:]
        return taken

    def words(self, count):
        return np.frombuffer(self.random_bytes(8 * count), dtype="<u8")


def uniform_p_value(values, categories):
    """The chi-square p-value of `values` being uniform over `categories` outcomes."""
    seen = Counter(values)
    observed = [seen[value] for value in sorted(seen)] + [0] * (categories - len(seen))
    return stats.chisquare(observed).pvalue


FORK = """
import os
from common.privacy.randomness import OsRandomSource
if {forgetful}:
    os.getpid = lambda: 1
source = OsRandomSource()
source.random_bytes(10)
drawn = []
for child in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, source.random_bytes(32))
        os._exit(0)
    drawn.append(os.read(read, 32))
    os.wait()
drawn.append(source.random_bytes(32))
print(len(set(drawn)))
"""


@pytest.mark.parametrize(("forgetful", "different"), [(False, 3), (True, 1)])
def test_a_forked_child_does_not_repeat_its_parent(forgetful, different):
    """With the process id hidden all three streams are the same: the test can fail."""
    done = subprocess.run(
        [sys.executable, "-c", FORK.format(forgetful=forgetful)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert int(done.stdout) == different


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_private_source_cannot_be_copied(duplicate):
    with pytest.raises(LocalError, match="not copied"):
        duplicate(OsRandomSource())


def test_only_the_source_of_the_operating_system_is_private():
    assert OsRandomSource().private
    assert not SeededRandomSource(1).private


def test_two_private_sources_have_nothing_in_common():
    assert OsRandomSource().random_bytes(32) != OsRandomSource().random_bytes(32)


def test_the_key_is_replaced_before_its_stream_is_used_up(monkeypatch):
    keys = []
    monkeypatch.setattr(randomness, "_REKEY_AFTER_BYTES", 100)
    monkeypatch.setattr(
        randomness.os, "urandom", lambda n: keys.append(bytes([len(keys)] * n)) or keys[-1]
    )
    source = OsRandomSource()
    first = source.random_bytes(60)
    source.random_bytes(40)
    assert len(keys) == 1
    assert source.random_bytes(60) != first
    assert len(keys) == 2


def test_private_bytes_are_uniform_and_the_test_would_notice():
    drawn = np.frombuffer(OsRandomSource().random_bytes(1 << 18), dtype=np.uint8)
    assert uniform_p_value(drawn.tolist(), 256) > CANNOT_FLAKE
    assert uniform_p_value((drawn & 0xFE).tolist(), 256) < 1e-20


@pytest.mark.parametrize("seed", [0, -5, "a study"])
def test_a_seeded_source_is_aes_in_counter_mode_under_the_hashed_seed(seed):
    key = hashlib.sha256(b"parley seeded source\0" + str(seed).encode()).digest()
    counters = b"".join(block.to_bytes(16, "big") for block in range(8))
    encryptor = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305  # the oracle
    assert SeededRandomSource(seed).random_bytes(128) == encryptor.update(counters)


@settings(deadline=None)
@given(st.lists(st.integers(0, 70_000), max_size=4))
def test_a_seeded_stream_repeats_however_it_is_cut(lengths):
    pieces = SeededRandomSource(7)
    whole = SeededRandomSource(7).random_bytes(sum(lengths))
    assert b"".join(pieces.random_bytes(length) for length in lengths) == whole


def test_different_seeds_give_different_streams():
    assert len({SeededRandomSource(seed).random_bytes(16) for seed in range(100)}) == 100


@pytest.mark.parametrize("make", [OsRandomSource, lambda: SeededRandomSource(1)])
def test_words_are_as_many_as_asked_for(make):
    words = make().words(5)
    assert (words.shape, words.dtype) == ((5,), np.uint64)
    assert make().words(0).shape == (0,)


def test_words_are_the_bytes_in_little_endian():
    source = ScriptedSource(range(16))
    (word, _) = SeededRandomSource(3).words(2)
    assert int(word) == int.from_bytes(SeededRandomSource(3).random_bytes(8), "little")
    assert int(source.words(1)[0]) == 0x0706050403020100


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 256))
def test_below_gives_every_value_for_equally_many_bytes(bound):
    """The whole probability space of one try, so the law is exact and not only close."""
    outcomes = Counter()
    for byte in range(256):
        try:
            outcomes[below(bound, ScriptedSource([byte]))] += 1
        except EOFError:
            outcomes["another try"] += 1
    accepted = outcomes[0]
    assert all(outcomes[value] == accepted for value in range(bound))
    assert outcomes["another try"] == 256 - bound * accepted
    assert 2 * outcomes["another try"] < 256


def test_below_uses_as_many_bytes_as_its_bound_needs():
    outcomes = Counter()
    for pair in itertools.product(range(256), repeat=2):
        try:
            outcomes[below(300, ScriptedSource(pair))] += 1
        except EOFError:
            outcomes["another try"] += 1
    assert [outcomes[value] for value in range(300)] == [128] * 300


def test_below_tries_again_after_a_value_that_is_too_large():
    assert below(5, ScriptedSource([7, 6, 5, 4])) == 4


def test_below_one_needs_no_bits():
    assert below(1, ScriptedSource([])) == 0


def test_below_takes_bounds_of_any_size():
    bound = 3 << 200
    drawn = [below(bound, SeededRandomSource(seed)) for seed in range(3000)]
    assert uniform_p_value([value >> 200 for value in drawn], 3) > CANNOT_FLAKE
    assert uniform_p_value([value % 7 for value in drawn], 7) > CANNOT_FLAKE
    assert max(drawn) < bound


@pytest.mark.parametrize("bound", [0, -3])
def test_below_nothing_is_refused(bound):
    with pytest.raises(LocalError, match="no integer"):
        below(bound, SeededRandomSource(1))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_every_permutation_comes_from_exactly_one_row_of_choices(count, monkeypatch):
    """With `below` exact, this makes the permutation exactly uniform."""
    bounds = list(range(count, 1, -1))
    outcomes = Counter()
    for choices in itertools.product(*(range(bound) for bound in bounds)):
        script = iter(zip(bounds, choices, strict=True))

        def scripted(bound, source, script=script):
            expected, choice = next(script)
            assert bound == expected
            return choice

        monkeypatch.setattr(randomness, "below", scripted)
        outcomes[tuple(permutation(count, SeededRandomSource(0)))] += 1
    assert outcomes == Counter(itertools.permutations(range(count)))


def careless_permutation(count, source):
    """The well-known mistake: every place is swapped with any other."""
    order = list(range(count))
    for place in range(count):
        chosen = below(count, source)
        order[place], order[chosen] = order[chosen], order[place]
    return order


def test_permutations_are_uniform_and_a_careless_shuffle_is_noticed():
    source = SeededRandomSource("permutations")
    right = [tuple(permutation(4, source)) for _ in range(20_000)]
    wrong = [tuple(careless_permutation(4, source)) for _ in range(20_000)]
    assert uniform_p_value(right, 24) > 1e-3
    assert uniform_p_value(wrong, 24) < 1e-20


def test_uniforms_lie_on_a_grid_from_zero_to_just_below_one():
    values = uniforms(2, ScriptedSource(bytes(8) + b"\xff" * 8))
    assert values.tolist() == [0.0, 1 - 2.0**-53]
    drawn = uniforms(1000, SeededRandomSource(4)) * 2.0**53
    assert (drawn == np.floor(drawn)).all()


def test_uniforms_are_uniform_and_another_scale_is_noticed():
    drawn = uniforms(20_000, SeededRandomSource("uniforms"))
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    for factor in (0.7, 1.3):
        assert stats.kstest(drawn * factor, "uniform").pvalue < 1e-20
