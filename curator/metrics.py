"""What a curator's operator watches: studies by state, calls by outcome, the certificate's end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

from common.metrics import Sample
from common.wire.credentials import CredentialFiles
from curator.records import StudyState
from curator.store import Store


class CallCounter:
    """Counts finished calls by method and outcome. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()

    def add(self, method: str, outcome: str) -> None:
        """One more call; the outcome is a code of the catalogue, or OK."""
        with self._lock:
            self._calls[method, outcome] += 1

    def counted(self) -> list[tuple[tuple[str, str], int]]:
        """How many calls there were, by method and outcome."""
        with self._lock:
            return sorted(self._calls.items())

    def samples(self) -> list[Sample]:
        """One for every method and outcome that occurred."""
        return [
            Sample(
                name="parley_curator_calls_total",
                help="Finished calls of parties, by method and outcome.",
                kind="counter",
                value=number,
                labels={"method": method, "outcome": outcome},
            )
            for (method, outcome), number in self.counted()
        ]


def curator_samples(store: Store, calls: CallCounter, files: CredentialFiles) -> Iterator[Sample]:
    """Everything, as it is now."""
    states = store.count_by_state()
    for state in StudyState:
        yield Sample(
            name="parley_curator_studies",
            help="Studies, by state.",
            kind="gauge",
            value=states.get(state, 0),
            labels={"state": state.value},
        )
    yield from calls.samples()
    yield Sample(
        name="parley_certificate_expires_seconds",
        help="When the certificate in use expires, in seconds since 1970.",
        kind="gauge",
        value=files.load().certificate.not_valid_after_utc.timestamp(),
    )
