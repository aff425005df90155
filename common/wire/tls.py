"""mTLS for gRPC: credentials, limits, reloading, proxies, and what a failed connection means.

Both sides show a certificate of the consortium's authority. gRPC has no switch for the lowest
version of TLS; two gRPC peers agree on 1.3, and `peers.identify` refuses a caller that did not.

A server reads its files again when they change, at the next handshake: open connections go on, and
a rotation needs no restart. A client reads them whenever it connects.

gRPC itself looks at `https_proxy` in small letters only, so `proxy_from` decides from HTTPS_PROXY,
https_proxy, NO_PROXY and no_proxy, and `channel_options` tells gRPC. The proxy sees ciphertext: it
is asked to CONNECT, and TLS is spoken through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

import grpc

from common.wire import strict
from common.wire.catalogue import TRAILER, ErrorCode, WireError, received
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import CredentialFiles, Credentials, Followed

Options = tuple[tuple[str, int | str], ...]
_KEEPALIVE_MS = 30_000
_LIMITS: Options = (
    ("grpc.max_receive_message_length", strict.MOST_CALL_BYTES),
    ("grpc.max_send_message_length", strict.MOST_CALL_BYTES),
)
_KEEPALIVE: Options = (  # idle streams survive firewalls, and a dead peer is noticed
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
# gRPC would send a call again by itself that a stopping server did not take. Some of these calls
# wait for ever, on no connection. A node tries again anyway, with what is on disk by then.
_NO_RETRIES: Options = (("grpc.enable_retries", 0),)
_FILES_OF_OUR_OWN = 256  # the store, releases, the dashboard: never taken by connections
SERVER_OPTIONS: Options = (
    *_LIMITS,
    *_KEEPALIVE,
    ("grpc.http2.min_ping_interval_without_data_ms", _KEEPALIVE_MS // 2),
    ("grpc.max_concurrent_streams", 100),
    # A connection that does not say who it is holds a descriptor no longer than this.
    ("grpc.server_handshake_timeout_ms", 10_000),
    # A node hangs up when it has nothing to ask. Calls under way at the age have until the end of
    # the grace: a release takes hours on a slow line, and calls have limits of their own.
    ("grpc.max_connection_idle_ms", 30_000),
    ("grpc.max_connection_age_ms", 3_600_000),
    ("grpc.max_connection_age_grace_ms", 24 * 3_600_000),
    ("grpc.so_reuseport", 0),  # a second curator on the same port is an error, not a coin toss
)
_CLOSED = (
    "it closed the connection at once. Either its clock is wrong, so that our certificate seems "
    "expired or not valid yet: have its operator run `parley doctor curator`. Or it trusts another "
    "authority: compare the fingerprints of `parley keys show`. Or it has no room for more "
    "connections"
)
_SIGNS = (  # of what is in the way, in what gRPC says of it
    ("response code 407", "the proxy wants a password: http://USER:PASSWORD@HOST:PORT"),
    ("HTTP proxy returned", "the proxy does not let us through: it must allow CONNECT to there"),
    ("Socket closed", _CLOSED),
    ("Connection refused", "connection refused: nothing listens there, or a firewall refuses it"),
    ("lookup", "the name is not known here"),
    ("resol", "the name is not known here"),
    ("WRONG_VERSION_NUMBER", "what listens there does not speak TLS"),
    ("unreachable", "there is no route to it"),
    ("No route", "there is no route to it"),
    ("Handshake read failed", "it does not answer: a firewall in between, or no curator?"),
    ("imeout", "it does not answer: a firewall that drops, or the wrong address?"),
    ("timed out", "it does not answer: a firewall that drops, or the wrong address?"),
    ("Deadline Exceeded", "it does not answer in time"),
)
_DISTRUSTED = (  # why a certificate of the curator's does not do
    ("has expired", "it has expired, and the operator must renew it; or our clock is wrong"),
    ("not yet valid", "it is not valid yet; is our clock wrong, or the curator's?"),
)


def most_connections(*, open_files: int) -> int:
    """Return how many connections a server takes whose process may have so many files open."""
    return max(open_files - _FILES_OF_OUR_OWN, open_files // 2)


def server_options(*, connections: int) -> Options:
    """Return how a server listens that takes so many connections."""
    return (*SERVER_OPTIONS, ("grpc.max_allowed_incoming_connections", connections))


def server_credentials(files: CredentialFiles) -> grpc.ServerCredentials:
    """Make a server's credentials, which follow their files; a client must show a certificate."""

    def configuration(now: Credentials) -> grpc.ServerCertificateConfiguration:
        pair = (now.key_pem.reveal(), now.chain_pem)
        return grpc.ssl_server_certificate_configuration([pair], now.authority_pem)

    followed = Followed(files, configuration)
    return grpc.dynamic_ssl_server_credentials(
        followed.current,
        followed.fresh,  # type: ignore[arg-type]  # None is "no change"; gRPC's stubs lack it
        require_client_authentication=True,
    )


def channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        credentials.authority_pem, credentials.key_pem.reveal(), credentials.chain_pem
    )


def channel_options(*, proxy: str | None) -> Options:
    """Return how a client dials, through a proxy or directly."""
    way: Options = (
        (("grpc.enable_http_proxy", 0),) if proxy is None else (("grpc.http_proxy", proxy),)
    )
    return (*_LIMITS, *_KEEPALIVE, *_NO_RETRIES, *way)


def proxy_from(environment: Mapping[str, str], *, host: str) -> str | None:
    """Return the proxy to reach a host through, by the usual variables; None to dial directly."""
    proxy, exceptions = (
        environment.get(name.upper()) or environment.get(name, "")
        for name in ("https_proxy", "no_proxy")
    )
    for exception in filter(None, (entry.strip() for entry in exceptions.split(","))):
        suffix = exception.lstrip(".")
        if exception == "*" or host == suffix or host.endswith(f".{suffix}"):
            return None
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def explain(
    error: grpc.RpcError, mine: Credentials | None, *, at: datetime, target: str
) -> WireError:
    """Explain a failed call to a party: by the peer's refusal, or by what can be seen from here.

    A server that refuses a certificate during the handshake closes the connection without a word,
    so that case is recognised by a look at our own certificate.
    """
    trailer = cast(Iterable[tuple[str, str | bytes]] | None, error.trailing_metadata())
    refusal = received(error.code(), trailer)
    if refusal.code is not ErrorCode.UNAVAILABLE:
        return refusal
    details = error.details() or ""
    if "Hostname Verification" in details:
        return WireError(ErrorCode.CURATOR_UNTRUSTED, f"{target}: it is for other addresses")
    if "CERTIFICATE_VERIFY_FAILED" in details:
        words = next(
            (w for sign, w in _DISTRUSTED if sign in details), "another authority issued it"
        )
        return WireError(ErrorCode.CURATOR_UNTRUSTED, f"{target}: {words}")
    if mine is None:
        return WireError(ErrorCode.CERTIFICATE_MISSING)
    try:
        mine.check(role=Role.PARTY, at=at)
    except WireError as own:
        return own
    if any(key == TRAILER for key, _ in trailer or ()):
        return refusal
    meaning = next((words for sign, words in _SIGNS if sign in details), details or refusal.detail)
    return WireError(ErrorCode.UNAVAILABLE, f"{target}: {meaning}")
