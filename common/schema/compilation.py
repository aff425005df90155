"""Translating inner loops to machine code, when the first large request arrives.

A kernel is a plain Python function that numba translates; `compiled` hands out the translation.
Importing a module of kernels does not import numba, which alone takes longer than most small
requests. Every kernel releases the interpreter lock and writes only to the arrays it is given.
Without numba (the extra `fast`) a kernel runs as it is written: the same integers, far more slowly.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

_loading = threading.Lock()
_loaded: dict[Callable[..., Any], Callable[..., Any]] = {}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the machine code of a kernel, kept on disk where that is possible."""
    translation = _loaded.get(function)
    if translation is not None:
        return translation
    with _loading:
        if function not in _loaded:
            # Kernels count in machine words, which may wrap around.
            plain = np.errstate(over="ignore")(function)
            _loaded[function] = _translated(function) if can_compile() else plain
        return _loaded[function]


@cache
def can_compile() -> bool:
    """Return whether there is a compiler; where there is none, say once what that costs."""
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        logger.warning(
            "large tables are counted and drawn slowly: numba is not installed. Run: pip install "
            "'parley[fast]'"
        )
        return False
    return True


def _translated(function: Callable[P, R]) -> Callable[P, R]:
    from numba import njit

    translation: Callable[P, R]
    try:
        translation = njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no writable folder for the cache: translate in every process
        translation = njit(nogil=True)(function)
    return translation
