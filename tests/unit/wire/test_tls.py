"""What a failed connection is called: the address, and what is in the way, in words."""

import datetime as dt

import grpc
import pytest

from common.wire import tls
from common.wire.catalogue import ErrorCode, WireError


class Failure(grpc.RpcError):
    """What gRPC raises, with what it says of the cause."""

    def __init__(self, details, trailer=(), status=grpc.StatusCode.UNAVAILABLE):
        super().__init__(details)
        self._parts = status, details, trailer

    def code(self):
        return self._parts[0]

    def details(self):
        return self._parts[1]

    def trailing_metadata(self):
        return self._parts[2]


class Ours:
    """Credentials that are in order."""

    def check(self, *, role, at):
        pass


def explained(failure):
    return tls.explain(failure, Ours(), at=dt.datetime.now(dt.UTC), target="hub.example:7443")


@pytest.mark.parametrize(
    ("details", "code", "words"),
    [
        (
            "last error: UNKNOWN: ipv4:1.2.3.4:1: Failed to connect: Connection refused",
            ErrorCode.UNAVAILABLE,
            "connection refused: nothing listens there",
        ),
        (
            "errors resolving hub.example:7443: [field:hostname lookup error: not found]",
            ErrorCode.UNAVAILABLE,
            "the name is not known here",
        ),
        (
            "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: WRONG_VERSION_NUMBER",
            ErrorCode.UNAVAILABLE,
            "does not speak TLS",
        ),
        (
            "last error: UNKNOWN: ipv4:1.2.3.4:1: HTTP proxy returned response code 403",
            ErrorCode.UNAVAILABLE,
            "the proxy does not let us through: it must allow CONNECT",
        ),
        (
            "last error: UNKNOWN: ipv4:1.2.3.4:1: HTTP proxy returned response code 407",
            ErrorCode.UNAVAILABLE,
            "the proxy wants a password",
        ),
        (
            "SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired: OK",
            ErrorCode.CURATOR_UNTRUSTED,
            "it has expired, and the operator must renew it",
        ),
        (
            "OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate is not yet valid: OK",
            ErrorCode.CURATOR_UNTRUSTED,
            "it is not valid yet",
        ),
        ("Handshake read failed (Endpoint closing)", ErrorCode.UNAVAILABLE, "does not answer"),
        ("connect: Network is unreachable (101)", ErrorCode.UNAVAILABLE, "no route"),
        ("connection attempt timed out", ErrorCode.UNAVAILABLE, "a firewall that drops"),
        ("something new", ErrorCode.UNAVAILABLE, "something new"),
        ("Hostname Verification Check failed", ErrorCode.CURATOR_UNTRUSTED, "other addresses"),
        (
            "CERTIFICATE_VERIFY_FAILED: self signed",
            ErrorCode.CURATOR_UNTRUSTED,
            "another authority",
        ),
    ],
)
def test_the_address_and_the_cause_are_named(details, code, words):
    found = explained(Failure(details))
    assert found.code is code
    assert "hub.example:7443: " in str(found)
    assert words in str(found)


def test_what_the_curator_says_itself_is_left_as_it_is():
    said = WireError(ErrorCode.UNAVAILABLE, "its own business")
    found = explained(Failure("the connection timed out", said.trailer()))
    assert found.detail == "said the other side"
