"""Connections, over real gRPC and mutual TLS: how many stay, how long, and which are closed."""

import contextlib
import logging
import socket
import ssl
import subprocess
import sys
import time

import grpc
import pytest

from common.service.database import Database
from common.wire import tls
from common.wire.catalogue import ErrorCode, received
from common.wire.pki import certificates
from common.wire.v1 import curator_pb2 as pb
from curator.server import connections, service
from tests.harness.consortium import finish
from tests.harness.process_consortium import ROOT

ENROL = "/parley.v1.CuratorService/Enrol"


@pytest.fixture
def narrow(gathering, monkeypatch):
    """Start curators that look often, with room for so many files and these options of gRPC."""
    monkeypatch.setattr(connections, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(service, "_LOOK_EVERY_S", 0.1)

    def start(*, files=1024, **options):
        monkeypatch.setattr(service, "raise_open_files", lambda: files)
        changed = {f"grpc.{name}_ms": value for name, value in options.items()}
        kept = tuple((name, value) for name, value in tls.SERVER_OPTIONS if name not in changed)
        monkeypatch.setattr(tls, "SERVER_OPTIONS", (*kept, *changed.items()))
        return gathering(2)

    return start


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def channel_of(party):
    """Make a connection of its own; gRPC must not dial again by itself while we count."""
    return grpc.secure_channel(
        f"127.0.0.1:{party.curator.port}",
        tls.channel_credentials(party.ring.files.load()),
        (("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 600_000)),
    )


def call(channel, party):
    identity = party.identity.public.encoded
    request = pb.EnrolRequest(
        protocol=1, software="x", party=party.name, identity=identity, with_ended=True
    )
    return channel.unary_unary(ENROL)(request.SerializeToString(), timeout=20)


@contextlib.contextmanager
def called_by(party, number):
    """Open so many connections of a party, each of which makes a call."""
    with contextlib.ExitStack() as opened:
        channels = [opened.enter_context(channel_of(party)) for _ in range(number)]
        for channel in channels:
            call(channel, party)
        yield channels


@contextlib.contextmanager
def silent_of(party, number):
    """Open so many connections that show a certificate and make no call."""
    files = party.ring.files
    context = ssl.create_default_context(cafile=files.authority)
    context.load_cert_chain(files.certificate, files.key)
    context.set_alpn_protocols(["h2"])
    with contextlib.ExitStack() as opened:
        for _ in range(number):
            line = socket.create_connection(("127.0.0.1", party.curator.port), timeout=20)
            wrapped = context.wrap_socket(line, server_hostname="127.0.0.1")
            opened.enter_context(wrapped)
            wrapped.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        yield


def test_a_party_has_so_many_connections_and_the_others_do_not_feel_it(narrow, caplog):
    consortium = narrow(files=4096)
    north, east = consortium.parties.values()
    most = connections.MOST_OF_A_PARTY
    assert connections.Room(connections=200, files=400).of_a_party == 25
    seen = consortium.curator.server.connections
    with called_by(east, 80):
        wait_for(lambda: "party east has" in caplog.text)
        wait_for(lambda: 0 < seen.open <= most)
        with channel_of(north) as channel:
            call(channel, north)


def test_a_revoked_certificate_loses_its_connections(narrow):
    consortium = narrow()
    east, ring = consortium.parties["east"], consortium.curator.ring
    seen = consortium.curator.server.connections
    with called_by(east, 5) as channels:
        wait_for(lambda: seen.open == 5)
        ring.revoke(certificates.fingerprint(east.ring.certificate()), reason="gone")
        wait_for(lambda: seen.open == 0)
        with pytest.raises(grpc.RpcError) as refused:  # it dials again, and is told
            call(channels[0], east)
        assert received(refused.value.code(), refused.value.trailing_metadata()).code in (
            ErrorCode.CERTIFICATE_REVOKED, ErrorCode.UNAVAILABLE,
        )  # fmt: skip
        wait_for(lambda: seen.open == 0)


def test_connections_without_a_call_end_by_themselves(narrow):
    consortium = narrow(max_connection_idle=500)
    seen = consortium.curator.server.connections
    with silent_of(consortium.parties["east"], 10):
        wait_for(lambda: seen.open == 10)
        wait_for(lambda: seen.open == 0)


def test_a_warning_comes_before_the_last_place_is_taken_and_silent_ones_make_room(narrow, caplog):
    consortium = narrow(files=1200)
    room = connections.Room(connections=20, files=1200)
    seen = consortium.curator.server.connections
    seen._room = room
    north, east = consortium.parties.values()
    figures = {sample.name: sample.value for sample in seen.samples()}
    assert figures["parley_curator_connections_limit"] == 20
    assert figures["parley_curator_open_files_limit"] == 1200
    with silent_of(east, 15):
        wait_for(lambda: seen.open == 15)
        assert "connections and" not in caplog.text
        with silent_of(east, 1):
            wait_for(lambda: seen.open <= 1)
            assert "16 of 20 connections and" in caplog.text
            with channel_of(north) as channel:
                call(channel, north)


def test_nodes_do_not_notice_the_age_limit_of_their_connections(narrow, caplog):
    consortium = narrow(max_connection_age=200)
    with caplog.at_level(logging.WARNING):
        finish(consortium)
    assert [r.message for r in caplog.records if r.name.startswith("party")] == []


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("ipv4:192.0.2.1:7443", ("192.0.2.1", 7443)),
        ("ipv6:%5B::1%5D:7443", ("::1", 7443)),
        ("ipv6:[2001:db8::1]:7443", ("2001:db8::1", 7443)),
        ("unix:", ("", 0)),
    ],
)
def test_the_name_of_a_peer_is_read(where, address):
    assert connections._address(where) == address


READ = """
import sys
from pathlib import Path
from common.service.database import Database
with Database(Path(sys.argv[1])) as database:
    assert database.rows("SELECT x FROM t") == [(1,)]
"""


def test_a_look_at_all_files_keeps_the_locks_of_the_store(tmp_path):
    """Or a command that reads the store beside its service would remove the log as the last one."""
    with Database(tmp_path / "curator.db", logged=True) as database:
        database.add_tables("CREATE TABLE t (x);")
        with database.transaction():
            database.write("INSERT INTO t VALUES (1)")
        connections._listed(1)
        words = [sys.executable, "-c", READ, str(database.path)]
        subprocess.run(words, cwd=ROOT, check=True)
        assert (tmp_path / "curator.db-wal").exists()
