"""Real gRPC over mTLS on loopback: who gets in, and by what name everybody else is refused."""

import contextlib
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from common.wire import strict, tls
from common.wire.catalogue import ErrorCode, WireError, classify
from common.wire.pki import certificates, peers
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.credentials import CredentialFiles, key_pem, pem
from common.wire.v1 import curator_pb2, curator_pb2_grpc

NOW = datetime.now(UTC)  # TLS itself looks at the real clock
DAY = timedelta(days=1)


class Authority:
    """An authority, and files of what it issues."""

    def __init__(self, folder, name="consortium"):
        self.folder = folder
        folder.mkdir()
        self.key = certificates.new_key()
        self.certificate = certificates.make_authority(
            self.key, name, first=NOW - 100 * DAY, last=NOW + 100 * DAY
        )
        (folder / "ca.pem").write_bytes(pem(self.certificate))

    def issue(self, subject, *, first=NOW - DAY, last=NOW + DAY, file=None):
        key = certificates.new_key()
        certificate = certificates.issue(
            certificates.make_request(key, subject),
            authority=self.certificate,
            authority_key=self.key,
            first=first,
            last=last,
        )
        stem = self.folder / (file or subject.name)
        stem.with_suffix(".key").touch(mode=0o600)
        stem.with_suffix(".key").write_bytes(key_pem(key))
        stem.with_suffix(".pem").write_bytes(pem(certificate))
        return CredentialFiles(
            key=stem.with_suffix(".key"),
            certificate=stem.with_suffix(".pem"),
            authority=self.folder / "ca.pem",
        )


def party(name):
    return Subject(role=Role.PARTY, name=name)


CURATOR = Subject(role=Role.CURATOR, name="hub", hosts=("127.0.0.1",))


class Servicer(curator_pb2_grpc.CuratorServiceServicer):
    """Enrols whoever may come in, and notes everybody who got as far as a call."""

    def __init__(self, revoked):
        self.revocations = peers.Revocations(revoked)
        self.callers = []

    def Enrol(self, request, context):
        self.callers.append(request.party)
        try:
            strict.check(request)
            peer = peers.identify(context.auth_context(), self.revocations, at=datetime.now(UTC))
            peer.require_name(request.party)
        except Exception as error:  # noqa: BLE001
            refusal = classify(error)
            context.set_trailing_metadata(refusal.trailer())
            context.abort(refusal.code.status, refusal.code.public)
        return curator_pb2.EnrolResponse(protocol=1, software=f"hello {peer.name}")


@dataclass
class TlsServer:
    """A server with certificates of an authority, and calls to it."""

    authority: Authority
    servicer: Servicer
    files: CredentialFiles
    revoked: Path
    port: int

    def enrol(self, files, name, *, authority=None, certificate=True, options=None, at=NOW):
        """Make one call with these credentials; return a refusal as the caller understands it."""
        mine = files.load()
        if authority is not None:
            mine = replace(mine, authority_pem=pem(authority.certificate))
        channel_credentials = (
            tls.channel_credentials(mine)
            if certificate
            else grpc.ssl_channel_credentials(mine.authority_pem)
        )
        options = options or tls.channel_options(proxy=None)
        address = f"127.0.0.1:{self.port}"
        with grpc.secure_channel(address, channel_credentials, options=options) as channel:
            stub = curator_pb2_grpc.CuratorServiceStub(channel)
            request = curator_pb2.EnrolRequest(
                protocol=1, software="test", party=name, identity=b"", with_ended=False
            )
            try:
                return stub.Enrol(request, timeout=20).software
            except grpc.RpcError as error:
                shown = mine if certificate else None
                raise tls.explain(error, shown, at=at, target="the curator") from error


@contextlib.contextmanager
def serving(authority, files, revoked):
    servicer = Servicer(revoked)
    server = grpc.server(ThreadPoolExecutor(4), options=tls.SERVER_OPTIONS)
    curator_pb2_grpc.add_CuratorServiceServicer_to_server(servicer, server)
    port = server.add_secure_port("127.0.0.1:0", tls.server_credentials(files))
    server.start()
    try:
        yield TlsServer(authority, servicer, files, revoked, port)
    finally:
        server.stop(None).wait()


@pytest.fixture
def consortium(tmp_path):
    authority = Authority(tmp_path / "keys")
    revoked = tmp_path / "revoked.txt"
    revoked.write_text(peers.HEADER)
    with serving(authority, authority.issue(CURATOR), revoked) as running:
        yield running


