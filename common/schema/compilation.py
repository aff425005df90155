"""Translating inner loops to machine code, when the first large request arrives.

A kernel is a plain Python function that numba translates; `compiled` hands out the translation.
Importing a module of kernels does not import numba, which alone takes longer than most small
requests. Every kernel releases the interpreter lock and writes only to the arrays it is given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_loading = threading.Lock()
_loaded: dict[Callable[..., Any], Callable[..., Any]] = {}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the machine code of a kernel, kept on disk where that is possible."""
    translation = _loaded.get(function)
    if translation is not None:
        return translation
    with _loading:
        if function not in _loaded:
            from numba import njit

            try:
                _loaded[function] = njit(nogil=True, cache=True)(function)
            except RuntimeError:  # no writable folder for the cache: translate in every process
                _loaded[function] = njit(nogil=True)(function)
        return _loaded[function]
