"""How the messages of exchanges travel: the rounds of protocol 1 have fields of their own.

Version 0.2 knew each round of each exchange as a kind of message. The bytes are still those, so
nodes of both versions finish a study together and a study that is under way survives an upgrade.
A round that is not in this table, that of a new exchange, travels as the contract's StepMessage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """How one round travels in one direction."""

    field: str  # of the envelope, ToParty or ToCurator
    parts: tuple[str, ...]  # the fields that hold the payload, in order
    peer: str = ""  # the field that names the other party


TO_PARTY: Mapping[str, Form] = {
    "envelope": Form("envelope_relayed", ("envelope",), peer="sender"),
    "share keys": Form("keys_relayed", ("missing", "payload")),
    "open box": Form("box_disputed", ("receiver", "signature")),
    "judge": Form("box_judged", ("dealer", "receiver", "evidence", "signature", "secret")),
    "consistency check": Form("list_published", ("missing",)),
    "unmask": Form("signatures_relayed", ("payload",)),
}
TO_CURATOR: Mapping[str, Form] = {
    "envelope": Form("envelope_posted", ("envelope",), peer="recipient"),
    "masked input": Form("share_submitted", ("chunk", "payload")),
    "choice": Form("choice_submitted", ("payload",)),
    "share keys": Form("keys_dealt", ("payload",)),
    "accuse": Form("box_refused", ("dealer", "signature")),
    "open box": Form("box_opened", ("receiver", "secret")),
    "consistency check": Form("list_signed", ("signature",)),
    "unmask": Form("masks_revealed", ("payload",)),
}
