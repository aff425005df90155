"""Kernels are translated once, and also where nothing can be written."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from common.schema import compilation
from common.schema.compilation import compiled


def add_up(numbers, total):
    for number in numbers:
        total[0] += number


def test_a_read_only_installation_compiles_without_a_cache(monkeypatch):
    real = numba.njit
    tried = []

    def njit(*functions, **options):
        if functions:  # numba's own, as it loads
            return real(*functions, **options)
        tried.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(numba, "njit", njit)
    monkeypatch.setattr(compilation, "_loaded", {})
    kernel = compiled(add_up)
    assert tried == [True, False]
    total = np.zeros(1, dtype=np.int64)
    kernel(np.arange(5), total)
    assert total.tolist() == [10]


def test_threads_that_ask_at_once_get_the_same_translation(monkeypatch):
    made = []
    monkeypatch.setattr(numba, "njit", lambda **options: lambda kernel: made.append(1) or object())
    monkeypatch.setattr(compilation, "_loaded", {})
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: compiled(add_up), range(50)))
    assert made == [1]
    assert len(set(map(id, found))) == 1


def test_without_a_compiler_a_kernel_runs_as_it_is_written(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(compilation, "_loaded", {})
    compilation.can_compile.cache_clear()
    try:
        total = np.full(1, 2**63, dtype=np.uint64)
        compiled(add_up)(total.copy(), total)
        compiled(add_up)(np.ones(3, dtype=np.uint64), total)
        assert total.tolist() == [3]  # as in machine words
        assert caplog.text.count("parley[fast]") == 1
    finally:
        compilation.can_compile.cache_clear()
