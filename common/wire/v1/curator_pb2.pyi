from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StudyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STUDY_STATE_UNSPECIFIED: _ClassVar[StudyState]
    STUDY_STATE_WAITING_FOR_PARTIES: _ClassVar[StudyState]
    STUDY_STATE_RUNNING: _ClassVar[StudyState]
    STUDY_STATE_DONE: _ClassVar[StudyState]
    STUDY_STATE_REFUSED: _ClassVar[StudyState]
    STUDY_STATE_FAILED: _ClassVar[StudyState]
STUDY_STATE_UNSPECIFIED: StudyState
STUDY_STATE_WAITING_FOR_PARTIES: StudyState
STUDY_STATE_RUNNING: StudyState
STUDY_STATE_DONE: StudyState
STUDY_STATE_REFUSED: StudyState
STUDY_STATE_FAILED: StudyState

class Frame(_message.Message):
    __slots__ = ("sequence", "digest", "part", "parts", "payload")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    digest: bytes
    part: int
    parts: int
    payload: bytes
    def __init__(self, sequence: _Optional[int] = ..., digest: _Optional[bytes] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class EnrolRequest(_message.Message):
    __slots__ = ("protocol", "software", "party", "identity", "with_ended", "after")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    WITH_ENDED_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    software: str
    party: str
    identity: bytes
    with_ended: bool
    after: bytes
    def __init__(self, protocol: _Optional[int] = ..., software: _Optional[str] = ..., party: _Optional[str] = ..., identity: _Optional[bytes] = ..., with_ended: _Optional[bool] = ..., after: _Optional[bytes] = ...) -> None: ...

class EnrolResponse(_message.Message):
    __slots__ = ("protocol", "software", "studies", "time_ms")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    STUDIES_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    software: str
    studies: _containers.RepeatedCompositeFieldContainer[StudySummary]
    time_ms: int
    def __init__(self, protocol: _Optional[int] = ..., software: _Optional[str] = ..., studies: _Optional[_Iterable[_Union[StudySummary, _Mapping]]] = ..., time_ms: _Optional[int] = ...) -> None: ...

class StudySummary(_message.Message):
    __slots__ = ("study", "name", "state", "approved", "submitted", "acknowledged", "queued")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    APPROVED_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    name: str
    state: StudyState
    approved: bool
    submitted: int
    acknowledged: int
    queued: int
    def __init__(self, study: _Optional[bytes] = ..., name: _Optional[str] = ..., state: _Optional[_Union[StudyState, str]] = ..., approved: _Optional[bool] = ..., submitted: _Optional[int] = ..., acknowledged: _Optional[int] = ..., queued: _Optional[int] = ...) -> None: ...

class FetchStudyRequest(_message.Message):
    __slots__ = ("study",)
    STUDY_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    def __init__(self, study: _Optional[bytes] = ...) -> None: ...

class FetchStudyResponse(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: str
    def __init__(self, document: _Optional[str] = ...) -> None: ...

class ApproveRequest(_message.Message):
    __slots__ = ("study", "signature")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    signature: bytes
    def __init__(self, study: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class ApproveResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: StudyState
    def __init__(self, state: _Optional[_Union[StudyState, str]] = ...) -> None: ...

class DeclineRequest(_message.Message):
    __slots__ = ("study", "reason")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    reason: str
    def __init__(self, study: _Optional[bytes] = ..., reason: _Optional[str] = ...) -> None: ...

class DeclineResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: StudyState
    def __init__(self, state: _Optional[_Union[StudyState, str]] = ...) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("study", "received")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    received: int
    def __init__(self, study: _Optional[bytes] = ..., received: _Optional[int] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("frame",)
    FRAME_FIELD_NUMBER: _ClassVar[int]
    frame: Frame
    def __init__(self, frame: _Optional[_Union[Frame, _Mapping]] = ...) -> None: ...

class AcknowledgeRequest(_message.Message):
    __slots__ = ("study", "received")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    received: int
    def __init__(self, study: _Optional[bytes] = ..., received: _Optional[int] = ...) -> None: ...

class AcknowledgeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("study", "frame")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    frame: Frame
    def __init__(self, study: _Optional[bytes] = ..., frame: _Optional[_Union[Frame, _Mapping]] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("submitted",)
    SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    submitted: int
    def __init__(self, submitted: _Optional[int] = ...) -> None: ...

class FetchReleaseRequest(_message.Message):
    __slots__ = ("study", "prior")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    prior: bool
    def __init__(self, study: _Optional[bytes] = ..., prior: _Optional[bool] = ...) -> None: ...

class FetchReleaseResponse(_message.Message):
    __slots__ = ("piece",)
    PIECE_FIELD_NUMBER: _ClassVar[int]
    piece: bytes
    def __init__(self, piece: _Optional[bytes] = ...) -> None: ...

class CountersignRequest(_message.Message):
    __slots__ = ("study", "signature")
    STUDY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    study: bytes
    signature: bytes
    def __init__(self, study: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class CountersignResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProveIdentityRequest(_message.Message):
    __slots__ = ("challenge",)
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    challenge: bytes
    def __init__(self, challenge: _Optional[bytes] = ...) -> None: ...

class ProveIdentityResponse(_message.Message):
    __slots__ = ("identity", "signature")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    signature: bytes
    def __init__(self, identity: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...
