"""A party's half of a study, as a state machine without I/O.

Feed it what the curator sent; carry out the effects it returns, in order. The role derives every
step from the approved study and the published results, and answers that and nothing else: what the
curator asks for is compared, never obeyed. How a step is answered is its exchange's affair: the
role feeds the exchange's side and charges before anything of the rows leaves. Time, sockets and
files are the shell's business; randomness is handed in, one source per step, so that a shell that
keeps the sources can rebuild a role after a crash by feeding it the same messages again.

A message that was seen before changes nothing. A message that is not allowed raises
RemoteProtocolError, and changes nothing either.

The shell executes effects strictly in order. `ChargeBudget` returns only after the charge is on
disk; if it fails, the rest of the list is dropped and the study is refused. `SendToCurator` is
journalled before it goes out, so that the same bytes go out again after a crash.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.sums.missing_lists import check_missing
from common.errors import PolicyError, RemoteProtocolError
from common.exchanges.commitments import COMMITMENTS, CommittingParty, is_contribution
from common.exchanges.setup import BlinderOfKey, party_set_up
from common.privacy.randomness import SourceOfStep
from common.study.commitments import COMMITMENT_BYTES, content_digest
from common.study.document import Study
from common.study.history import History
from common.study.messages import (
    ResultPublished,
    StepMessage,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
    message_digest,
)
from common.study.requests import OwnersRows
from common.study.script import ScriptRun
from common.study.sides import Memory, PartySide, Post
from common.study.states import RoleState, following
from common.study.steps import Step, StepAtParty


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeBudget:
    """Charge this party's ledger for one step of the study, before its answer leaves."""

    step: str
    mechanism: str  # what draws the answer
    epsilon: Fraction = Fraction(0)  # the cost under pure epsilon; 0 under a promise with a delta
    rho: Fraction = Fraction(0)  # the cost under a promise with a delta
    delta: Fraction = Fraction(0)  # of that promise


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToCurator:
    """Send a message to the curator."""

    message: ToCurator


Effect = ChargeBudget | SendToCurator


