"""The list of who is missing in a sum: what it can be, and the signatures under it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from common.crypto.framing import frame
from common.crypto.identities.identity import PublicIdentity
from common.crypto.sums.plan import SumPlan
from common.errors import RemoteProtocolError


def check_missing(
    parties: Sequence[str],
    missing: Sequence[str],
    *,
    may_miss: int,
    of: str,
    at_least: Collection[str] = (),
) -> None:
    """Raise RemoteProtocolError unless parties can do without those on a list.

    That is in the eyes of party `of`; those of `at_least` were missing before.
    """
    if tuple(missing) != in_order(parties, missing):
        raise RemoteProtocolError("a list of missing parties names each once, in the study's order")
    if of in missing:
        raise RemoteProtocolError(f"the curator lists {of!r} as missing, which is here")
    if len(missing) > may_miss:
        raise RemoteProtocolError(
            f"the curator lists {names_of(missing)} as missing; the others can do without "
            f"{may_miss}: with fewer shares there would be too little noise"
        )
    if not set(at_least) <= set(missing):
        raise RemoteProtocolError("parties that were missing, or dealt no keys, stay missing")


def in_order(parties: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in parties if name in names)


def require_signature(
    identity: PublicIdentity, value: bytes, *, statement: bytes, name: str
) -> None:
    """Raise RemoteProtocolError unless the identity signed this list."""
    if not identity.signed(statement, signature=value):
        raise RemoteProtocolError(
            f"the signature of {name!r} is not under this list: the curator may have shown it "
            "another one"
        )


def list_statement(plan: SumPlan, absent: Sequence[str], missing: Sequence[str]) -> bytes:
    """Return what a party signs: who dealt no keys, and who is missing."""
    return frame(("parley list of missing parties 1", plan.digest, frame(absent), frame(missing)))


def names_of(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no party"
