"""`parley curator study`: see how studies are getting on, and end them.

`curator_proposal` has the commands that write a study and offer it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from common.release.folder import cautions_of
from common.service.process import stamp, system_clock
from common.study.ids import StudyId
from common.study.transcript import Phases
from common.wording import moment
from curator.operations import abort as ask_to_abort
from curator.operations import (
    declare_missing,
    declared,
    find_record,
    last_calls,
)
from curator.settings import curator_settings, open_store
from curator.store.records import Awaited, Record, StudyState
from curator.waiting import approvals_in_words, how_long, in_words, waited
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.curator_proposal import add, new, reform, rehearse, renew
from parley.cli.options import Config, KnownStudy
from parley.cli.result import Result, ResultList, command

_ABORT_S = 5.0  # how long a running curator may take to end a study

app = new_app("Write a study down, offer it, see how it is getting on, end it.")
for function in (new, add, reform, renew, rehearse):
    command(app)(function)


@dataclass(frozen=True, kw_only=True)
class StudyStanding(Result):
    """Where a study stands."""

    study: StudyId
    name: str
    state: StudyState
    steps_done: int
    phase: str
    cause: str
    unreadable: bool
    release: str
    abort_asked: str
    proposed_at: str

    @classmethod
    def of(cls, record: Record, **more: Any) -> Self:  # noqa: ANN401  (fields of a subclass)
        return cls(
            study=record.study, name=record.name, state=record.state, steps_done=record.step,
            phase=record.phase, cause=record.cause, unreadable=record.unreadable,
            release=record.place, abort_asked=record.abort_asked, proposed_at=record.proposed_at,
            **more,
        )  # fmt: skip

    @property
    def words(self) -> str:
        if self.unreadable:
            return f"{self.state.value}, unreadable"
        return f"{self.state.value}, {self.phase}" if self.phase else self.state.value

    def lines(self) -> Iterator[str]:
        yield f"state    {self.words}"


class ListedStudy(StudyStanding):
    """A study in a list."""

    def lines(self) -> Iterator[str]:
        yield f"{self.study.hex()[:16]}  {self.words:<24} {self.name}"


@dataclass(frozen=True, kw_only=True)
class WithoutOwner(StudyStanding):
    """A study that goes on without an owner, or will."""

    missing: str
    done: bool

    def lines(self) -> Iterator[str]:
        yield f"missing  {self.missing}"
        yield from super().lines()


@dataclass(frozen=True, kw_only=True)
class Progress(StudyStanding):
    """How a study is getting on, and whom it waits for."""

    not_approved_by: tuple[str, ...]
    last_calls: Mapping[str, str]
    phases: Phases
    waiting_for: Sequence[Awaited]
    overdue: bool
    missing: Mapping[str, str]
    approve_by: date | None

    def lines(self) -> Iterator[str]:
        now = system_clock()
        yield f"study    {self.name}"
        yield f"digest   {self.study.hex()}"
        yield from super().lines()
        if self.not_approved_by:
            words = approvals_in_words(
                self.not_approved_by, since=self.proposed_at, until=self.approve_by
            )
            yield f"waits for {words} ({how_long(waited(self.proposed_at, now))})"
        for party, why in self.missing.items():
            yield f"missing  {party}: {why or 'declared missing'}"
        if self.waiting_for:
            longest = max(waited(wait.since, now) for wait in self.waiting_for)
            words = in_words(self.waiting_for, step=self.steps_done)
            yield f"waits for {words} ({how_long(longest)})"
        if self.overdue:
            yield (
                "overdue  ask the owners it waits for whether their nodes run; if one does not "
                "come back, `study abort`, then `study reform --without OWNER`"
            )
        for party, at in self.last_calls.items():  # a node that runs calls every few seconds
            yield f"party    {party}: {f'last called {moment(at)}' if at else 'has not called yet'}"
        if self.abort_asked and not self.state.over:
            yield f"to end   {self.abort_asked} (when the curator runs)"
        if self.cause:
            yield f"cause    {self.cause}"
        for phase, traffic in self.phases.items():
            yield f"phase    {phase}: {traffic.text()}"
        if self.release:
            yield f"release  {self.release}"
            for caution in cautions_of(Path(self.release)):
                yield f"caution  {caution}"


@command(app, "list")
def list_studies(*, config: Config = None) -> ResultList:
    """List every study of this curator, oldest first, with its state."""
    with open_store(curator_settings(config, os.environ).values) as store:
        return ResultList(tuple(map(ListedStudy.of, store.records())))


@command(app)
def status(study: KnownStudy, *, config: Config = None) -> Progress:
    """Show how a study is getting on, and whom it waits for."""
    settings = curator_settings(config, os.environ).values
    now = system_clock()
    with open_store(settings) as store:
        record = find_record(store, study)
        waiting, waits = store.not_approved_by(record), store.awaited(record.study)
        return Progress.of(
            record,
            not_approved_by=waiting,
            last_calls=last_calls(store, record),
            phases=store.traffic.phases(record.study),
            waiting_for=waits,
            overdue=any(waited(wait.since, now) > settings.step_deadline for wait in waits),
            missing=declared(store, record.study),
            approve_by=store.study(record.study).expires if waiting else None,
        )


@command(app)
def abort(
    study: KnownStudy,
    *,
    reason: Annotated[str, typer.Option(help="Why; the parties read it.")],
    config: Config = None,
) -> StudyStanding:
    """End a study without a release. What it has cost the owners' rows so far stays charged.

    A running curator ends it as soon as it does not compute for it, and tells the parties; one that
    is not running does so when it is started.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        record = ask_to_abort(store, record, reason, at=at, wait_s=_ABORT_S, sleep=time.sleep)
    if not record.state.over:
        console.warn("no curator runs on this state now, or it is busy: the study ends when it can")
    return StudyStanding.of(record)


@command(app)
def missing(
    study: KnownStudy,
    owner: Annotated[str, typer.Argument(help="The owner that does not come back.")],
    *,
    config: Config = None,
) -> WithoutOwner:
    """Declare an owner missing for good, if the study allows that; the study goes on without it.

    A study that has lost more owners than it allows (`may_miss`) ends. One that needs all of its
    owners is ended and re-formed instead: `study abort`, then `study reform --without OWNER`.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record, at = find_record(store, study), stamp(system_clock())
        agreed = declare_missing(store, record, owner, at=at, wait_s=_ABORT_S, sleep=time.sleep)
        record = store.record(record.study)
    if not agreed:
        console.warn("no curator runs on this state now, or it is busy: it goes on when it can")
    return WithoutOwner.of(record, missing=owner, done=agreed)


@dataclass(frozen=True)
class ReceivedDigests(Result):
    """The SHA-256 of every message of each owner, in order."""

    study: StudyId
    parties: Mapping[str, Sequence[bytes]]

    def lines(self) -> Iterator[str]:
        for party, digests in self.parties.items():
            for number, digest in enumerate(digests, start=1):
                yield f"{party} {number:>4}  {digest.hex()}"


@command(app)
def received(study: KnownStudy, *, config: Config = None) -> ReceivedDigests:
    """List the SHA-256 of every message that was received from each owner, in order.

    For an auditor, who compares it with what an owner's node says that it sent: `parley party
    audit --received FILE`. Digests stay when messages are wiped.
    """
    with open_store(curator_settings(config, os.environ).values) as store:
        record = find_record(store, study)
        members = store.members(record.study)
        digests = {party: store.inbox.digests(record.study, party) for party in members}
    return ReceivedDigests(record.study, digests)
