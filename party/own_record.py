"""What a party must have seen before it vouches for a release.

Not the rows and not the model: whether a model follows from the study and the published results is
checked by anybody who verifies the release. What only the party knows is whether it approved the
study, took part in it to the end, saw these results and no others, and paid what it is said to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from common.study.document import Study
from common.study.messages import ResultPublished
from common.wire import codec
from party.journal import Journal, StudyState
from party.ledger import Ledger
from party.owner.approvals import Approvals


def reasons_against(
    study: Study,
    *,
    party: str,
    results: Sequence[bytes],
    privacy: Mapping[str, Any],
    approvals: Approvals,
    journal: Journal,
    ledger: Ledger,
) -> list[str]:
    """Why this party does not vouch for a release; empty if it does.

    Args:
        study: of the release.
        party: this party's name in the study.
        results: what the release says was published, step after step.
        privacy: the release's privacy statement.
        approvals: the owner's decisions.
        journal: what this party received.
        ledger: what it paid.

    Raises:
        LocalError: the ledger was tampered with.
    """
    ledger.verify()
    decision = approvals.decision(study.digest)
    if decision is None or not decision.approved:
        withdrew = decision is not None and decision.withdrawn_at is not None
        return ["we withdrew from this study" if withdrew else "we did not approve this study"]
    record = journal.record(study.digest)
    if record is None or record.state is not StudyState.FINISHED:
        return ["we did not take part in this study to its end"]
    reasons = []
    if not _saw(journal.received_digests(study.digest), study, results):
        reasons.append("the results in it are not those that were published to us")
    paid = ledger.spending(study.digest.hex()).paid
    stated = privacy.get("exact", {}).get("parties_paid", {}).get(party)
    if stated != str(paid):
        currency = study.promise.currency
        reasons.append(f"our ledger has {currency} {paid} for it, its statement says {stated}")
    return reasons


def _saw(received: Sequence[bytes], study: Study, results: Sequence[bytes]) -> bool:
    """Whether every result came to us, in this order; bodies are gone, their digests stay."""
    came = iter(received)
    return all(_digest(study, step, result) in came for step, result in enumerate(results))


def _digest(study: Study, step: int, result: bytes) -> bytes:
    message = ResultPublished(study=study.digest, step=step, result=result)
    return hashlib.sha256(codec.encode_to_party(message)).digest()
