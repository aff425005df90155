"""The consortium's certificates: an authority, requests, and what it issues.

Keys are ECDSA on P-256, which every TLS library takes (BoringSSL, under gRPC, does not take Ed25519
certificates). A certificate names its holder in one URI, `parley://party/<name>` or
`parley://curator/<name>`: the common name is for people, a curator's host names are for TLS, and a
certificate that an existing authority issued for something else says neither and opens no door.
Parties' certificates are for clients only and the curator's for servers only.

Pure functions: dates are arguments, and no file is read or written here.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote, unquote, urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.errors import InputError
from common.wire.catalogue import ErrorCode, WireError
from common.wire.strict import MOST_NAME
from common.wording import many

WARN_BEFORE = timedelta(days=30)
_SCHEME = "parley"
_MOST_COMMON_NAME = 64  # bytes: X.509's own limit; the URI has the whole name


class Role(enum.StrEnum):
    """Who holds a certificate."""

    PARTY = "party"
    CURATOR = "curator"


_PURPOSES = {
    Role.PARTY: ExtendedKeyUsageOID.CLIENT_AUTH,
    Role.CURATOR: ExtendedKeyUsageOID.SERVER_AUTH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who a certificate is for; `hosts` are the curator's names and addresses on the network."""

    role: Role
    name: str
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a name that no certificate can hold."""
        if not 0 < len(self.name) <= MOST_NAME or not self.name.isprintable():
            raise InputError(f"{self.name!r}: a name has 1 to {MOST_NAME} printable characters")
        if (self.role is Role.CURATOR) != bool(self.hosts):
            raise InputError(
                f"{self.name!r}: a curator's certificate names the hosts it is reached at, "
                "a party's names none"
            )

    def names(self) -> x509.SubjectAlternativeName:
        """Return the names in the form of a certificate."""
        address = f"{_SCHEME}://{self.role}/{quote(self.name, safe='')}"
        hosts = [_host(host) for host in self.hosts]
        return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(address), *hosts])


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a private key, from the operating system's randomness."""
    return ec.generate_private_key(ec.SECP256R1())


def make_authority(
    key: ec.EllipticCurvePrivateKey, name: str, *, first: datetime, last: datetime
) -> x509.Certificate:
    """Make the certificate of an authority, signed by itself. It issues to holders only."""
    title = _title(name)
    builder = _builder(title, title, key.public_key(), first, last)
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def make_request(
    key: ec.EllipticCurvePrivateKey, subject: Subject
) -> x509.CertificateSigningRequest:
    """Make a request: the public key, the names, and proof of the private key."""
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_title(subject.name))
        .add_extension(subject.names(), critical=False)
        .sign(key, hashes.SHA256())
    )


def issue(
    request: x509.CertificateSigningRequest,
    *,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    first: datetime,
    last: datetime,
) -> x509.Certificate:
    """Make the certificate for the key and names of a request; InputError for one not of ours."""
    subject = subject_of(request)
    if not _proves_its_key(request):
        raise InputError(f"{subject.name!r}: the request is not signed by its own P-256 key")
    if authority.public_key() != authority_key.public_key():
        raise InputError("the authority's key does not belong to the authority's certificate")
    if last > authority.not_valid_after_utc:
        raise InputError(
            f"the certificate would outlive its authority, which ends on "
            f"{authority.not_valid_after_utc:%Y-%m-%d}"
        )
    builder = _builder(_title(subject.name), authority.subject, request.public_key(), first, last)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_PURPOSES[subject.role]]), critical=False)
        .add_extension(issuer, critical=False)
        .add_extension(subject.names(), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


@functools.lru_cache(maxsize=1024)  # asked for at every call of a party
def subject_of(holder: x509.Certificate | x509.CertificateSigningRequest) -> Subject:
    """Return the party or the curator that a certificate or a request names."""
    try:
        names = holder.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = [urlsplit(uri) for uri in names.get_values_for_type(x509.UniformResourceIdentifier)]
        uris = [uri for uri in uris if uri.scheme == _SCHEME]
        if len(uris) == 1 and uris[0].path[:1] == "/":
            addresses = names.get_values_for_type(x509.IPAddress)
            hosts = (*names.get_values_for_type(x509.DNSName), *map(str, addresses))
            name = unquote(uris[0].path[1:], errors="strict")
            return Subject(role=Role(uris[0].netloc), name=name, hosts=hosts)
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        pass  # not well-formed
    raise InputError("it names neither one party nor one curator")


def verify(
    certificate: x509.Certificate,
    authorities: Sequence[x509.Certificate],
    *,
    role: Role,
    at: datetime,
) -> Subject:
    """Return whom a certificate of an authority names; WireError if it is not for this role."""
    if not any(_issued(certificate, authority) for authority in authorities):
        raise WireError(ErrorCode.CERTIFICATE_UNTRUSTED, "issued by another authority")
    return verify_holder(certificate, role=role, at=at)


def verify_holder(certificate: x509.Certificate, *, role: Role, at: datetime) -> Subject:
    """Return whom a certificate names, if it is for this role and valid; TLS checked its issuer."""
    try:
        subject = subject_of(certificate)
    except InputError as error:
        raise WireError(ErrorCode.CERTIFICATE_UNTRUSTED, str(error)) from error
    if subject.role is not role:
        raise WireError(
            ErrorCode.CERTIFICATE_UNTRUSTED, f"it is the certificate of a {subject.role}"
        )
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        raise WireError(
            ErrorCode.CERTIFICATE_EXPIRED,
            f"valid from {certificate.not_valid_before_utc:%Y-%m-%d} "
            f"to {certificate.not_valid_after_utc:%Y-%m-%d}",
        )
    return subject


def expiry_warning(certificate: x509.Certificate, *, at: datetime) -> str | None:
    """Warn the operator in the last 30 days of a certificate, and after them."""
    last = certificate.not_valid_after_utc
    if at + WARN_BEFORE < last:
        return None
    advice = "renew it with `parley keys rotate`"
    if at > last:
        return f"the certificate expired on {last:%Y-%m-%d}; {advice}"
    return (
        f"the certificate expires on {last:%Y-%m-%d}, in {many((last - at).days, 'day')}; {advice}"
    )


def fingerprint(certificate: x509.Certificate) -> str:
    """Return SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` prints it."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def key_fingerprint(holder: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """Return SHA-256 of the public key, which a request and its certificate share."""
    encoded = holder.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(encoded).digest().hex(":").upper()


def _proves_its_key(request: x509.CertificateSigningRequest) -> bool:
    try:
        key = request.public_key()
        return (
            isinstance(key, ec.EllipticCurvePublicKey)
            and isinstance(key.curve, ec.SECP256R1)
            and request.is_signature_valid
        )
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        return False


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _title(name: str) -> x509.Name:
    short = name.encode()[:_MOST_COMMON_NAME].decode(errors="ignore")  # whole letters only
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, short)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InputError(f"{host!r} is neither an address nor an ASCII host name") from None


def _builder(
    title: x509.Name,
    issuer: x509.Name,
    key: CertificatePublicKeyTypes,
    first: datetime,
    last: datetime,
) -> x509.CertificateBuilder:
    if not first < last:
        raise InputError(f"last day {last:%Y-%m-%d}: it must be after the first, {first:%Y-%m-%d}")
    return (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(last)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
