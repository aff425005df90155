"""An identity at rest: one line of text in a file that only its owner can read.

    parley-identity-1 <base64 of the secret bytes>
    parley-identity-sealed-1 <base64 of the secret bytes under a passphrase>

The file is created with mode 0600 and never overwritten; a file that others can read is refused on
loading, because its secret must be taken as known. The public half beside it, `identity.pub`, is
base64 and nothing else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path

from common.crypto.identities.identity import Identity, PublicIdentity
from common.crypto.identities.passphrase import seal, unseal
from common.errors import InputError
from common.files import read_private, write_new
from common.privacy.randomness import OsRandomSource

_LABEL = "parley-identity-1"
_SEALED = "parley-identity-sealed-1"

AskPassphrase = Callable[[], str]
"""Called when a file turns out to be under a passphrase; raises InputError if there is none."""


def no_passphrase() -> str:
    """Refuse: no passphrase was given."""
    raise InputError("it is under a passphrase, and none was given")


def identity_bytes(identity: Identity, *, passphrase: str | None = None) -> bytes:
    """Return the content of an identity file; without a passphrase only its mode protects it."""
    label, secret = _LABEL, identity.to_secret_bytes()
    if passphrase is not None:
        label = _SEALED
        secret = seal(secret, passphrase, header=_SEALED.encode(), source=OsRandomSource())
    return f"{label} {base64.b64encode(secret).decode()}\n".encode()


def save_identity(path: Path, identity: Identity, *, passphrase: str | None = None) -> None:
    """Write the secret keys; raise InputError rather than overwrite anything."""
    write_new(path, identity_bytes(identity, passphrase=passphrase), mode=0o600)


def load_identity(path: Path, *, passphrase: AskPassphrase = no_passphrase) -> Identity:
    """Read what `save_identity` wrote; raise InputError if others could have read it."""
    content = read_private(path, remedy="make a new identity and have the study pin that one")
    try:
        label, encoded = content.decode("ascii", errors="replace").split()
        secret = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise InputError(f"{path} is not an identity file") from None
    if label == _SEALED:
        try:
            secret = unseal(secret, passphrase(), header=_SEALED.encode())
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    elif label != _LABEL:
        raise InputError(f"{path} is not an identity file of version 1")
    return Identity(secret)


def load_public_identity(path: Path) -> PublicIdentity:
    """Read an identity.pub; InputError if it holds no identity."""
    try:
        encoded = base64.b64decode(path.read_text("ascii").strip(), validate=True)
        return PublicIdentity(encoded)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, InputError):  # not ASCII, not base64, not an identity
        raise InputError(f"{path}: not an identity.pub. Ask the party for the file again") from None
