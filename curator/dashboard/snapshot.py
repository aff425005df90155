"""The studies of this moment as plain values, for the page to draw.

Epsilons are texts of exact fractions, and their sums are made here, of fractions: the page adds
nothing up. A snapshot holds the agreed study, who approved, steps with their costs, sizes of
messages, and advice for the operator. It holds no messages, results, keys or counts.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from common.privacy.spending import Spending, short
from common.study.document import Study
from common.wire.catalogue import ErrorCode
from common.wording import many
from curator.revision import next_name
from curator.store.records import Absence, Awaited, Record, StepBytes, StepRecord, StudyState
from curator.waiting import approvals_in_words, how_long, in_words, waited

Document = dict[str, object]

_SPENT = "What the steps so far cost stays spent in the parties' ledgers."
_UNREADABLE = (
    "The other studies go on. Look at this one with the version of parley that it was offered with."
)
_KINDS = {
    StudyState.WAITING: "busy",
    StudyState.RUNNING: "busy",
    StudyState.PUBLISHING: "busy",
    StudyState.DONE: "good",
    StudyState.REFUSED: "bad",
    StudyState.FAILED: "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyView:
    """A study as the store has it."""

    record: Record
    study: Study
    approvals: Mapping[str, str]
    steps: Sequence[StepRecord]
    traffic: Sequence[StepBytes]
    awaited: Sequence[Awaited]
    absences: Sequence[Absence] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableStudy:
    """A study whose text this version of the program cannot read, and why."""

    record: Record
    problem: str


def study_document(
    view: StudyView,
    *,
    online: Collection[str],
    now: dt.datetime,
    overdue: bool,
    has_release: bool,
    has_picture: bool,
    cautions: Sequence[str],
) -> Document:
    """Return the values of a study; `cautions` are what users of its release must know first."""
    study, record, awaited = view.study, view.record, _awaited(view)
    return {
        **_standing(record, has_release=has_release),
        "state": record.state.value,
        "kind": _KINDS[record.state],
        "rehearsal": study.rehearsal,
        "overdue": overdue,
        "cause": record.cause,
        "advice": advice(record.state, record.cause, overdue=overdue),
        "waits_for": _waits_for(view),
        "next_name": next_name(study.name, now.year),
        "can_miss": record.state is StudyState.RUNNING and len(view.absences) < study.may_miss,
        "done": record.state is StudyState.DONE,
        "method": study.method,
        "profile": study.profile,
        "aggregation": study.aggregation.value,
        "epsilon": short(study.epsilon),
        "delta": f"{float(study.delta):g}",
        "currency": study.promise.currency,
        "budget": short(study.promise.budget),
        "rows": study.rows,
        "tables": _tables(study),
        "phases": _phases(view),
        "parties": [_party(view, name, online, awaited, now) for name in view.study.parties],
        "network": _network(view),
        "picture": has_picture,
        "cautions": list(cautions),
    }


def _tables(study: Study) -> str:
    """Say how large the table is; or that of people, and what their events have."""
    schema = study.schema
    people = f"{many(study.rows, schema.row)}, {many(len(schema.names), 'attribute')}"
    if (events := schema.events) is None:
        return people
    return f"{people}; {events.name}, {many(len(events.attributes), 'attribute')}"


def unreadable_document(study: UnreadableStudy, *, has_release: bool) -> Document:
    """Return the values of a study that this version cannot read."""
    unknown = ("method", "profile", "aggregation", "epsilon", "delta", "budget")
    return {
        **_standing(study.record, has_release=has_release),
        **dict.fromkeys(unknown, "not known"),
        "state": f"{study.record.state.value}, unreadable",
        "kind": "bad",
        "rehearsal": False,
        "overdue": False,
        "cause": study.problem,
        "advice": _UNREADABLE,
        "waits_for": "",
        "next_name": "",
        "can_miss": False,
        "done": False,
        "currency": "epsilon",
        "rows": 0,
        "tables": "not known",
        "phases": [],
        "parties": [],
        "network": {"names": [], "phase": "", "links": []},
        "picture": False,
        "cautions": [],
    }


def _standing(record: Record, *, has_release: bool) -> Document:
    """Return what is known of every study, readable or not."""
    return {
        "digest": record.study.hex(),
        "name": record.name,
        "over": record.state.over,
        "proposed_at": record.proposed_at,
        "ended_at": record.ended_at,
        "release": has_release,
    }


def spent_by_party(views: Sequence[StudyView]) -> Mapping[str, str]:
    """Say what all studies together cost each party so far, steps under way included."""
    spent: dict[str, list[Spending]] = {}
    for view in (view for view in views if not view.study.rehearsal):
        for step in view.steps:
            for party, cost in step.costs.items():
                spent.setdefault(party, []).append(Spending.of(cost, view.study.delta))
    totals = {party: Spending.together(spendings) for party, spendings in spent.items()}
    return {
        party: total.words() if total.delta else short(total.pure)
        for party, total in totals.items()
    }


def _awaited(view: StudyView) -> Mapping[str, str]:
    """Return the parties that a study waits for, and since when."""
    record = view.record
    if record.state is StudyState.WAITING:
        return {
            name: record.proposed_at for name in view.study.parties if name not in view.approvals
        }
    return {} if record.state.over else {wait.party: wait.since for wait in view.awaited}


def _waits_for(view: StudyView) -> str:
    if view.record.state is not StudyState.WAITING:
        return in_words(view.awaited, step=view.record.step)
    names = list(_awaited(view))
    return approvals_in_words(names, since=view.record.proposed_at, until=view.study.expires)


def _party(
    view: StudyView,
    name: str,
    online: Collection[str],
    awaited: Mapping[str, str],
    now: dt.datetime,
) -> Document:
    charged = [step for step in view.steps if step.costs.get(name)]
    traffic = [record for record in view.traffic if record.party == name]
    left = next((absence.words for absence in view.absences if absence.party == name), "")
    return {
        "name": name,
        "rows": view.study.rows_of[name],
        "approved_at": view.approvals.get(name),
        "online": name in online,
        "left": left,
        "awaited": name in awaited,
        "awaited_since": awaited.get(name),
        "awaited_for": how_long(waited(awaited[name], now)) if name in awaited else "",
        "bytes_in": sum(record.sent for record in traffic),
        "bytes_out": sum(record.received for record in traffic),
        "budget": _budget(charged, name),
    }


def _budget(steps: Sequence[StepRecord], party: str) -> Document:
    """Write an exact sum term by term; equal terms that follow one another are written once."""
    costs = [step.costs[party] for step in steps]
    terms = [(cost, len(list(run))) for cost, run in groupby(costs)]
    written = [short(cost) if times == 1 else f"{times} * {short(cost)}" for cost, times in terms]
    return {"terms": written, "sum": short(sum(costs, Fraction(0)))}


def _phases(view: StudyView) -> list[Document]:
    """List the approvals, every phase so far, and the release."""
    approved, parties = len(view.approvals), len(view.study.members)
    begun = bool(view.steps) or view.record.state not in (StudyState.WAITING, StudyState.REFUSED)
    phases: list[Document] = [
        {
            "name": "approvals",
            "detail": f"{approved} of {many(parties, 'party')}",
            "status": "done" if begun else _halted(view, "open"),
        }
    ]
    for phase, run in groupby(view.steps, key=lambda step: step.phase):
        phases.append(_phase(view, phase, list(run)))
    known = {StudyState.DONE: "done", StudyState.PUBLISHING: "open"}
    status = known.get(view.record.state, _halted(view, "later"))
    phases.append({"name": "release", "detail": "", "status": status})
    return phases


def _phase(view: StudyView, name: str, steps: Sequence[StepRecord]) -> Document:
    finished = sum(step.number < view.record.step for step in steps)
    numbers = {step.number for step in steps}
    moved = sum(record.sent + record.received for record in view.traffic if record.step in numbers)
    running = finished < len(steps)
    return {
        "name": name,
        "detail": f"step {finished + 1}" if running else many(finished, "step"),
        "bytes": moved,
        "since": steps[0].opened_at,
        "status": _halted(view, "open") if running else "done",
    }


def _halted(view: StudyView, otherwise: str) -> str:
    return "stopped" if view.record.state.over else otherwise


def _network(view: StudyView) -> Document:
    """Return which attributes are counted together, by the newest phase that says so.

    The choices of one phase add up; a later phase replaces an earlier one.
    """
    names = [attribute.name for attribute in view.study.schema.attributes]
    links: list[tuple[int, int]] = []
    fresh: set[tuple[int, int]] = set()
    phase = ""
    for step in view.steps:
        if not step.links:
            continue
        if step.phase != phase:
            links, phase = [], step.phase
        fresh = set(step.links) - set(links)
        links += [link for link in step.links if link not in links]
    return {
        "names": names,
        "phase": phase,
        "links": [[a, b, (a, b) in fresh] for a, b in links],
    }


def advice(state: StudyState, cause: str, *, overdue: bool = False) -> str:
    """Say what to do about a study that does not go on; "" for a study that does."""
    match state:
        case StudyState.REFUSED:
            return (
                "Nothing more happens here: a no is for good. Ask the owner, then offer a new "
                "study, or the same without that owner: `parley curator study reform --without "
                f"OWNER`. {_SPENT}"
            )
        case StudyState.FAILED:
            return (
                "Nothing more happens here. The curator's log has the details; put right what it "
                f"names and offer a new study. {_SPENT}"
            )
        case StudyState.PUBLISHING if cause:
            return (
                "Every result is there and nothing is lost. Put right what it names (space and "
                "permissions of the folder of releases): the curator tries again by itself."
            )
        case _ if cause:
            return (
                "The study is stopped and nothing is lost. Put right what it names: the curator "
                "tries again by itself. If another version of parley began it, go on with that one."
            )
        case StudyState.RUNNING if overdue:
            return (
                "The study is overdue. Ask the owners that it waits for whether their nodes run. "
                "If one of them does not come back, end the study, and offer a new one without it: "
                f"`parley curator study reform --without OWNER`. {_SPENT}"
            )
    return ""


def troubles(counted: Iterable[tuple[tuple[str, str], int]]) -> list[Document]:
    """Return the refused calls since the start, by reason."""
    totals: Counter[str] = Counter()
    for (_, outcome), number in counted:
        if outcome in ErrorCode.__members__:
            totals[outcome] += number
    return [
        {
            "code": code,
            "count": number,
            "what": ErrorCode[code].public,
            "todo": ErrorCode[code].remedy,
        }
        for code, number in sorted(totals.items())
    ]
