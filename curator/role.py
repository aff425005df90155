"""The curator's half of a study, as a state machine without I/O.

It opens one step after the other, gives what the parties send to the curator's side of the step's
exchange, and publishes each step's noisy result to every party. It learns noisy sums and nothing
else: what it relays between parties is sealed, and the only thing it ever decrypts is the full
product of a sum. Its shell, `curator.session`, carries out the effects that it returns, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from common.crypto.paillier.keys import PrivateKey
from common.errors import LocalError, RemoteProtocolError
from common.exchanges.commitments import CommittingCurator, is_contribution
from common.exchanges.setup import curator_set_up
from common.privacy.randomness import SourceOfStep
from common.study.commitments import Commitments, content_digest, read_tables
from common.study.document import Study
from common.study.history import History
from common.study.messages import (
    MOST_TEXT,
    Message,
    PartyRefused,
    ResultPublished,
    StepMessage,
    StepOpened,
    StudyAborted,
    StudyFinished,
    StudyOpened,
    ToCurator,
    ToParty,
    message_digest,
    name_of,
)
from common.study.script import ScriptRun
from common.study.sides import BeginAgain, CuratorSide, Expel, Move, Notice, Post
from common.study.states import RoleState, following
from common.study.steps import Model, Step, StepAtCurator


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToParty:
    """Send a message to one party."""

    to: str
    message: ToParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Every step has its result: make the release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The study ends without a release."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A party is out for the rest of the study, which goes on."""

    party: str
    step: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """Tell the operator of a dispute between parties."""

    words: str


Effect = SendToParty | Finish | Fail | Leave | Warn


