from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_MALFORMED: _ClassVar[ErrorCode]
    ERROR_CODE_FIELD_MISSING: _ClassVar[ErrorCode]
    ERROR_CODE_FIELD_UNKNOWN: _ClassVar[ErrorCode]
    ERROR_CODE_FIELD_INVALID: _ClassVar[ErrorCode]
    ERROR_CODE_TOO_LARGE: _ClassVar[ErrorCode]
    ERROR_CODE_OUT_OF_ORDER: _ClassVar[ErrorCode]
    ERROR_CODE_SEQUENCE_REUSED: _ClassVar[ErrorCode]
    ERROR_CODE_VERSION_MISMATCH: _ClassVar[ErrorCode]
    ERROR_CODE_CERTIFICATE_MISSING: _ClassVar[ErrorCode]
    ERROR_CODE_CERTIFICATE_UNTRUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_CERTIFICATE_EXPIRED: _ClassVar[ErrorCode]
    ERROR_CODE_CERTIFICATE_REVOKED: _ClassVar[ErrorCode]
    ERROR_CODE_NAME_MISMATCH: _ClassVar[ErrorCode]
    ERROR_CODE_CURATOR_UNTRUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_STUDY_UNKNOWN: _ClassVar[ErrorCode]
    ERROR_CODE_STUDY_CLOSED: _ClassVar[ErrorCode]
    ERROR_CODE_APPROVAL_INVALID: _ClassVar[ErrorCode]
    ERROR_CODE_OUT_OF_TURN: _ClassVar[ErrorCode]
    ERROR_CODE_REFUSED: _ClassVar[ErrorCode]
    ERROR_CODE_UNAVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_INTERNAL: _ClassVar[ErrorCode]
    ERROR_CODE_TOO_MANY_CALLS: _ClassVar[ErrorCode]
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_MALFORMED: ErrorCode
ERROR_CODE_FIELD_MISSING: ErrorCode
ERROR_CODE_FIELD_UNKNOWN: ErrorCode
ERROR_CODE_FIELD_INVALID: ErrorCode
ERROR_CODE_TOO_LARGE: ErrorCode
ERROR_CODE_OUT_OF_ORDER: ErrorCode
ERROR_CODE_SEQUENCE_REUSED: ErrorCode
ERROR_CODE_VERSION_MISMATCH: ErrorCode
ERROR_CODE_CERTIFICATE_MISSING: ErrorCode
ERROR_CODE_CERTIFICATE_UNTRUSTED: ErrorCode
ERROR_CODE_CERTIFICATE_EXPIRED: ErrorCode
ERROR_CODE_CERTIFICATE_REVOKED: ErrorCode
ERROR_CODE_NAME_MISMATCH: ErrorCode
ERROR_CODE_CURATOR_UNTRUSTED: ErrorCode
ERROR_CODE_STUDY_UNKNOWN: ErrorCode
ERROR_CODE_STUDY_CLOSED: ErrorCode
ERROR_CODE_APPROVAL_INVALID: ErrorCode
ERROR_CODE_OUT_OF_TURN: ErrorCode
ERROR_CODE_REFUSED: ErrorCode
ERROR_CODE_UNAVAILABLE: ErrorCode
ERROR_CODE_INTERNAL: ErrorCode
ERROR_CODE_TOO_MANY_CALLS: ErrorCode

class ErrorDetail(_message.Message):
    __slots__ = ("code", "protocol", "major", "minor")
    CODE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    protocol: int
    major: int
    minor: int
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., protocol: _Optional[int] = ..., major: _Optional[int] = ..., minor: _Optional[int] = ...) -> None: ...
