"""The families of errors. Every message says what happened, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ParleyError(Exception):
    """Base of every error this project raises on purpose. Raise one of the families below."""


class LocalError(ParleyError):
    """We, or the code that calls us, did something wrong: a misuse, never the peer's fault."""


class InputError(LocalError):
    """What the user handed in cannot be used: a file, a schema, a table, an option."""


class OtherVersionError(LocalError):
    """A release that another version of parley made: this version cannot derive it again."""


class UnknownSignerError(LocalError):
    """A release whose signatures are all by keys that its study does not name."""


class RemoteProtocolError(ParleyError):
    """A peer sent something that the protocol does not allow here. Our state did not change."""


class PolicyError(ParleyError):
    """Refused on purpose: a budget, a cap, or the owner's policy does not allow it."""


class NotCountersignedError(PolicyError):
    """An owner does not vouch for a release. The release itself stays where it is."""


class PrivacyWarning(UserWarning):
    """What is asked for, or was made, promises less than its user may expect."""


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put a place before the text of an InputError: the file, the table or the key."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


# Packages that only some commands need, and the extra of parley that brings each. A node that reads
# files needs none of them; `pip install 'parley[all]'` brings all.
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
