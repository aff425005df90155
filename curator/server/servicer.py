"""The calls of a party: each is identified, decoded, given to one function, and encoded.

Who calls is what the certificate says. A refused call carries a code of the catalogue and nothing
else; the detail goes to the log.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar, cast

import grpc

from common.bundle.archive import zip_pieces
from common.bundle.contents import FolderContents
from common.wire import strict
from common.wire.catalogue import ErrorCode, WireError, classify
from common.wire.frames import Assembler, split
from common.wire.peers import Call, Peer, Revocations, identify
from common.wire.v1 import curator_pb2 as pb
from common.wire.v1.curator_pb2_grpc import CuratorServiceServicer
from curator.metrics import CallCounter
from curator.node import StudyNode
from curator.presence import Presence
from curator.records import StudyState
from curator.releases import release_folder
from curator.studies import Studies

logger = logging.getLogger(__name__)

PROTOCOL = 1
_MOST_RELEASES = 4  # sent at a time: each holds a thread for as long as the party takes
_PATIENCE_S = 20.0  # a party that vanished is noticed, at the latest, after so long
_STATES = {
    StudyState.WAITING: pb.STUDY_STATE_WAITING_FOR_PARTIES,
    StudyState.RUNNING: pb.STUDY_STATE_RUNNING,
    StudyState.PUBLISHING: pb.STUDY_STATE_RUNNING,
    StudyState.DONE: pb.STUDY_STATE_DONE,
    StudyState.REFUSED: pb.STUDY_STATE_REFUSED,
    StudyState.FAILED: pb.STUDY_STATE_FAILED,
}
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _refusing(method: _Method) -> _Method:
    """The boundary: whatever goes wrong in a call is logged, and refused by its code."""

    @functools.wraps(method)
    def call(self: CuratorServicer, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401  # as gRPC has it
        try:
            response = method(self, request, context)
        except Exception as error:  # noqa: BLE001  # logged, and the call is aborted
            self.refuse(method.__name__, error, context)
        self.calls.add(method.__name__, "OK")
        return response

    return cast(_Method, call)


def _refusing_stream(method: _Method) -> _Method:
    """The same for a call that is answered by a stream."""

    @functools.wraps(method)
    def call(self: CuratorServicer, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: ANN401  # as gRPC has it
        try:
            yield from method(self, request, context)
        except Exception as error:  # noqa: BLE001  # logged, and the call is aborted
            self.refuse(method.__name__, error, context)
        self.calls.add(method.__name__, "OK")

    return cast(_Method, call)


class CuratorServicer(CuratorServiceServicer):
    """What a party asks of the curator.

    Args:
        studies: all there are.
        revocations: the certificates that open no door any more.
        clock: the time.
        software: what to tell the parties we are.
        most_streams: how many parties may wait for work at a time; each holds a thread.
    """

    def __init__(
        self,
        studies: Studies,
        *,
        revocations: Revocations,
        clock: Callable[[], dt.datetime],
        software: str,
        most_streams: int,
    ) -> None:
        self._studies = studies
        self._revocations = revocations
        self._clock = clock
        self._software = software
        self._most_streams = most_streams
        self._streams: dict[tuple[bytes, str], object] = {}
        self._releases = threading.Semaphore(_MOST_RELEASES)
        self.calls = CallCounter()
        self.presence = Presence()

    def refuse(self, method: str, error: Exception, context: grpc.ServicerContext) -> NoReturn:
        """Log what went wrong, and end the call with its code and nothing else."""
        refusal = classify(error)
        defect = refusal.code is ErrorCode.INTERNAL
        logger.log(
            logging.ERROR if defect else logging.WARNING,
            "%s refused: %s (%s)", method, refusal.code.name, refusal.detail,
            exc_info=error if defect else None,
        )  # fmt: skip
        self.calls.add(method, refusal.code.name)
        context.set_trailing_metadata(refusal.trailer())
        context.abort(refusal.entry.status, refusal.entry.public)

    @_refusing
    def Enrol(self, request: pb.EnrolRequest, context: grpc.ServicerContext) -> pb.EnrolResponse:
        """Introductions, and the studies of this party."""
        strict.check(request)
        peer = self._peer(context)
        if request.protocol != PROTOCOL:
            raise WireError(ErrorCode.VERSION_MISMATCH, f"protocol {request.protocol}")
        peer.require_name(request.party)
        self._studies.store.enrol(
            peer.name,
            identity=request.identity,
            software=request.software,
            at=self._studies.around.now(),
        )
        studies = [self._summary(node, peer.name) for node in self._studies.of(peer.name)]
        return pb.EnrolResponse(
            protocol=PROTOCOL,
            software=self._software,
            studies=studies[:1000],
            time_ms=round(self._clock().timestamp() * 1000),
        )

    def _summary(self, node: StudyNode, party: str) -> pb.StudySummary:
        store, digest = self._studies.store, node.study.digest
        return pb.StudySummary(
            study=digest,
            name=node.study.name,
            state=_STATES[node.record.state],
            approved=party in store.approvals(digest),
            submitted=store.newest_incoming(digest, party),
            acknowledged=store.acknowledged(digest, party),
            queued=store.newest_queued(digest, party),
        )

    @_refusing
    def FetchStudy(
        self, request: pb.FetchStudyRequest, context: grpc.ServicerContext
    ) -> pb.FetchStudyResponse:
        """The text of a study."""
        node, _ = self._node(request, context)
        return pb.FetchStudyResponse(document=self._studies.store.document(node.study.digest))

    @_refusing
    def Approve(
        self, request: pb.ApproveRequest, context: grpc.ServicerContext
    ) -> pb.ApproveResponse:
        """The owner's signature under a study."""
        node, peer = self._node(request, context)
        state = node.approve(peer.name, request.signature)
        logger.info("party %s approved study %s", peer.name, request.study.hex()[:16])
        return pb.ApproveResponse(state=_STATES[state])

    @_refusing
    def Decline(
        self, request: pb.DeclineRequest, context: grpc.ServicerContext
    ) -> pb.DeclineResponse:
        """The owner does not approve."""
        node, peer = self._node(request, context)
        return pb.DeclineResponse(state=_STATES[node.decline(peer.name, request.reason)])

    @_refusing_stream
    def Work(
        self, request: pb.WorkRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WorkResponse]:
        """Messages to this party until the study is over."""
        node, peer = self._node(request, context)
        self._acknowledge(node, peer.name, request.received)
        place, me = (node.study.digest, peer.name), object()
        if len(self._streams) >= self._most_streams and place not in self._streams:
            raise WireError(ErrorCode.UNAVAILABLE, "too many parties are waiting for work")
        # A party waits once for a study: a newer stream, after a reconnect, ends the older one.
        self._streams[place] = me
        wake = functools.partial(self._studies.wake, node.study.digest, [peer.name])
        wake()
        context.add_callback(wake)

        def gone() -> bool:
            return not context.is_active() or self._streams.get(place) is not me

        try:
            with self.presence.listening(peer.name):
                yield from self._messages(node, peer, request.received, gone, context)
        finally:
            if self._streams.get(place) is me:
                del self._streams[place]

    def _messages(
        self,
        node: StudyNode,
        peer: Peer,
        after: int,
        gone: Callable[[], bool],
        context: grpc.ServicerContext,
    ) -> Iterator[pb.WorkResponse]:
        while True:
            queued = self._studies.next_message(
                node, peer.name, after=after, gone=gone, patience_s=_PATIENCE_S
            )
            if queued is None:
                return
            self._peer(context)  # may have been revoked since
            for frame in split(queued.body, sequence=queued.sequence):
                yield pb.WorkResponse(frame=frame)
            after = queued.sequence

    @_refusing
    def Acknowledge(
        self, request: pb.AcknowledgeRequest, context: grpc.ServicerContext
    ) -> pb.AcknowledgeResponse:
        """What the party has on disk need not be kept for it."""
        node, peer = self._node(request, context)
        self._acknowledge(node, peer.name, request.received)
        return pb.AcknowledgeResponse()

    def _acknowledge(self, node: StudyNode, party: str, newest: int) -> None:
        store, digest = self._studies.store, node.study.digest
        if newest > store.newest_queued(digest, party):
            raise WireError(
                ErrorCode.OUT_OF_ORDER,
                f"{party!r} has message {newest}, never sent from here: if this folder is an older "
                f"copy, `parley curator study abort {digest.hex()[:16]}`",
            )
        store.acknowledge(digest, party, newest)

    @_refusing
    def Submit(
        self, requests: Iterator[pb.SubmitRequest], context: grpc.ServicerContext
    ) -> pb.SubmitResponse:
        """Messages of this party, each stored before the next is looked at."""
        peer = self._peer(context)
        node: StudyNode | None = None
        assembler: Assembler | None = None
        for request in requests:
            if node is None or assembler is None:
                node = self._studies.node(request.study, peer.name)
                stored = self._studies.store.newest_incoming(request.study, peer.name)
                assembler = Assembler(stored=stored)
            if request.study != node.study.digest:
                raise WireError(ErrorCode.FIELD_INVALID, "two studies in one call")
            whole = assembler.add(request)
            if whole is not None:
                node.receive(peer.name, whole.sequence, whole.data)
        if node is None or assembler is None:
            raise WireError(ErrorCode.FIELD_MISSING, "an empty submission")
        assembler.finish()
        stored = self._studies.store.newest_incoming(node.study.digest, peer.name)
        return pb.SubmitResponse(submitted=stored)

    @_refusing
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusResponse:
        """How a study is getting on."""
        node, _ = self._node(request, context)
        record = node.record
        return pb.StatusResponse(
            state=_STATES[record.state],
            step=record.step,
            cause=record.cause[: strict.LIMITS["StatusResponse.cause"].stop - 1],
            waiting_for=node.waiting_for,
        )

    @_refusing_stream
    def FetchRelease(
        self, request: pb.FetchReleaseRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.FetchReleaseResponse]:
        """The release of a study that is done, piece by piece."""
        node, peer = self._node(request, context)
        record = node.record
        if record.state is not StudyState.DONE:
            raise WireError(ErrorCode.OUT_OF_TURN, f"no release yet: {record.state.value}")
        folder = release_folder(record.state, record.place)
        if folder is None:
            raise WireError(ErrorCode.INTERNAL, f"the release is not in {record.place} any more")
        if not self._releases.acquire(blocking=False):
            raise WireError(ErrorCode.UNAVAILABLE, "too many releases are being sent")
        try:
            for piece in zip_pieces(FolderContents(folder)):
                self._peer(context)  # may have been revoked since
                for start in range(0, len(piece), strict.MOST_FRAME_BYTES):
                    part = piece[start : start + strict.MOST_FRAME_BYTES]
                    yield pb.FetchReleaseResponse(piece=part)
        finally:
            self._releases.release()
        logger.info("party %s has the release of %s", peer.name, request.study.hex()[:16])

    def _peer(self, context: grpc.ServicerContext) -> Peer:
        # gRPC's stubs say that a property has one value; it has a list of them.
        now = self._clock()
        peer = identify(cast(Call, context), self._revocations, at=now)
        self.presence.saw(peer.name, now)
        return peer

    def _node(
        self,
        request: pb.FetchStudyRequest
        | pb.ApproveRequest
        | pb.DeclineRequest
        | pb.WorkRequest
        | pb.AcknowledgeRequest
        | pb.StatusRequest
        | pb.FetchReleaseRequest,
        context: grpc.ServicerContext,
    ) -> tuple[StudyNode, Peer]:
        strict.check(request)
        peer = self._peer(context)
        return self._studies.node(request.study, peer.name), peer
