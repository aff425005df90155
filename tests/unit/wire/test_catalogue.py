"""Every code has its public words; the private detail stays at home."""

import grpc
import pytest

from common.errors import InputError, PolicyError, RemoteProtocolError
from common.wire.catalogue import TRAILER, ErrorCode, WireError, classify, received
from common.wire.v1 import errors_pb2


def test_the_codes_are_those_of_the_contract():
    contract = dict(errors_pb2.ErrorCode.items())
    assert contract.pop("ERROR_CODE_UNSPECIFIED") == 0
    assert {f"ERROR_CODE_{code.name}": code.value for code in ErrorCode} == contract


@pytest.mark.parametrize("code", ErrorCode)
def test_every_entry_says_what_happened_and_what_to_do(code):
    assert code.public.endswith(".")
    assert code.remedy.endswith((".", "?"))
    assert code.status is not grpc.StatusCode.OK


@pytest.mark.parametrize("code", ErrorCode)
def test_the_code_travels_and_the_detail_does_not(code):
    error = WireError(code, "rows of ward 7")
    assert "rows of ward 7" in str(error)
    assert b"ward" not in error.trailer()[0][1]
    assert "ward" not in code.public + code.remedy
    assert received(code.status, error.trailer()).code is code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WireError(ErrorCode.TOO_LARGE), ErrorCode.TOO_LARGE),
        (PolicyError("over the cap"), ErrorCode.REFUSED),
        (RemoteProtocolError("not now"), ErrorCode.OUT_OF_TURN),
        (InputError("our own file"), ErrorCode.INTERNAL),
        (ZeroDivisionError("defect"), ErrorCode.INTERNAL),
    ],
)
def test_any_exception_becomes_an_error_of_the_catalogue(error, code):
    assert classify(error).code is code


@pytest.mark.parametrize(
    ("status", "metadata", "code"),
    [
        (grpc.StatusCode.UNAVAILABLE, None, ErrorCode.UNAVAILABLE),
        (grpc.StatusCode.UNIMPLEMENTED, (), ErrorCode.VERSION_MISMATCH),
        (grpc.StatusCode.UNKNOWN, (("other", "x"),), ErrorCode.INTERNAL),
        (grpc.StatusCode.UNKNOWN, ((TRAILER, b"\xff"),), ErrorCode.INTERNAL),
        (grpc.StatusCode.UNKNOWN, ((TRAILER, b"\x08\x63"),), ErrorCode.INTERNAL),  # code 99
        (grpc.StatusCode.UNKNOWN, ((TRAILER, b""),), ErrorCode.INTERNAL),
    ],
)
def test_a_refusal_without_a_known_code_is_still_an_error_with_a_name(status, metadata, code):
    assert received(status, metadata).code is code


def test_numbers_of_the_version_travel_where_it_may_be_the_cause(monkeypatch):
    monkeypatch.setattr("common.wire.catalogue.versions", lambda: {"parley": "7.3.1"})
    trailer = WireError(ErrorCode.VERSION_MISMATCH).trailer()
    monkeypatch.setattr("common.wire.catalogue.versions", lambda: {"parley": "7.2.0"})
    told = str(received(ErrorCode.VERSION_MISMATCH.status, trailer))
    assert "the other side, which runs parley 7.3 and speaks protocol 1" in told
    assert "this side runs parley 7.2.0 and speaks protocol 1" in told
    assert "Run the same minor version of parley on both sides, the later one." in told
    assert len(WireError(ErrorCode.REFUSED).trailer()[0][1]) == 2, "a code, and no more"
