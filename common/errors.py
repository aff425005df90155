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