class CuratorRole:
    """The curator of one study."""

    def __init__(
        self,
        *,
        study: Study,
        run: ScriptRun,
        private_key: PrivateKey | None,
        source_of: SourceOfStep,
    ) -> None:
        self._study, self._run = study, run
        self._private_key, self._source_of = private_key, source_of
        self._history = History(study.digest)
        self.state = RoleState.NOT_OPEN
        self.side: CuratorSide = curator_set_up(study, private_key)  # of the open exchange
        self._number = 0
        self._results: list[bytes] = []
        # The disputes of the study: their facts, and the message that proves who was at fault.
        self.judged: list[tuple[Mapping[str, object], StepMessage]] = []
        self._missing: set[str] = set()  # declared missing: out for the rest of the study
        self._fingerprints: set[tuple[str, bytes]] = set()
        self._committing = self.side if isinstance(self.side, CommittingCurator) else None
        self._heard: dict[str, list[bytes]] = {}  # in the open step, what each commits to
        self._contributions: list[tuple[bytes, ...]] = []

    @property
    def step_number(self) -> int:
        """How many steps have their result."""
        return self._number

    @property
    def results(self) -> tuple[bytes, ...]:
        """What was published, step after step."""
        return tuple(self._results)

    @property
    def commitments(self) -> Commitments | None:
        """The commitments that were published; None in a study without them."""
        if self._committing is None:
            return None
        tables = read_tables(self._committing.published)
        return Commitments(tables, tuple(self._contributions))

    @property
    def current_step(self) -> Step | None:
        """The step that is open now, for progress reports."""
        return self._run.step() if self.state is RoleState.IN_STEP else None

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that has its result, with the parties that are in it."""
        return self._run.steps

    @property
    def missing(self) -> tuple[str, ...]:
        """The parties that were declared missing, in the order of the study."""
        return tuple(name for name in self._study.parties if name in self._missing)

    @property
    def left(self) -> tuple[str, ...]:
        """The parties that were not declared missing, in the order of the study."""
        return tuple(name for name in self._study.parties if name not in self._missing)

    @property
    def finished(self) -> StudyFinished:
        """The last message of a study that has every result."""
        return StudyFinished(study=self._study.digest, missing=self.missing)

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The parties whose message the study waits for."""
        return self.side.waiting_for if self._is_open else ()

    @property
    def collects(self) -> bool:
        """Whether the study waits for what holds rows."""
        return self._is_open and self.side.collects

    @property
    def _is_open(self) -> bool:
        return self.state in (RoleState.SETTING_UP, RoleState.IN_STEP)

    def model(self) -> Model:
        """Return what was learnt; only after `Finish`."""
        if self.state is not RoleState.FINISHED:
            raise LocalError(f"there is no model yet: the curator waits for {self.state.value}")
        return self._run.model()

    def start(self) -> list[Effect]:
        """Open the study: every party has approved."""
        if self.state is not RoleState.NOT_OPEN:
            raise LocalError("the study was started before")
        self._history.add_key(self.side.opening)
        opened = StudyOpened(study=self._study.digest, public_key=self.side.opening)
        return [*self._tell(opened), *self._go_on()]

    def receive(self, sender: str, message: ToCurator) -> list[Effect]:
        """Consume one message; return effects in the order they must happen."""
        if sender not in self._study.parties:
            raise RemoteProtocolError(f"{sender!r} is not a party of this study")
        if sender in self._missing:
            raise RemoteProtocolError(
                f"{sender!r} was declared missing and is out for the rest of the study: its "
                f"{name_of(message)} is refused"
            )
        if message.study != self._study.digest:
            raise RemoteProtocolError(f"the message of {sender!r} belongs to another study")
        fingerprint = (sender, message_digest(message))
        if fingerprint in self._fingerprints:
            return []
        self._follow(message, sender)
        effects = self._handle(sender, message)
        self._fingerprints.add(fingerprint)
        return effects

    def _handle(self, sender: str, message: ToCurator) -> list[Effect]:
        match message:
            case StepMessage():
                if message.step != self._number:
                    raise RemoteProtocolError(
                        f"{sender!r} speaks of step {message.step}; step {self._number} is open"
                    )
                if message.peer and message.peer not in set(self._study.parties) - {sender}:
                    raise RemoteProtocolError(
                        f"{sender}: message to unknown party {message.peer!r}"
                    )
                moves = self.side.receive(sender, message)
                if self.state is RoleState.IN_STEP and is_contribution(message):
                    self._heard.setdefault(sender, []).append(content_digest(message))
                return self._carry_out(moves)
            case PartyRefused():  # counts whenever it comes: it may be of what was published last
                reason = f"party {sender!r} refused step {message.step}: {message.reason}"
                may_miss = self._study.may_miss
                return self._do_without(sender, reason) if may_miss else self.abort(reason)
            case _:
                assert_never(message)

    def abort(self, reason: str) -> list[Effect]:
        """End the study without a release."""
        reason = reason[:MOST_TEXT]  # a party's own reason may be as long as a message's can be
        aborted = StudyAborted(study=self._study.digest, reason=reason)
        return [*self._tell(aborted), Fail(reason=reason)]

    def declare_missing(self, party: str, *, why: str = "") -> list[Effect]:
        """Go on without a party for the rest of the study, or end a study that cannot.

        A party that was declared missing before changes nothing. `why` says that it withdrew.
        """
        if party not in self._study.parties or not self._is_open:
            raise LocalError(f"{party!r} cannot be declared missing: no step is open for it")
        if party in self._missing:
            return []
        word = why or f"is missing in step {self._number}"
        return self._do_without(party, f"party {party!r} {word}")

    def _do_without(self, party: str, reason: str) -> list[Effect]:
        effects = self._leave(party, reason)
        if self.state is RoleState.ABORTED:
            return effects
        return [*effects, *self._carry_out(self.side.without(party))]

    def _leave(self, party: str, reason: str) -> list[Effect]:
        """Take a party out for the rest of the study, or end a study that cannot do without it."""
        allowed = self._study.may_miss
        if len(self._missing) == allowed:
            also = f"; {', '.join(self.missing)} went missing before" if self._missing else ""
            return self.abort(f"{reason}{also}. The study can do without {allowed} (may_miss)")
        words = (
            f"this party was declared missing in step {self._number} and is out for the rest of "
            f"the study; what it sent stays charged. The curator's reason: {reason}"
        )
        self._missing.add(party)
        out = StudyAborted(study=self._study.digest, reason=words[:MOST_TEXT])
        return [
            Leave(party=party, step=self._number, reason=reason),
            SendToParty(to=party, message=out),
        ]

    def _carry_out(self, moves: Iterable[Move]) -> list[Effect]:
        """Do what the exchange's side asks for; go on to the next step if it is done."""
        effects: list[Effect] = []
        for move in moves:
            match move:
                case Post():
                    effects.append(SendToParty(to=move.to, message=self._message(move)))
                case Notice():
                    effects.append(Warn(words=move.words))
                case Expel():
                    effects += self._expel(move)
                    if self.state is RoleState.ABORTED:
                        return effects
                case BeginAgain():
                    return effects + self._open_step()
                case _:
                    assert_never(move)
        return effects + self._go_on()

    def _expel(self, move: Expel) -> list[Effect]:
        proof = self._message(Post(round=move.round, payload=move.payload))
        facts = {"step": self._number, **move.facts, "left": move.party}
        self.judged.append((facts, proof))
        return [*self._to_all(proof), *self._leave(move.party, move.reason)]

    def _message(self, post: Post) -> StepMessage:
        return StepMessage(
            study=self._study.digest,
            step=self._number,
            round=post.round,
            peer=post.sender,
            payload=post.payload,
        )

    def _go_on(self) -> list[Effect]:
        """Publish the result of an exchange that is done, and open the next step."""
        if not self.side.done:
            return []
        return self._open_step() if self.state is RoleState.SETTING_UP else self._publish()

    def _publish(self) -> list[Effect]:
        step = self._run.step()
        if step is None:
            raise LocalError("no step is open")
        try:
            data = self.side.result()
            result = step.read(self._study, data)
        except RemoteProtocolError as error:
            return self.abort(f"step {self._number} cannot be decoded: {error}")
        self._run.leave_out(self.side.absent)
        there = self._run.step()
        self._run.advance(result)
        contributions = self._committed(there)
        published = ResultPublished(
            study=self._study.digest, step=self._number, result=data, contributions=contributions
        )
        self._history.add_result(self._number, data, contributions)
        if self._study.may_miss and there is not None:
            absent = [name for name in self._study.parties if name not in there.parties]
            self._history.add_missing(self._number, absent)
        self._results.append(data)
        effects = self._tell(published)
        self._number += 1
        return effects + self._open_step()

    def _committed(self, step: Step | None) -> tuple[bytes, ...]:
        """Return the commitments to what the parties of the open step sent, which ends with it."""
        heard, self._heard = self._heard, {}
        if self._committing is None or step is None:
            return ()
        contributions = tuple(
            self._committing.contribution(name, self._number, heard.get(name, ()))
            for name in step.parties
        )
        self._contributions.append(contributions)
        return contributions

    def _open_step(self) -> list[Effect]:
        if self.state is RoleState.SETTING_UP and self._committing is not None:
            self._history.add_tables(self._committing.published)
        self._run.leave_out(self._missing)
        step = self._run.step()
        if step is None:
            return [*self._tell(self.finished), Finish()]
        context = StepAtCurator(
            study=self._study,
            number=self._number,
            step=step,
            history=self._history.digest,
            private_key=self._private_key,
            source_of=self._source_of,
        )
        side = step.exchange.curator(context)
        opened = StepOpened(
            study=self._study.digest,
            step=self._number,
            digest=context.digest,
            opening=side.opening,
            missing=self.missing,
        )
        effects = self._tell(opened)
        self.side = side
        return effects

    def _tell(self, message: ToParty) -> list[Effect]:
        """Move on by a message to all parties that are left."""
        self._follow(message)
        return self._to_all(message)

    def _follow(self, message: Message, sender: str = "") -> None:
        side = self.side if self._is_open else None
        self.state = following(self.state, message, side, who="the curator", sender=sender)

    def _to_all(self, message: ToParty) -> list[Effect]:
        return [SendToParty(to=name, message=message) for name in self.left]
