"""Packages that only some commands need, and the extra of parley that brings each.

A node that reads files needs none of them. `pip install 'parley[all]'` brings all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import InputError

EXTRA_OF = {
    "adbc_driver_duckdb": "sql",
    "adbc_driver_manager": "sql",
    "adbc_driver_postgresql": "sql",
    "adbc_driver_sqlite": "sql",
    "duckdb": "sql",
    "grpc_reflection": "reflection",
    "jwt": "oidc",
    "numba": "fast",
    "openpyxl": "formats",
    "pandas": "analysis",
    "pyreadstat": "formats",
    "pyspark": "spark",
    "scipy": "analysis",
    "sklearn": "evaluate",
}


@contextmanager
def naming_extras(purpose: str) -> Iterator[None]:
    """Refuse what needs a package that is not installed, and say how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:
            raise
        raise InputError(
            f"{purpose}: the package {package!r} is not installed. Run: pip install "
            f"'parley[{EXTRA_OF[package]}]'"
        ) from None
