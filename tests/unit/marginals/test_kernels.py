"""The kernels load late, and also where nothing can be written."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from common.marginals import kernels
from common.schema.compilation import compiled

ROOT = Path(__file__).resolve().parents[3]


def test_importing_the_room_does_not_load_numba():
    code = "import sys, common.marginals; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_small_request_does_not_load_numba():
    code = """
import sys, numpy as np
from common.marginals import count
from common.schema.codes import Codes
table, = count(Codes.from_columns([np.array([0, 1, 1])], [2]), [(0,)])
assert table.tolist() == [1, 2]
sys.exit('numba' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_kernels_mean_in_python_what_they_mean_compiled():
    generator = np.random.default_rng(5)
    block = generator.integers(0, 3, (2, 40)).astype(np.uint16)
    weights = generator.integers(0, 9, 40)
    layout = (np.array([1, 0, 0]), np.array([3, 3, 3]), np.array([0, 2, 3]), np.array([0, 9, 12]))
    for each in (weights, weights[:0]):
        plain, fast = np.zeros(12, dtype=np.int64), np.zeros(12, dtype=np.int64)
        kernels.add_block(block, each, np.arange(2), *layout, plain)
        compiled(kernels.add_block)(block, each, np.arange(2), *layout, fast)
        np.testing.assert_array_equal(fast, plain)
        if not len(each):
            small, small_fast = np.zeros(12, dtype=np.int64), np.zeros(12, dtype=np.int64)
            kernels.add_small(block, np.arange(2), *layout, small)
            compiled(kernels.add_small)(block, np.arange(2), *layout, small_fast)
            np.testing.assert_array_equal(small, plain)
            np.testing.assert_array_equal(small_fast, plain)
        assert plain[:9].sum() == plain[9:].sum() == (each.sum() if len(each) else 40)
