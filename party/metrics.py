"""What a party's owner watches: budget, studies by state, bytes that left, the certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from common.service.metrics import Sample
from common.wire.pki.credentials import CredentialFiles
from party.journal import Journal, StudyState
from party.ledger import Ledger


def party_samples(journal: Journal, ledger: Ledger, files: CredentialFiles) -> Iterator[Sample]:
    """Everything, as it is now."""
    spending = ledger.spending()
    states = Counter(record.state for record in journal.studies())
    for state in StudyState:
        yield Sample(
            name="parley_party_studies",
            help="Studies that this party took part in, by state.",
            kind="gauge",
            value=states[state],
            labels={"state": state.value},
        )
    yield Sample(
        name="parley_party_epsilon_spent",
        help="Epsilon in the ledger, over all studies, at the largest delta of any of them.",
        kind="gauge",
        value=float(spending.epsilon),
    )
    yield Sample(
        name="parley_party_rho_spent",
        help="Rho in the ledger, over all studies that have a delta.",
        kind="gauge",
        value=float(spending.rho),
    )
    yield Sample(
        name="parley_party_released_bytes",
        help="Bytes of all messages that left, over all studies.",
        kind="gauge",
        value=sum(departure.size for departure in journal.sent_log()),
    )
    yield Sample(
        name="parley_certificate_expires_seconds",
        help="When the certificate in use expires, in seconds since 1970.",
        kind="gauge",
        value=files.load().certificate.not_valid_after_utc.timestamp(),
    )
