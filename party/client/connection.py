"""One connection to the curator, with every call in this project's own types.

A refused or failed call raises a WireError whose code names the problem. `party.client.dialer`
makes connections.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, LocalError
from common.study.ids import StudyId
from common.study.messages import DIGEST_BYTES
from common.study.progress import StudySummary
from common.study.signatures import proof_statement
from common.wire import strict, tls
from common.wire.catalogue import PROTOCOL, ErrorCode, WireError
from common.wire.frames import Assembler, NumberedMessage, split
from common.wire.pki.credentials import Credentials
from common.wire.study_states import summary_from_wire
from common.wire.v1 import curator_pb2 as pb
from common.wire.v1.curator_pb2_grpc import CuratorServiceStub

# A dead curator is noticed by gRPC's own pings; these are for one that is alive and stuck.
_CALL_S = 60.0
_MOST_PAGES = 1_000  # of studies that list us
_SUBMIT_S = 3600.0  # the curator may learn a whole structure from the last answer of a step

_OF_OUR_CERTIFICATE = (ErrorCode.CERTIFICATE_EXPIRED, ErrorCode.CERTIFICATE_REVOKED)


class HungUpError(LocalError):
    """We ended the call ourselves, because this node stops; no peer is at fault."""

    def __init__(self) -> None:
        super().__init__("this node is stopping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What the curator says of itself, and the studies that list this party."""

    software: str  # and its version
    time_s: float  # its clock, in seconds since 1970
    studies: list[StudySummary]  # newest first


class Connection:
    """An open connection. Made by `Dialer.dial`."""

    def __init__(
        self,
        channel: grpc.Channel,
        *,
        software: str,
        credentials: Credentials,
        replaced: Callable[[], bool],
        hung_up: Callable[[], bool],
        clock: Callable[[], dt.datetime],
        target: str,
    ) -> None:
        self._target, self._software, self._clock = target, software, clock
        self._credentials, self._replaced, self._hung_up = credentials, replaced, hung_up
        self._stub = CuratorServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        self._stream: grpc.Call | None = None
        self._stopped_listening = False

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            if self._hung_up():
                raise HungUpError from error
            meaning = tls.explain(error, self._credentials, at=self._clock(), target=self._target)
            if meaning.code in _OF_OUR_CERTIFICATE and self._replaced():
                hint = (
                    "our certificate was replaced meanwhile. The next connection shows the new one"
                )
                meaning = WireError(ErrorCode.UNAVAILABLE, hint)
            raise meaning from error
        except ValueError as error:  # what gRPC raises for a call on a channel that was closed
            if not self._hung_up():
                raise
            raise HungUpError from error

    def _call(
        self, method: str, request: Message | Iterator[Message], *, timeout: float = _CALL_S
    ) -> Any:  # noqa: ANN401  # its response
        """Make a call that has one answer; return the answer, checked."""
        with self._explained():
            response = getattr(self._stub, method)(request, timeout=timeout)
        strict.check(response)
        return response

    def enrol(self, party: str, identity: bytes, *, with_ended: bool = True) -> list[StudySummary]:
        """Introduce ourselves; return the studies that list us, newest first."""
        return self.greet(party, identity, with_ended=with_ended).studies

    def greet(self, party: str, identity: bytes, *, with_ended: bool = True) -> Greeting:
        """Introduce ourselves; return who answers, and the studies that list us.

        `with_ended` also lists the studies that ended and that we acknowledged: all that our
        journal must know of. A poll leaves them out.
        """
        request = pb.EnrolRequest(
            protocol=PROTOCOL, software=self._software, party=party, identity=identity,
            with_ended=with_ended,
        )  # fmt: skip
        studies: list[StudySummary] = []
        for _ in range(_MOST_PAGES):
            response = self._call("Enrol", request)
            if response.protocol != PROTOCOL:
                raise WireError(ErrorCode.VERSION_MISMATCH, f"protocol {response.protocol}")
            studies += map(summary_from_wire, response.studies)
            if len(response.studies) < strict.MOST_LISTED:
                time_s = response.time_ms / 1000
                return Greeting(software=response.software, time_s=time_s, studies=studies)
            request.after = studies[-1].study
        raise WireError(ErrorCode.TOO_LARGE, f"more than {len(studies):,} studies")

    def fetch_study(self, study: StudyId) -> str:
        return str(self._call("FetchStudy", pb.FetchStudyRequest(study=study)).document)

    def prove_identity(self, party: str) -> PublicIdentity | None:
        """Return the identity that the curator proves to `party`, ourselves; None without one."""
        challenge = secrets.token_bytes(DIGEST_BYTES)
        try:
            response = self._call("ProveIdentity", pb.ProveIdentityRequest(challenge=challenge))
        except WireError as error:
            if error.code is ErrorCode.OUT_OF_TURN:
                return None
            raise
        statement = proof_statement(challenge=challenge, party=party)
        try:
            identity = PublicIdentity(response.identity)
        except InputError as error:
            raise WireError(ErrorCode.FIELD_INVALID, f"no proof of an identity: {error}") from error
        if not identity.signed(statement, signature=response.signature):
            raise WireError(ErrorCode.FIELD_INVALID, "no proof of an identity: a wrong signature")
        return identity

    def approve(self, study: StudyId, signature: bytes) -> None:
        """Hand in the owner's approval; the last party to do so waits for the study to begin."""
        request = pb.ApproveRequest(study=study, signature=signature)
        self._call("Approve", request, timeout=_SUBMIT_S)

    def decline(self, study: StudyId, reason: str) -> None:
        self._call("Decline", pb.DeclineRequest(study=study, reason=reason))

    def work(self, study: StudyId, *, received: int) -> Iterator[NumberedMessage]:
        """Yield the messages to us after a number until the study is over or `stop_listening`."""
        assembler = Assembler(stored=received)
        request = pb.WorkRequest(study=study, received=received)
        with self._explained():
            stream = self._stub.Work(request)
            self._stream = stream
            try:
                for response in stream:
                    whole = assembler.add(response)
                    if whole is not None:
                        yield whole
            except grpc.RpcError:
                if not self._stopped_listening or self._hung_up():
                    raise
                return
            finally:
                stream.cancel()
        assembler.finish()

    def stop_listening(self) -> None:
        """End `work`, from any thread; a message that is under way comes again when asked for."""
        if self._stream is not None:
            self._stopped_listening = True
            self._stream.cancel()

    def acknowledge(self, study: StudyId, received: int) -> None:
        """Say what is on our disk."""
        self._call("Acknowledge", pb.AcknowledgeRequest(study=study, received=received))

    def submit(self, study: StudyId, messages: Iterable[NumberedMessage]) -> int:
        """Hand in messages, in order; return the newest sequence that is on the curator's disk."""
        requests = (
            pb.SubmitRequest(study=study, frame=frame)
            for message in messages
            for frame in split(message)
        )
        return int(self._call("Submit", requests, timeout=_SUBMIT_S).submitted)

    def fetch_release(self, study: StudyId, *, prior: bool = False) -> Iterator[bytes]:
        """Yield the .zip of a study's release, or of its prior, in pieces, unchecked."""
        with self._explained():
            stream = self._stub.FetchRelease(pb.FetchReleaseRequest(study=study, prior=prior))
            try:
                for response in stream:
                    strict.check(response)
                    yield response.piece
            finally:
                stream.cancel()

    def countersign(self, study: StudyId, signature: bytes) -> None:
        self._call("Countersign", pb.CountersignRequest(study=study, signature=signature))