def refused(consortium, *arguments, **options):
    with pytest.raises(WireError) as refusal:
        consortium.enrol(*arguments, **options)
    return refusal.value.code


def test_a_party_with_its_own_certificate_comes_in(consortium):
    name = "nördliches Haus & Co"
    files = consortium.authority.issue(party(name), file="north")
    assert consortium.enrol(files, name) == f"hello {name}"


def test_no_certificate_is_refused_before_any_call(consortium):
    files = consortium.authority.issue(party("north"))
    code = refused(consortium, files, "north", certificate=False)
    assert code is ErrorCode.CERTIFICATE_MISSING
    assert consortium.servicer.callers == []


@pytest.mark.parametrize("name", ["another", "consortium"])
def test_another_authoritys_certificate_is_refused_before_any_call(consortium, tmp_path, name):
    """Even when it goes by the same name."""
    stranger = Authority(tmp_path / "other", name=name)
    files = replace(
        stranger.issue(party("north")), authority=consortium.authority.folder / "ca.pem"
    )
    assert refused(consortium, files, "north") is ErrorCode.CERTIFICATE_UNTRUSTED
    assert consortium.servicer.callers == []


def test_a_curator_that_closes_the_door_at_once_is_said_to(consortium, tmp_path):
    """Our certificate is fine by our authority, and the server is of that authority, too."""
    second = Authority(tmp_path / "other")
    both = tmp_path / "both.pem"
    both.write_bytes(pem(consortium.authority.certificate) + pem(second.certificate))
    files = replace(second.issue(party("north")), authority=both)
    with pytest.raises(WireError, match=r"clock is wrong.*trusts another authority") as refusal:
        consortium.enrol(files, "north")
    assert refusal.value.code is ErrorCode.UNAVAILABLE
    assert consortium.servicer.callers == []


@pytest.mark.parametrize(("first", "last", "here"), [(-9, -2, -5), (2, 9, 5)])
def test_a_curator_whose_clock_is_wrong_is_said_to_be(consortium, first, last, here):
    """By our clock our certificate is valid; by the curator's it is not."""
    files = consortium.authority.issue(
        party("north"), first=NOW + first * DAY, last=NOW + last * DAY
    )
    with pytest.raises(WireError, match=r"its clock is wrong.*parley doctor curator") as refusal:
        consortium.enrol(files, "north", at=NOW + here * DAY)
    assert refusal.value.code is ErrorCode.UNAVAILABLE


def test_another_partys_certificate_does_not_open_a_door_under_this_name(consortium):
    files = consortium.authority.issue(party("south"))
    assert refused(consortium, files, "north") is ErrorCode.NAME_MISMATCH


@pytest.mark.parametrize(("first", "last"), [(-9, -2), (2, 9)])
def test_a_certificate_out_of_its_time_is_refused_before_any_call(consortium, first, last):
    files = consortium.authority.issue(
        party("north"), first=NOW + first * DAY, last=NOW + last * DAY
    )
    assert refused(consortium, files, "north") is ErrorCode.CERTIFICATE_EXPIRED
    assert consortium.servicer.callers == []


def test_the_curators_certificate_does_not_pass_for_a_partys(consortium):
    assert refused(consortium, consortium.files, "hub") is ErrorCode.CERTIFICATE_UNTRUSTED
    assert consortium.servicer.callers == []


def test_revocation_holds_from_the_next_call_on(consortium):
    files = consortium.authority.issue(party("north"))
    other = consortium.authority.issue(party("south"))
    assert consortium.enrol(files, "north")
    revoked = certificates.fingerprint(files.load().certificate)
    consortium.revoked.write_text(f"{peers.HEADER}{revoked}  # lost laptop\n")
    assert refused(consortium, files, "north") is ErrorCode.CERTIFICATE_REVOKED
    assert consortium.enrol(other, "south")


def test_a_damaged_revocation_list_refuses_everybody(consortium):
    files = consortium.authority.issue(party("north"))
    consortium.revoked.write_text("AB:CD\n")
    assert refused(consortium, files, "north") is ErrorCode.INTERNAL
    consortium.revoked.unlink()
    assert refused(consortium, files, "north") is ErrorCode.INTERNAL


def test_a_curator_of_another_authority_is_not_trusted(consortium, tmp_path):
    other = Authority(tmp_path / "other")
    files = consortium.authority.issue(party("north"))
    code = refused(consortium, files, "north", authority=other)
    assert code is ErrorCode.CURATOR_UNTRUSTED


