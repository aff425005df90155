"""Replay an ended study from the journal: do our answers follow from our rows?

For an auditor who is trusted with this owner's rows, on the owner's machine. The role is built
again from the study, the rows, the kept keys of its steps and the messages that it received, and
gives its answers again. Each is compared with the SHA-256 of what left, which the sent log has for
ever and the curator has for every message that it received (`parley curator study received`). What
the role would charge is compared with the ledger.

In a study with commitments the role commits again, too: to the rows that are shown, under the kept
salt, and to each answer. What it commits to must be what the release has, which every owner signed.
A replay ends where it contradicts what was published then.

An envelope is sealed with fresh randomness, so its bytes cannot be made again: of such messages
only number, kind and size are compared. Answers of masked sums and choices are not sealed.
"""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import zip_longest

from common.errors import InputError, PolicyError, RemoteProtocolError
from common.privacy.randomness import KeyedRandomSource, RandomSource
from common.study.commitments import Commitments
from common.study.document import Study
from common.wire import codec
from common.wording import many
from party.client.context import PartyContext
from party.journal import CURATOR, SentMessage
from party.role import ChargeBudget, Effect, PartyRole

_REFUSAL = "PartyRefused"  # the node's own word, not an answer of the role
_SEALED = ("KeysDealt", "EnvelopePosted")  # messages with envelopes in them


class ReplayFinding(enum.StrEnum):
    """What a replay says of one message."""

    FOLLOWS = "follows"
    SEALED = "sealed"  # of the right kind and size; its bytes cannot be compared
    DIFFERS = "does not follow"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Everything `parley party audit` reports."""

    study: str  # its digest, in hexadecimal
    name: str
    kept_until: str
    rows_as_pinned: bool  # whether the table is the one that the study began with
    messages: tuple[tuple[SentMessage, ReplayFinding], ...]  # that left, and whether each follows
    charges_agree: bool  # whether the ledger has exactly what the role charged
    # Whether the curator received what the sent log has; None if its record was not given.
    received_agree: bool | None
    # Whether what was committed to is what was replayed; None in a study without commitments.
    commitments_agree: bool | None
    in_release: bool  # whether the commitments were compared with a release

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the owner."""
        agree = self.rows_as_pinned and self.charges_agree and self.received_agree is not False
        agree = agree and self.commitments_agree is not False
        return agree and all(finding is not ReplayFinding.DIFFERS for _, finding in self.messages)

    def sentences(self) -> list[str]:
        """Say what was found, for the auditor."""
        counts = Counter(finding for _, finding in self.messages)
        answers = (
            f"answers: {counts[ReplayFinding.FOLLOWS]} of {many(len(self.messages), 'message')} "
            "follow from these rows, the kept keys and the study; "
            f"{counts[ReplayFinding.SEALED]} are sealed, and have the right kind and size"
        )
        lines = [
            f"study {self.name} ({self.study[:16]}), kept until {self.kept_until}",
            "rows: the table is the one that the study began with"
            if self.rows_as_pinned
            else "rows: the table is NOT the one that the study began with",
            answers,
        ]
        lines += [
            f"message {message.sequence} ({message.kind}) does NOT follow"
            for message, finding in self.messages
            if finding is ReplayFinding.DIFFERS
        ]
        lines.append(
            "ledger: it has exactly the charges of this study"
            if self.charges_agree
            else "ledger: its charges are NOT those of this study"
        )
        if self.commitments_agree is not None:
            agree = "open to" if self.commitments_agree else "do NOT open to"
            where = "in the release" if self.in_release else "published to us"
            lines.append(f"commitments: those {where} {agree} these rows and answers")
        if self.received_agree is None and not self.in_release:
            lines.append(
                "curator: its record was not compared. Without it, the sent log is our own word"
            )
        elif self.received_agree is not None:
            agree = "is" if self.received_agree else "is NOT"
            lines.append(f"curator: what it received {agree} what our sent log has")
        return lines

    def as_json(self) -> dict[str, object]:
        messages = [
            {
                "number": message.sequence, "kind": message.kind, "bytes": message.size,
                "sha256": message.digest, "finding": finding.value,
            }
            for message, finding in self.messages
        ]  # fmt: skip
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"passed": self.passed, "messages": messages}


