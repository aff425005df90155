from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ToParty(_message.Message):
    __slots__ = ("encoding", "study", "study_opened", "step_opened", "envelope_relayed", "result_published", "study_finished", "study_aborted", "keys_relayed", "list_published", "signatures_relayed", "box_disputed", "box_judged", "step_message")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    STUDY_FIELD_NUMBER: _ClassVar[int]
    STUDY_OPENED_FIELD_NUMBER: _ClassVar[int]
    STEP_OPENED_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_RELAYED_FIELD_NUMBER: _ClassVar[int]
    RESULT_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    STUDY_FINISHED_FIELD_NUMBER: _ClassVar[int]
    STUDY_ABORTED_FIELD_NUMBER: _ClassVar[int]
    KEYS_RELAYED_FIELD_NUMBER: _ClassVar[int]
    LIST_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_RELAYED_FIELD_NUMBER: _ClassVar[int]
    BOX_DISPUTED_FIELD_NUMBER: _ClassVar[int]
    BOX_JUDGED_FIELD_NUMBER: _ClassVar[int]
    STEP_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    encoding: int
    study: bytes
    study_opened: StudyOpened
    step_opened: StepOpened
    envelope_relayed: EnvelopeRelayed
    result_published: ResultPublished
    study_finished: StudyFinished
    study_aborted: StudyAborted
    keys_relayed: KeysRelayed
    list_published: ListPublished
    signatures_relayed: SignaturesRelayed
    box_disputed: BoxDisputed
    box_judged: BoxJudged
    step_message: StepMessage
    def __init__(self, encoding: _Optional[int] = ..., study: _Optional[bytes] = ..., study_opened: _Optional[_Union[StudyOpened, _Mapping]] = ..., step_opened: _Optional[_Union[StepOpened, _Mapping]] = ..., envelope_relayed: _Optional[_Union[EnvelopeRelayed, _Mapping]] = ..., result_published: _Optional[_Union[ResultPublished, _Mapping]] = ..., study_finished: _Optional[_Union[StudyFinished, _Mapping]] = ..., study_aborted: _Optional[_Union[StudyAborted, _Mapping]] = ..., keys_relayed: _Optional[_Union[KeysRelayed, _Mapping]] = ..., list_published: _Optional[_Union[ListPublished, _Mapping]] = ..., signatures_relayed: _Optional[_Union[SignaturesRelayed, _Mapping]] = ..., box_disputed: _Optional[_Union[BoxDisputed, _Mapping]] = ..., box_judged: _Optional[_Union[BoxJudged, _Mapping]] = ..., step_message: _Optional[_Union[StepMessage, _Mapping]] = ...) -> None: ...

class ToCurator(_message.Message):
    __slots__ = ("encoding", "study", "envelope_posted", "share_submitted", "choice_submitted", "party_refused", "keys_dealt", "list_signed", "masks_revealed", "box_refused", "box_opened", "step_message")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    STUDY_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_POSTED_FIELD_NUMBER: _ClassVar[int]
    SHARE_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    CHOICE_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    PARTY_REFUSED_FIELD_NUMBER: _ClassVar[int]
    KEYS_DEALT_FIELD_NUMBER: _ClassVar[int]
    LIST_SIGNED_FIELD_NUMBER: _ClassVar[int]
    MASKS_REVEALED_FIELD_NUMBER: _ClassVar[int]
    BOX_REFUSED_FIELD_NUMBER: _ClassVar[int]
    BOX_OPENED_FIELD_NUMBER: _ClassVar[int]
    STEP_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    encoding: int
    study: bytes
    envelope_posted: EnvelopePosted
    share_submitted: ShareSubmitted
    choice_submitted: ChoiceSubmitted
    party_refused: PartyRefused
    keys_dealt: KeysDealt
    list_signed: ListSigned
    masks_revealed: MasksRevealed
    box_refused: BoxRefused
    box_opened: BoxOpened
    step_message: StepMessage
    def __init__(self, encoding: _Optional[int] = ..., study: _Optional[bytes] = ..., envelope_posted: _Optional[_Union[EnvelopePosted, _Mapping]] = ..., share_submitted: _Optional[_Union[ShareSubmitted, _Mapping]] = ..., choice_submitted: _Optional[_Union[ChoiceSubmitted, _Mapping]] = ..., party_refused: _Optional[_Union[PartyRefused, _Mapping]] = ..., keys_dealt: _Optional[_Union[KeysDealt, _Mapping]] = ..., list_signed: _Optional[_Union[ListSigned, _Mapping]] = ..., masks_revealed: _Optional[_Union[MasksRevealed, _Mapping]] = ..., box_refused: _Optional[_Union[BoxRefused, _Mapping]] = ..., box_opened: _Optional[_Union[BoxOpened, _Mapping]] = ..., step_message: _Optional[_Union[StepMessage, _Mapping]] = ...) -> None: ...

