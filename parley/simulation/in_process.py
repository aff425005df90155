"""A whole study in one process: K parties and the curator, on the real roles and cryptography.

`run_study` is the shortest complete description of a study: the curator's role and every party's
role, with a queue in each direction where a deployment has a network.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from common.crypto.identities.identity import Identity
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import Blinder, PublicKey, generate_key_pair
from common.errors import InputError, RemoteProtocolError
from common.exchanges.setup import needs_key
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes
from common.study.commitments import Commitments
from common.study.document import Study
from common.study.messages import StepMessage, StepOpened, ToCurator, ToParty, message_bytes
from common.study.requests import OwnersRows
from common.study.requests import RowsInMemory as RowsInMemory
from common.study.script import ScriptRun
from common.study.steps import Model, Step
from common.study.transcript import SETTING_UP, PhaseTraffic
from common.wording import Reporter, silent
from curator.role import CuratorRole, Fail
from curator.role import Effect as CuratorEffect
from curator.role import SendToParty as SendToParty
from party.role import ChargeBudget, PartyRole

FITTING = "fitting the model"  # told after the last step


@dataclass(frozen=True, slots=True)
class Run:
    """A finished study: what was learnt, every step with its result, every charge, what it took.

    `seconds` has what each party computed, `curator_s` what the curator did. What all parties
    compute alike and share in one process (a table of the public key, the check of a proof) is
    counted for the first of them. `left` are the parties that vanished.
    """

    model: Model
    steps: tuple[Step, ...]
    results: tuple[bytes, ...]
    charges: Mapping[str, tuple[ChargeBudget, ...]]
    traffic: Mapping[str, PhaseTraffic]
    seconds: Mapping[str, float]
    curator_s: float
    left: tuple[str, ...] = ()
    commitments: Commitments | None = None


def run_study(
    study: Study,
    begin: Callable[[Study], ScriptRun],
    tables: Mapping[str, Codes | OwnersRows],
    identities: Mapping[str, Identity],
    *,
    source: RandomSource,
    drop: Mapping[str, int] | None = None,
    report: Reporter = silent,
) -> Run:
    """Run every role in this process until the curator can make the release.

    Each role has a copy of the script of its own, which `begin` begins. Here all draw from one
    `source`; in a deployment each has its own. `drop` has, for each party that vanishes, the first
    step it contributes nothing to. RemoteProtocolError says why a study failed.
    """
    unknown = set(drop or {}) - set(tables)
    if unknown:
        raise InputError(
            f"drop: {', '.join(sorted(unknown))} is not a party; there are {', '.join(tables)}"
        )
    curator = _curator(study, begin, source)
    parties = _parties(study, begin, tables, identities, source)
    return run_roles(curator, parties, drop=drop, report=report)


def run_roles(
    curator: CuratorRole,
    parties: Mapping[str, PartyRole],
    *,
    drop: Mapping[str, int] | None = None,
    report: Reporter = silent,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Carry messages between these roles until the curator can make the release.

    A party that vanishes hears nothing from the message on that it would contribute to its step
    after; when the curator waits for it alone, it is declared missing. `clock` measures what each
    role computes.
    """
    log = _Log(report)
    charges: dict[str, list[ChargeBudget]] = {name: [] for name in parties}
    to_parties: deque[tuple[str, ToParty]] = deque(_sent(curator.start()))
    to_curator: deque[tuple[str, ToCurator]] = deque()
    vanished: set[str] = set()
    seconds = dict.fromkeys(parties, 0.0)
    curator_s = 0.0
    while to_parties or to_curator or vanished & set(curator.waiting_for):
        phase = log.enter(curator.current_step)
        started = clock()
        if to_parties:
            name, request = to_parties.popleft()
            if _vanishes(request, (drop or {}).get(name), curator):
                vanished.add(name)
            if name in vanished:
                continue
            phase.received[name] += message_bytes(request)
            for effect in parties[name].receive(request):
                if isinstance(effect, ChargeBudget):
                    charges[name].append(effect)
                else:
                    to_curator.append((name, effect.message))
            seconds[name] += clock() - started
        elif not to_curator:
            name = min(vanished & set(curator.waiting_for))
            to_parties.extend(_sent(curator.declare_missing(name)))
        else:
            name, answer = to_curator.popleft()
            phase.sent[name] += message_bytes(answer)
            to_parties.extend(_sent(curator.receive(name, answer)))
            curator_s += clock() - started
    log.enter(None)
    report(1.0, FITTING)
    spent = {name: tuple(entries) for name, entries in charges.items()}
    return Run(
        curator.model(), curator.steps, curator.results, spent, log.traffic, seconds, curator_s,
        curator.missing, curator.commitments,
    )  # fmt: skip


def _vanishes(request: ToParty, drop: int | None, curator: CuratorRole) -> bool:
    """Return whether a party that drops out in a step vanishes before it answers this message."""
    if drop is None or not isinstance(request, StepMessage | StepOpened):
        return False
    return request.step >= drop and curator.collects


def _curator(
    study: Study, begin: Callable[[Study], ScriptRun], source: RandomSource
) -> CuratorRole:
    key = generate_key_pair(study.key_bits, source) if needs_key(study) else None
    return CuratorRole(study=study, run=begin(study), private_key=key, source_of=lambda _: source)


def _parties(
    study: Study,
    begin: Callable[[Study], ScriptRun],
    tables: Mapping[str, Codes | OwnersRows],
    identities: Mapping[str, Identity],
    source: RandomSource,
) -> dict[str, PartyRole]:
    blinder_of = _one_blinder_per_key()
    return {
        name: PartyRole(
            study=study,
            run=begin(study),
            name=name,
            identity=identities[name],
            data=RowsInMemory(table) if isinstance(table, Codes) else table,
            source_of=lambda _: source,
            blinder_of=blinder_of,
        )
        for name, table in tables.items()
    }


def _sent(effects: Iterable[CuratorEffect]) -> Iterable[tuple[str, ToParty]]:
    for effect in effects:
        if isinstance(effect, Fail):
            raise RemoteProtocolError(f"the study failed: {effect.reason}")
        if isinstance(effect, SendToParty):
            yield effect.to, effect.message


def _one_blinder_per_key() -> Callable[[PublicKey, RandomSource], Blinder]:
    """Share one table for fast blinding among the parties of a process."""
    blinders: dict[bytes, Blinder] = {}

    def blinder_of(key: PublicKey, source: RandomSource) -> Blinder:
        if key.digest not in blinders:
            blinders[key.digest] = FixedBaseBlinder(key, source)
        return blinders[key.digest]

    return blinder_of


class _Log:
    """Books steps, time and bytes on the phase that is being worked on."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self.steps: list[Step] = []
        self.traffic: dict[str, PhaseTraffic] = {SETTING_UP: PhaseTraffic()}
        self._phase = SETTING_UP
        self._since = time.perf_counter()

    def enter(self, step: Step | None) -> PhaseTraffic:
        now = time.perf_counter()
        self.traffic[self._phase].seconds += now - self._since
        self._since = now
        if step is None:
            self._phase = SETTING_UP
        elif not self.steps or step.name != self.steps[-1].name:
            self.steps.append(step)
            self._phase = step.phase
            self.traffic.setdefault(step.phase, PhaseTraffic()).rounds += 1
            number = len(self.steps)
            self._report(number / (number + 3), step.phase)  # how many will come is not known
        return self.traffic[self._phase]
