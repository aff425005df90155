"""The metrics of a curator: studies by state, calls by outcome, waits, the certificate's end."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from collections.abc import Iterator

from common.service.metrics import Sample, certificate_gauge, gauge
from common.study.ids import short_id
from common.wire.pki.credentials import CredentialFiles
from curator.store.records import StudyState
from curator.store.store import Store
from curator.waiting import waited


class CallCounter:
    """Counts finished calls by method and outcome. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()

    def add(self, method: str, *, outcome: str) -> None:
        """Count a call; the outcome is a code of the catalogue, or OK."""
        with self._lock:
            self._calls[method, outcome] += 1

    def counted(self) -> list[tuple[tuple[str, str], int]]:
        with self._lock:
            return sorted(self._calls.items())

    def samples(self) -> list[Sample]:
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


def curator_samples(
    store: Store,
    calls: CallCounter,
    files: CredentialFiles,
    *,
    deadline: dt.timedelta,
    now: dt.datetime,
) -> Iterator[Sample]:
    states = store.count_by_state()
    for state in StudyState:
        yield gauge(
            "parley_curator_studies", states.get(state, 0), "Studies, by state.",
            {"state": state.value},
        )  # fmt: skip
    awaited = store.all_awaited()
    yield gauge(
        "parley_curator_overdue_studies",
        len({study for study, wait in awaited if waited(wait.since, now) > deadline}),
        "Studies that wait for parties for longer than step_deadline_s.",
    )
    # Of running studies only, so that the labels do not grow with those there ever were.
    for study, wait in sorted(awaited, key=lambda pair: (pair[0], pair[1].party)):
        yield gauge(
            "parley_curator_waiting_seconds",
            max(0.0, waited(wait.since, now).total_seconds()),
            "How long a running study waits for a call or an answer of a party.",
            {"study": short_id(study), "party": wait.party},
        )
    yield from calls.samples()
    yield certificate_gauge(files)