class StepMessage(_message.Message):
    __slots__ = ("step", "round", "peer", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    round: str
    peer: str
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., round: _Optional[str] = ..., peer: _Optional[str] = ..., payload: _Optional[bytes] = ...) -> None: ...

class StudyOpened(_message.Message):
    __slots__ = ("public_key",)
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    public_key: bytes
    def __init__(self, public_key: _Optional[bytes] = ...) -> None: ...

class StepOpened(_message.Message):
    __slots__ = ("step", "digest", "opening", "missing")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    step: int
    digest: bytes
    opening: bytes
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[int] = ..., digest: _Optional[bytes] = ..., opening: _Optional[bytes] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class EnvelopeRelayed(_message.Message):
    __slots__ = ("step", "sender", "envelope")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    step: int
    sender: str
    envelope: bytes
    def __init__(self, step: _Optional[int] = ..., sender: _Optional[str] = ..., envelope: _Optional[bytes] = ...) -> None: ...

class KeysRelayed(_message.Message):
    __slots__ = ("step", "missing", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    missing: _containers.RepeatedScalarFieldContainer[str]
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., missing: _Optional[_Iterable[str]] = ..., payload: _Optional[bytes] = ...) -> None: ...

class BoxDisputed(_message.Message):
    __slots__ = ("step", "receiver", "signature")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    step: int
    receiver: str
    signature: bytes
    def __init__(self, step: _Optional[int] = ..., receiver: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class BoxJudged(_message.Message):
    __slots__ = ("step", "dealer", "receiver", "evidence", "signature", "secret")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DEALER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    step: int
    dealer: str
    receiver: str
    evidence: bytes
    signature: bytes
    secret: bytes
    def __init__(self, step: _Optional[int] = ..., dealer: _Optional[str] = ..., receiver: _Optional[str] = ..., evidence: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., secret: _Optional[bytes] = ...) -> None: ...

class ListPublished(_message.Message):
    __slots__ = ("step", "missing")
    STEP_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    step: int
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[int] = ..., missing: _Optional[_Iterable[str]] = ...) -> None: ...

class SignaturesRelayed(_message.Message):
    __slots__ = ("step", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class ResultPublished(_message.Message):
    __slots__ = ("step", "result", "contributions")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    step: int
    result: bytes
    contributions: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, step: _Optional[int] = ..., result: _Optional[bytes] = ..., contributions: _Optional[_Iterable[bytes]] = ...) -> None: ...

class StudyFinished(_message.Message):
    __slots__ = ("missing",)
    MISSING_FIELD_NUMBER: _ClassVar[int]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, missing: _Optional[_Iterable[str]] = ...) -> None: ...

class StudyAborted(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class EnvelopePosted(_message.Message):
    __slots__ = ("step", "recipient", "envelope")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    step: int
    recipient: str
    envelope: bytes
    def __init__(self, step: _Optional[int] = ..., recipient: _Optional[str] = ..., envelope: _Optional[bytes] = ...) -> None: ...

class ShareSubmitted(_message.Message):
    __slots__ = ("step", "chunk", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    chunk: int
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., chunk: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class KeysDealt(_message.Message):
    __slots__ = ("step", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class BoxRefused(_message.Message):
    __slots__ = ("step", "dealer", "signature")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DEALER_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    step: int
    dealer: str
    signature: bytes
    def __init__(self, step: _Optional[int] = ..., dealer: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class BoxOpened(_message.Message):
    __slots__ = ("step", "receiver", "secret")
    STEP_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    step: int
    receiver: str
    secret: bytes
    def __init__(self, step: _Optional[int] = ..., receiver: _Optional[str] = ..., secret: _Optional[bytes] = ...) -> None: ...

class ListSigned(_message.Message):
    __slots__ = ("step", "signature")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    step: int
    signature: bytes
    def __init__(self, step: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class MasksRevealed(_message.Message):
    __slots__ = ("step", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class ChoiceSubmitted(_message.Message):
    __slots__ = ("step", "payload")
    STEP_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    step: int
    payload: bytes
    def __init__(self, step: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class PartyRefused(_message.Message):
    __slots__ = ("step", "reason")
    STEP_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    step: int
    reason: str
    def __init__(self, step: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
