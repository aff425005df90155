"""The name of a caller comes from its certificate; files of keys are checked before use."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from common.errors import InputError
from common.wire import tls
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki import certificates, peers
from common.wire.pki.certificates import Role, Subject
from common.wire.pki.credentials import CredentialFiles, key_pem, pem

NOW = datetime(2026, 5, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def north():
    authority_key, key = certificates.new_key(), certificates.new_key()
    authority = certificates.make_authority(
        authority_key, "consortium", first=NOW, last=NOW + 99 * DAY
    )
    certificate = certificates.issue(
        certificates.make_request(key, Subject(role=Role.PARTY, name="north")),
        authority=authority,
        authority_key=authority_key,
        first=NOW,
        last=NOW + DAY,
    )
    return key, certificate, authority


@pytest.fixture
def revocations(tmp_path):
    path = tmp_path / "revoked.txt"
    path.write_text(peers.HEADER)
    return peers.Revocations(path)


def connection(certificate, version=b"TLSv1.3"):
    """Return what gRPC knows of a caller."""
    properties = {"ssl_tls_version": [version]}
    return properties if certificate is None else properties | {"x509_pem_cert": [certificate]}


def test_a_caller_is_named_by_its_certificate(north, revocations):
    peer = peers.identify(connection(pem(north[1])), revocations, at=NOW)
    assert peer.name == "north"
    assert peer.fingerprint == certificates.fingerprint(north[1])
    peer.require_name("north")
    with pytest.raises(WireError, match="NAME_MISMATCH"):
        peer.require_name("North")


@pytest.mark.parametrize(
    ("make", "at", "code"),
    [
        (lambda c: connection(None), NOW, ErrorCode.CERTIFICATE_MISSING),
        (lambda c: connection(b"nonsense"), NOW, ErrorCode.CERTIFICATE_UNTRUSTED),
        (lambda c: connection(c, b"TLSv1.2"), NOW, ErrorCode.VERSION_MISMATCH),
        (connection, NOW + 2 * DAY, ErrorCode.CERTIFICATE_EXPIRED),
    ],
)
def test_a_caller_without_a_good_certificate_is_refused(north, revocations, make, at, code):
    """Also when it expires while the connection is open."""
    with pytest.raises(WireError) as refusal:
        peers.identify(make(pem(north[1])), revocations, at=at)
    assert refusal.value.code is code


def test_an_insecure_connection_is_refused(revocations):
    with pytest.raises(WireError, match=r"TLS 1\.3 is needed"):
        peers.identify({}, revocations, at=NOW)


def test_the_revocation_list_names_the_line_it_cannot_read(tmp_path):
    fingerprint = ":".join(["ab"] * 32)
    listed = peers.parse_revocations(f"# old\n\n{fingerprint} # x\n", tmp_path)
    assert listed == {fingerprint.upper()}
    with pytest.raises(InputError, match="line 2"):
        peers.parse_revocations(f"{fingerprint}\n{fingerprint}:00\n", tmp_path)


@pytest.fixture
def files(north, tmp_path):
    key, certificate, authority = north
    found = CredentialFiles(
        key=tmp_path / "key", certificate=tmp_path / "cert", authority=tmp_path / "ca"
    )
    found.key.touch(mode=0o600)
    found.key.write_bytes(key_pem(key))
    found.certificate.write_bytes(pem(certificate))
    found.authority.write_bytes(pem(authority))
    return found


def test_credentials_are_loaded_and_know_whose_they_are(files):
    credentials = files.load()
    assert credentials.check(role=Role.PARTY, at=NOW).name == "north"
    assert "PRIVATE" not in repr(credentials)
    with pytest.raises(WireError, match="CERTIFICATE_EXPIRED"):
        credentials.check(role=Role.PARTY, at=NOW + 2 * DAY)


@pytest.mark.parametrize("name", ["key", "certificate", "authority"])
@pytest.mark.parametrize("content", [b"", b"-----BEGIN X-----", bytes(1 << 21), None])
def test_unusable_files_are_refused_by_name(files, name, content):
    path = getattr(files, name)
    path.unlink()
    if content is not None:
        path.touch(mode=0o600)
        path.write_bytes(content)
    with pytest.raises(InputError, match=str(path)):
        files.load()


def test_a_key_of_another_certificate_or_kind_is_refused(files):
    files.key.write_bytes(key_pem(certificates.new_key()))
    with pytest.raises(InputError, match="not the key of the certificate"):
        files.load()
    files.key.write_bytes(key_pem(Ed25519PrivateKey.generate()))
    with pytest.raises(InputError, match="elliptic-curve"):
        files.load()


def test_a_key_that_everybody_can_read_is_refused(files):
    files.key.chmod(0o640)  # a group is how containers hand over secrets
    assert files.load()
    files.key.chmod(0o604)
    with pytest.raises(InputError, match="chmod 600"):
        files.load()


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "p:1", "NO_PROXY": "example.org"}, None),
        ({"HTTPS_PROXY": "p:1", "no_proxy": "a, .example.org"}, None),
        ({"HTTPS_PROXY": "p:1", "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": "p:1", "NO_PROXY": "ample.org,"}, "http://p:1"),
        ({"HTTP_PROXY": "p:1"}, None),
    ],
)
def test_the_usual_variables_choose_the_proxy(environment, proxy):
    assert tls.proxy_from(environment, host="hub.example.org") == proxy