def test_a_curator_at_another_address_is_not_trusted(tmp_path):
    authority = Authority(tmp_path / "keys")
    elsewhere = replace(CURATOR, hosts=("curator.example.org",))
    revoked = tmp_path / "revoked.txt"
    with serving(authority, authority.issue(elsewhere), revoked) as consortium:
        files = authority.issue(party("north"))
        assert refused(consortium, files, "north") is ErrorCode.CURATOR_UNTRUSTED


def test_a_party_cannot_play_the_curator(tmp_path):
    authority = Authority(tmp_path / "keys")
    with serving(authority, authority.issue(party("south")), tmp_path / "none") as consortium:
        files = authority.issue(party("north"))
        assert refused(consortium, files, "north") is ErrorCode.CURATOR_UNTRUSTED


def test_nobody_at_the_port_is_unavailable(consortium):
    files = consortium.authority.issue(party("north"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = replace(consortium, port=unused.getsockname()[1])
        assert refused(closed, files, "north") is ErrorCode.UNAVAILABLE


def test_a_call_above_the_limit_is_refused(consortium):
    files = consortium.authority.issue(party("north"))
    unlimited = (
        *(option for option in tls.channel_options(proxy=None) if "length" not in option[0]),
        ("grpc.max_send_message_length", -1),
    )
    name = "n" * (strict.MOST_CALL_BYTES + 1)
    assert refused(consortium, files, name, options=unlimited) is ErrorCode.TOO_LARGE
    assert consortium.servicer.callers == []


def served_certificate(consortium, files, highest=ssl.TLSVersion.TLSv1_3):
    """Return the certificate a server shows to a client without gRPC, and the TLS version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = highest
    context.load_verify_locations(files.authority)
    context.load_cert_chain(files.certificate, files.key)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", consortium.port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        return secure.getpeercert(binary_form=True), secure.version()


def test_the_curators_certificate_is_rotated_without_a_restart(consortium):
    files = consortium.authority.issue(party("north"))
    before, version = served_certificate(consortium, files)
    assert version == "TLSv1.3"
    mine = tls.channel_credentials(files.load())
    with grpc.secure_channel(f"127.0.0.1:{consortium.port}", mine) as channel:
        stub = curator_pb2_grpc.CuratorServiceStub(channel)
        request = curator_pb2.EnrolRequest(
            protocol=1, software="t", party="north", identity=b"", with_ended=False
        )
        assert stub.Enrol(request, timeout=20)
        consortium.authority.issue(CURATOR)  # replaces both files
        assert served_certificate(consortium, files)[0] != before
        assert stub.Enrol(request, timeout=20), "the open connection goes on"
    assert consortium.enrol(files, "north")


def test_half_a_rotation_keeps_the_certificate_in_use(consortium, caplog):
    files = consortium.authority.issue(party("north"))
    before, _ = served_certificate(consortium, files)
    consortium.files.key.write_bytes(key_pem(certificates.new_key()))
    assert served_certificate(consortium, files)[0] == before
    assert "keeping the certificates in use" in caplog.text


def test_a_party_may_show_its_old_certificate_until_it_expires(consortium):
    old = consortium.authority.issue(party("north"), file="old")
    new = consortium.authority.issue(party("north"), file="new")
    assert consortium.enrol(old, "north") == consortium.enrol(new, "north")


@contextlib.contextmanager
def proxy():
    """Start a proxy that understands CONNECT and notes where it was asked to connect to."""
    asked = []

    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(client):
        with client:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += client.recv(4096)
            asked.append(request.split()[1].decode())
            host, _, port = asked[-1].rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=pump, args=(server, client))
                back.start()
                pump(client, server)
                back.join()

    def accept():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                workers.append(threading.Thread(target=serve, args=(client,)))
                workers[-1].start()

    workers = []
    listener = socket.create_server(("127.0.0.1", 0))
    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *workers):
            thread.join(timeout=20)


def test_a_proxy_is_used_and_sees_no_name(consortium):
    files = consortium.authority.issue(party("north"))
    with proxy() as (address, asked):
        chosen = tls.proxy_from({"HTTPS_PROXY": address}, host="127.0.0.1")
        options = tls.channel_options(proxy=chosen)
        assert consortium.enrol(files, "north", options=options) == "hello north"
        assert asked == [f"127.0.0.1:{consortium.port}"]