def audit(
    study: Study,
    context: PartyContext,
    *,
    received: Sequence[str] | None = None,
    released: Commitments | None = None,
) -> AuditReport:
    """Replay a study that ended, and compare.

    `received` are the SHA-256 of our messages by the curator's record, in order; `released` are the
    commitments in the release.

    Raises:
        InputError: nothing of this study was kept.
    """
    journal, digest = context.journal, study.digest
    record, keys = journal.record(digest), journal.retention.keys(digest)
    until = journal.retention.until(digest)
    if record is None or until is None:
        raise InputError(
            f"study {study.name!r}: nothing was kept for an audit. Set keep_for_audit in the "
            "policy before a study ends"
        )
    sources: dict[int, RandomSource] = {}

    def source_of(step: int) -> RandomSource:
        if step not in sources:
            if step not in keys:
                raise InputError(f"study {study.name!r}: no key of step {step} was kept")
            sources[step] = KeyedRandomSource(keys[step].reveal())
        return sources[step]

    rows = context.open_source(study)
    role = context.role(study, rows, source_of)
    effects, whole = _replay(role, journal.inbox.bodies(digest, CURATOR))
    sent = [message for message in journal.sent_log() if message.study == digest]
    return AuditReport(
        study=digest.hex(),
        name=study.name,
        kept_until=until,
        rows_as_pinned=rows.snapshot.digest == record.data_digest,
        messages=tuple(
            _compare(effects, [message for message in sent if message.kind != _REFUSAL])
        ),
        charges_agree=_charged(effects) == _paid(context, digest.hex()),
        received_agree=None if received is None else [e.digest for e in sent] == list(received),
        commitments_agree=whole and _opens(role, released) if study.commitments else None,
        in_release=released is not None,
    )


def _replay(role: PartyRole, bodies: Sequence[bytes]) -> tuple[list[Effect], bool]:
    """Return the effects, and whether nothing that was published contradicts them.

    What was published contradicts them where the commitments of the role are other ones.
    """
    effects: list[Effect] = []
    for body in bodies:
        try:
            effects += role.receive(codec.TO_PARTY.decode(body))
        except PolicyError:  # the role refused here, as it did then
            break
        except RemoteProtocolError:  # it did not refuse this then
            return effects, False
    return effects, True


def _opens(role: PartyRole, released: Commitments | None) -> bool:
    """Say whether the commitments in a release are those of the replayed role, in every step."""
    if released is None:
        return True
    table = released.tables.get(role.name)
    ours = [
        None if commitment is None else commitment in published
        for commitment, published in zip(role.contributions, released.contributions, strict=False)
    ]
    return table is not None and table.value == role.table_commitment and False not in ours


def _compare(
    effects: Sequence[Effect], sent: Sequence[SentMessage]
) -> list[tuple[SentMessage, ReplayFinding]]:
    answers = [
        codec.TO_CURATOR.encode(effect.message)
        for effect in effects
        if not isinstance(effect, ChargeBudget)
    ]
    return [
        (message, _finding(message, answer))
        for message, answer in zip_longest(sent, answers[: len(sent)])
    ]


def _finding(message: SentMessage, answer: bytes | None) -> ReplayFinding:
    if answer is not None and hashlib.sha256(answer).hexdigest() == message.digest:
        return ReplayFinding.FOLLOWS
    sealed = answer is not None and message.kind in _SEALED and len(answer) == message.size
    return ReplayFinding.SEALED if sealed else ReplayFinding.DIFFERS


def _charged(effects: Sequence[Effect]) -> dict[str, tuple[Fraction, Fraction]]:
    return {
        effect.step: (effect.epsilon, effect.rho)
        for effect in effects
        if isinstance(effect, ChargeBudget)
    }


def _paid(context: PartyContext, study: str) -> dict[str, tuple[Fraction, Fraction]]:
    return {
        entry.charge.step: (entry.charge.epsilon, entry.charge.rho)
        for entry in context.ledger.entries()
        if entry.charge.study == study
    }
