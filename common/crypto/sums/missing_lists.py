"""The list of who is missing in a sum: what it can be, and the signatures under it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cryptography.exceptions import InvalidSignature

from common.crypto.framing import frame
from common.crypto.identities.identity import PublicIdentity
from common.crypto.sums.plan import SumPlan
from common.errors import RemoteProtocolError


def check_missing(
    plan: SumPlan, missing: Sequence[str], *, of: str, at_least: Collection[str] = ()
) -> None:
    """Raise RemoteProtocolError unless a list can be right in the eyes of party `of`.

    Parties of `at_least` were missing before.
    """
    if tuple(missing) != in_order(plan, missing):
        raise RemoteProtocolError("a list of missing parties names each once, in the plan's order")
    if of in missing:
        raise RemoteProtocolError(f"the curator lists {of!r} as missing, which is here")
    if len(missing) > plan.may_miss:
        raise RemoteProtocolError(
            f"the curator lists {names_of(missing)} as missing; this sum can do without "
            f"{plan.may_miss} of its parties: with fewer shares there would be too little noise"
        )
    if not set(at_least) <= set(missing):
        raise RemoteProtocolError("a party that dealt no keys is on the list of those in the sum")


def in_order(plan: SumPlan, names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in plan.parties if name in names)


def require_signature(
    identity: PublicIdentity, value: bytes, *, statement: bytes, name: str
) -> None:
    """Raise RemoteProtocolError unless the identity signed this list."""
    try:
        identity.verify(value, message=statement)
    except InvalidSignature:
        raise RemoteProtocolError(
            f"the signature of {name!r} is not under this list: the curator may have shown it "
            "another one"
        ) from None


def list_statement(plan: SumPlan, absent: Sequence[str], missing: Sequence[str]) -> bytes:
    """Return what a party signs: who dealt no keys, and who is missing."""
    return frame(("parley list of missing parties 1", plan.digest, frame(absent), frame(missing)))


def names_of(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no party"