class PartyRole:
    """One party's view of one study."""

    def __init__(
        self,
        *,
        study: Study,
        run: ScriptRun,
        name: str,
        identity: Identity,
        data: OwnersRows,
        source_of: SourceOfStep,
        blinder_of: BlinderOfKey = FixedBaseBlinder,
    ) -> None:
        declared = study.rows_of.get(name)
        if declared != data.rows:
            raise PolicyError(
                f"study {study.name!r}: it says that {name!r} has {declared} rows, and the data "
                f"has {data.rows}. The row count sets the noise. Ask for a study with the right one"
            )
        self._study, self._run, self._name = study, run, name
        self._history = History(study.digest)
        self._memory = Memory(LocalParty(name=name, identity=identity, roster=study.roster))
        self._data, self._source_of, self._blinder_of = data, source_of, blinder_of
        self.state = RoleState.NOT_OPEN
        self.side: PartySide | None = None  # of the exchange that is open
        self._number = 0
        self._spent = Fraction(0)
        self._charged = -1  # the newest step that was charged: one that is begun again is not
        self._missing: tuple[str, ...] = ()  # in the newest step that says so
        self._at_fault: set[str] = set()  # the parties that were proved to be at fault
        self._fingerprints: set[bytes] = set()
        self._committing: CommittingParty | None = None  # in a study with commitments
        self._sent: list[bytes] = []  # in the open step, what we commit to, by digest
        self.contributions: list[bytes | None] = []  # our commitments, step by step

    @property
    def name(self) -> str:
        return self._name

    @property
    def table_commitment(self) -> bytes:
        """Our commitment to our table; empty in a study without commitments."""
        return b"" if self._committing is None else self._committing.commitment

    @property
    def phase(self) -> str:
        """The phase of the open step; empty between steps."""
        step = self._run.step() if self.state is RoleState.IN_STEP else None
        return "" if step is None else step.phase

    @property
    def step_number(self) -> int:
        """The number of steps that have their result."""
        return self._number

    def receive(self, message: ToParty) -> list[Effect]:
        """Consume one message; return effects in the order they must happen."""
        if message.study != self._study.digest:
            raise RemoteProtocolError("the message belongs to another study")
        fingerprint = message_digest(message)
        if fingerprint in self._fingerprints:
            return []
        state = following(self.state, message, self.side, who="this party")
        effects = self._handle(message)
        self.state = state
        self._fingerprints.add(fingerprint)
        return effects

    def _handle(self, message: ToParty) -> list[Effect]:
        match message:
            case StudyOpened():
                return self._open_study(message)
            case StepOpened():
                return self._open_step(message)
            case StepMessage():
                return self._take(message)
            case ResultPublished():
                return self._take_result(message)
            case StudyFinished():
                if self._run.step() is not None:
                    raise RemoteProtocolError("the curator ends the study before its last step")
                self._check_missing(message.missing)
                return []
            case StudyAborted():
                return []
            case _:
                assert_never(message)

    def _open_study(self, message: StudyOpened) -> list[Effect]:
        opening = message.public_key
        side = party_set_up(
            self._study, self._memory, self._source_of, opening, self._data, self._blinder_of
        )
        self._history.add_key(opening)
        self.side = side
        self._committing = side if isinstance(side, CommittingParty) else None
        return list(map(self._send, side.begin()))

    def _open_step(self, message: StepOpened) -> list[Effect]:
        self._check_missing(message.missing)
        again = self.state is RoleState.IN_STEP
        if again and message.missing == self._missing:
            raise RemoteProtocolError(
                f"step {message.step}: it is opened again, and the same parties are in it. A sum "
                "is begun again only without a party that was there"
            )
        step = self._run.step_without(message.missing)
        if step is None:
            raise RemoteProtocolError("a step is asked for after the study's last one")
        if message.step != self._number:
            raise RemoteProtocolError(
                f"step {message.step}: the curator asks for it, and step {self._number} is next. "
                "No step is answered twice"
            )
        context = StepAtParty(
            study=self._study,
            number=self._number,
            step=step,
            history=self._history.digest,
            memory=self._memory,
            data=self._data,
            source_of=self._source_of,
            opening=message.opening,
            again=again,
        )
        if message.digest != context.digest:
            raise RemoteProtocolError(
                f"the curator's step {self._number} is not what the approved study and the results "
                f"published so far imply: {step.name!r}"
            )
        self._refuse_overspending(step)
        side = step.exchange.party(context) if self._name in step.parties else PartySide()
        posts = side.begin()
        self._run.leave_out(message.missing)
        self._missing, self.side = message.missing, side
        self._sent = self._sent if again else []
        # A side that begins with keys alone pays later; any other pays now, even if it is silent.
        keys_only = bool(posts) and not any(post.of_rows for post in posts)
        return [*([] if keys_only else self._charge(step)), *map(self._send, posts)]

    def _take(self, message: StepMessage) -> list[Effect]:
        step = self._run.step()
        if self.side is None or step is None or message.step != self._number:
            raise RemoteProtocolError(
                f"{message.round} of step {message.step} is not expected here: step "
                f"{self._number} is open"
            )
        posts = self.side.receive(message)
        self._at_fault.update(self.side.at_fault)
        if self.state is RoleState.SETTING_UP:
            self._missing = self._in_order(self.side.absent)
            if message.round == COMMITMENTS and self._committing is not None:
                self._history.add_tables(self._committing.published)
        paid = any(post.of_rows for post in posts)
        return [*(self._charge(step) if paid else []), *map(self._send, posts)]

    def _take_result(self, message: ResultPublished) -> list[Effect]:
        step = self._run.step()
        if self.side is None or step is None or message.step != self._number:
            raise RemoteProtocolError(f"a result of step {message.step} is not expected here")
        self.side.check_result(message.result)
        result = step.read(self._study, message.result)
        parties = [name for name in step.parties if name not in self.side.absent]
        self.contributions.append(self._own_contribution(parties, message.contributions))
        self._run.leave_out(self.side.absent)
        self._run.advance(result)
        self._missing = self._in_order({*self._missing, *self.side.absent})
        self._history.add_result(self._number, message.result, message.contributions)
        if self._study.may_miss:
            self._history.add_missing(self._number, self._missing)
        self.side = None
        self._number += 1
        return []

    def _own_contribution(self, parties: list[str], published: tuple[bytes, ...]) -> bytes | None:
        """Return the commitment to what we sent in the step; raise unless it was published."""
        committing = self._committing
        if len(published) != (0 if committing is None else len(parties)):
            raise RemoteProtocolError("the commitments are not one for each party of the step")
        if any(len(value) != COMMITMENT_BYTES for value in published):
            raise RemoteProtocolError(f"a commitment has {COMMITMENT_BYTES} bytes")
        if committing is None or self._name not in parties:
            return None
        expected = committing.contribution(self._number, self._sent)
        if published[parties.index(self._name)] != expected:
            raise RemoteProtocolError(
                f"the curator published another commitment than ours to what we sent in step "
                f"{self._number}"
            )
        return expected

    def _check_missing(self, missing: tuple[str, ...]) -> None:
        """Raise unless the study can go on without these parties, and they stay out."""
        study, before = self._study, self._missing
        check_missing(
            study.parties, missing, may_miss=study.may_miss, of=self._name, at_least=before
        )
        still_in = self._at_fault - set(missing) - {self._name}
        if still_in:
            raise RemoteProtocolError(
                f"the curator goes on with {', '.join(sorted(still_in))}, which is at fault in a "
                "dispute about key shares"
            )

    def _in_order(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in self._study.parties if name in names)

    def _refuse_overspending(self, step: Step) -> None:
        """Refuse to pass the promise, which in the sound profile is the epsilon delivered."""
        cost, promise = step.costs.get(self._name), self._study.promise
        if not cost or self._charged == self._number or self._study.profile != "sound":
            return
        if self._spent + cost > promise.budget:
            raise PolicyError(
                f"step {step.name!r}: it costs {promise.currency} {cost}. With {self._spent} spent "
                f"before, that is more than the {promise.budget} that the study promises"
            )

    def _charge(self, step: Step) -> list[Effect]:
        """Charge what the step costs this party, once, before its answer leaves."""
        cost = step.costs.get(self._name)
        if not cost or self._charged == self._number:
            return []
        self._spent += cost
        self._charged = self._number
        if delta := self._study.delta:
            return [ChargeBudget(step=step.name, mechanism=step.mechanism, rho=cost, delta=delta)]
        return [ChargeBudget(step=step.name, mechanism=step.mechanism, epsilon=cost)]

    def _send(self, post: Post) -> Effect:
        """Send a message of the open exchange; a party it is for gets it through the curator."""
        message = StepMessage(
            study=self._study.digest,
            step=self._number,
            round=post.round,
            peer=post.to,
            payload=post.payload,
        )
        if self._committing is not None and is_contribution(message):
            self._sent.append(content_digest(message))
        return SendToCurator(message=message)
