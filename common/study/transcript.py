"""What a study took: rounds, seconds and bytes, by phase and party."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InputError, LocalError
from common.study.document import Study
from common.wording import many

SETTING_UP = "setting up"
"""The phase of messages that belong to no step."""


@dataclass(slots=True)
class PhaseTraffic:
    """What one phase took: rounds, seconds, and bytes per party in both directions."""

    rounds: int = 0
    seconds: float = 0.0
    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, object]:
        return {
            "rounds": self.rounds,
            "seconds": round(self.seconds, 1),
            "bytes_sent": dict(sorted(self.sent.items())),
            "bytes_received": dict(sorted(self.received.items())),
        }

    def text(self) -> str:
        sent, received = sum(self.sent.values()), sum(self.received.values())
        return (
            f"{many(self.rounds, 'round')}, {self.seconds:.1f} s, {sent:,} bytes sent by parties, "
            f"{received:,} received"
        )


Phases = Mapping[str, PhaseTraffic]


def phases_of(transcript: Mapping[str, Any]) -> dict[str, PhaseTraffic]:
    """Read the phases of a transcript; raise InputError if there are none, or they are damaged."""
    try:
        return {
            phase: PhaseTraffic(
                rounds=_count(traffic["rounds"]),
                sent=_counts(traffic["bytes_sent"]),
                received=_counts(traffic["bytes_received"]),
            )
            for phase, traffic in transcript["phases"].items()
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not a transcript: {error!r}") from None


def _counts(by_party: Mapping[str, object]) -> Counter[str]:
    return Counter({party: _count(size) for party, size in by_party.items()})


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def transcript_of(
    study: Study, phases: Phases, missing: Mapping[str, int] | None = None
) -> dict[str, object]:
    """Return bytes, rounds and seconds by phase and party, for the operator who ran the study."""
    return {
        "study": study.digest.hex(),
        "parties": list(study.parties),
        "missing": dict(missing or {}),
        "phases": {phase: traffic.as_json() for phase, traffic in phases.items()},
        "bytes": sum(
            sum(traffic.sent.values()) + sum(traffic.received.values())
            for traffic in phases.values()
        ),
        "rounds": sum(traffic.rounds for traffic in phases.values()),
        "seconds": round(sum(traffic.seconds for traffic in phases.values()), 1),
    }


def without_times(transcript: Mapping[str, object]) -> dict[str, object]:
    """Return the content of transcript.json: what every reader may see.

    Bytes and rounds follow from the study and its published results. How long a step took depends
    on the rows it was about, and no noise hides that: times stay with the curator and the owners.
    """
    phases = transcript["phases"]
    if not isinstance(phases, Mapping):
        raise LocalError("a transcript has phases")
    untimed = {phase: _untimed(traffic) for phase, traffic in phases.items()}
    return _untimed(transcript) | {"phases": untimed}


def _untimed(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if key != "seconds"}
