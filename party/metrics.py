"""What a party's owner watches: budget, studies by state, bytes that left, the certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from common.service.metrics import Sample, certificate_gauge, gauge
from common.wire.pki.credentials import CredentialFiles
from party.journal import Journal, StudyState
from party.ledger import Ledger


def party_samples(journal: Journal, ledger: Ledger, files: CredentialFiles) -> Iterator[Sample]:
    spending = ledger.spending()
    states = Counter(record.state for record in journal.studies())
    for state in StudyState:
        yield gauge(
            "parley_party_studies",
            states[state],
            "Studies that this party took part in, by state.",
            {"state": state.value},
        )
    yield gauge(
        "parley_party_epsilon_spent",
        float(spending.epsilon),
        "Epsilon in the ledger, over all studies, at the largest delta of any of them.",
    )
    yield gauge(
        "parley_party_rho_spent",
        float(spending.rho),
        "Rho in the ledger, over all studies that have a delta.",
    )
    yield gauge(
        "parley_party_released_bytes",
        sum(departure.size for departure in journal.sent_log()),
        "Bytes of all messages that left, over all studies.",
    )
    yield certificate_gauge(files)
