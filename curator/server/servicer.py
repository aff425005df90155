"""The calls of a party: each is given to one function, and its answer encoded.

The certificate says which party calls. `curator.server.front` surrounds every method: it admits the
call, decodes its requests, and turns what is raised here into a refusal.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import cast

import grpc

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.files import pieces_of, read
from common.release.archive import add_signature, zip_pieces
from common.release.contents import FolderContents
from common.release.manifest import MANIFEST, Signature, SignerRole
from common.study.ids import StudyId, short_id
from common.study.signatures import proof_statement
from common.wire import strict
from common.wire.catalogue import PROTOCOL, ErrorCode, WireError
from common.wire.frames import Assembler, split
from common.wire.pki.peers import Peer, Revocations, identify
from common.wire.study_states import TO_WIRE, summary_to_wire
from common.wire.v1 import curator_pb2 as pb
from curator.server.admission import Admission, AdmittedCall
from curator.session import CuratorSession
from curator.store.records import StudyState
from curator.studies import Studies

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 20.0  # a party that vanished is noticed, at the latest, after so long


class CuratorServicer:
    """What a party asks of the curator."""

    def __init__(
        self,
        studies: Studies,
        *,
        revocations: Revocations,
        clock: Callable[[], dt.datetime],
        software: str,
        admission: Admission,
        identity: Identity | None,
    ) -> None:
        self._studies, self._revocations, self._admission = studies, revocations, admission
        self._clock, self._software, self._identity = clock, software, identity

    def Enrol(self, request: pb.EnrolRequest, call: AdmittedCall) -> pb.EnrolResponse:
        """Introduce a party; return its studies."""
        peer = call.peer
        if request.protocol != PROTOCOL:
            detail = (
                f"{peer.name!r} runs {request.software} and speaks protocol {request.protocol}; "
                f"this curator runs {self._software} and speaks protocol {PROTOCOL}"
            )
            raise WireError(ErrorCode.VERSION_MISMATCH, detail)
        peer.require_name(request.party)
        self._studies.enrol(peer.name, identity=request.identity, software=request.software)
        after = StudyId(request.after) if request.HasField("after") else None
        if after is not None and peer.name not in self._studies.store.members(after):
            raise WireError(ErrorCode.STUDY_UNKNOWN, f"a list after {short_id(after)}")
        listed = self._studies.summaries(peer.name, with_ended=request.with_ended, after=after)
        return pb.EnrolResponse(
            protocol=PROTOCOL,
            software=self._software,
            studies=map(summary_to_wire, listed),
            time_ms=round(self._clock().timestamp() * 1000),
        )

    def FetchStudy(
        self, request: pb.FetchStudyRequest, call: AdmittedCall
    ) -> pb.FetchStudyResponse:
        session = self._session(request.study, call)
        return pb.FetchStudyResponse(document=self._studies.store.document(session.digest))

    def Approve(self, request: pb.ApproveRequest, call: AdmittedCall) -> pb.ApproveResponse:
        session, party = self._session(request.study, call), call.peer.name
        state = session.approve(party, request.signature)
        logger.info("party %s approved study %s", party, short_id(session.digest))
        return pb.ApproveResponse(state=TO_WIRE[state])

    def Decline(self, request: pb.DeclineRequest, call: AdmittedCall) -> pb.DeclineResponse:
        session = self._session(request.study, call)
        state = session.decline(call.peer.name, reason=request.reason)
        return pb.DeclineResponse(state=TO_WIRE[state])

    def Work(self, request: pb.WorkRequest, call: AdmittedCall) -> Iterator[pb.WorkResponse]:
        """Stream the messages to this party until the study is over."""
        session, party = self._session(request.study, call), call.peer.name
        self._acknowledge(session, party, request.received)
        # A party waits once for a study: a newer stream, after a reconnect, ends the older one.
        self._admission.take_over(call, session.digest)
        call.context.add_callback(lambda: self._studies.wake(session.digest, [party]))
        with self._studies.presence.listening(party):
            session.called(party)  # again: an older stream may have ended meanwhile
            yield from self._messages(session, request.received, call)

    def _messages(
        self, session: CuratorSession, after: int, call: AdmittedCall
    ) -> Iterator[pb.WorkResponse]:
        while True:
            queued = self._studies.next_message(
                session,
                call.peer.name,
                after=after,
                cancelled=lambda: not call.context.is_active(),
                look_every_s=_LOOK_EVERY_S,
            )
            if queued is None:
                return
            self.identify(call.context)  # may have been revoked since
            for frame in split(queued):
                yield pb.WorkResponse(frame=frame)
            after = queued.sequence

    def Acknowledge(
        self, request: pb.AcknowledgeRequest, call: AdmittedCall
    ) -> pb.AcknowledgeResponse:
        """Drop what the party has on disk."""
        self._acknowledge(self._session(request.study, call), call.peer.name, request.received)
        return pb.AcknowledgeResponse()

    def _acknowledge(self, session: CuratorSession, party: str, newest: int) -> None:
        store, digest = self._studies.store, session.digest
        if newest > store.outbox.newest(digest, party):
            raise WireError(
                ErrorCode.OUT_OF_ORDER,
                f"{party!r} has message {newest}, never sent from here: if this folder is an older "
                f"copy, `parley curator study abort {short_id(digest)}`",
            )
        store.acknowledge(digest, party, newest)

    def Submit(self, requests: Iterator[pb.SubmitRequest], call: AdmittedCall) -> pb.SubmitResponse:
        """Take messages of this party; each is stored before the next is looked at."""
        first = next(requests, None)
        if first is None:
            raise WireError(ErrorCode.FIELD_MISSING, "an empty submission")
        session = self._session(first.study, call)
        # A party submits once at a time for a study, as it waits once for work.
        self._admission.take_over(call, session.digest)
        party, inbox = call.peer.name, self._studies.store.inbox
        assembler = Assembler(stored=inbox.newest(session.digest, party))
        for request in chain([first], requests):
            if request.study != session.digest:
                raise WireError(ErrorCode.FIELD_INVALID, "two studies in one call")
            if request.frame.sequence == assembler.latest:
                session.require_running()
            self._admission.hold(call, len(request.frame.payload))
            whole = assembler.add(request)
            if whole is not None:
                session.receive(party, whole.sequence, whole.body)
                call.unfinished_bytes = 0
        assembler.finish()
        return pb.SubmitResponse(submitted=inbox.newest(session.digest, party))

    def FetchRelease(
        self, request: pb.FetchReleaseRequest, call: AdmittedCall
    ) -> Iterator[pb.FetchReleaseResponse]:
        """Stream the release of a study that is done, or the prior of any."""
        session = self._session(request.study, call)
        if request.prior:
            prior = self._studies.prior(session.study)
            yield from self._pieces(pieces_of(prior, most=strict.MOST_FRAME_BYTES), call)
            return
        record = session.record
        if record.state is not StudyState.DONE:
            raise WireError(ErrorCode.OUT_OF_TURN, f"no release yet: {record.state.value}")
        folder = record.folder
        if folder is None:
            raise WireError(ErrorCode.INTERNAL, f"the release is not in {record.place} any more")
        yield from self._pieces(zip_pieces(FolderContents(folder)), call)
        logger.info("party %s has the release of %s", call.peer.name, short_id(session.digest))

    def _pieces(
        self, pieces: Iterator[bytes], call: AdmittedCall
    ) -> Iterator[pb.FetchReleaseResponse]:
        for piece in pieces:
            self.identify(call.context)  # may have been revoked since
            for start in range(0, len(piece), strict.MOST_FRAME_BYTES):
                part = piece[start : start + strict.MOST_FRAME_BYTES]
                with call.in_time():
                    yield pb.FetchReleaseResponse(piece=part)

    def Countersign(
        self, request: pb.CountersignRequest, call: AdmittedCall
    ) -> pb.CountersignResponse:
        session, party = self._session(request.study, call), call.peer.name
        folder = session.record.folder
        if folder is None:
            raise WireError(ErrorCode.OUT_OF_TURN, f"no release here: {session.record.state.value}")
        signature = Signature(
            role=SignerRole.PARTY,
            name=party,
            identity=session.identity_of(party),
            signature=request.signature,
        )
        try:
            signature.require(read(folder / MANIFEST))
        except InputError as error:
            raise WireError(ErrorCode.APPROVAL_INVALID, str(error)) from None
        add_signature(folder, signature)
        logger.info("party %s countersigned %s", party, short_id(session.digest))
        return pb.CountersignResponse()

    def ProveIdentity(
        self, request: pb.ProveIdentityRequest, call: AdmittedCall
    ) -> pb.ProveIdentityResponse:
        """Sign a party's challenge; OUT_OF_TURN if this curator has no identity."""
        if self._identity is None:
            raise WireError(ErrorCode.OUT_OF_TURN, "this curator has no identity")
        statement = proof_statement(challenge=request.challenge, party=call.peer.name)
        return pb.ProveIdentityResponse(
            identity=self._identity.public.encoded, signature=self._identity.sign(statement)
        )

    def identify(self, context: grpc.ServicerContext) -> Peer:
        """Return the party that makes a call; WireError for a caller that may not."""
        # gRPC's stubs say that a property has one value; it has a list of them.
        properties = cast(Mapping[str, Iterable[bytes]], context.auth_context())
        peer = identify(properties, self._revocations, at=self._clock())
        self._studies.called(peer.name)
        return peer

    def _session(self, study: bytes, call: AdmittedCall) -> CuratorSession:
        return self._studies.session(StudyId(study), call.peer.name)
