"""The consortium's authority issues what it should, and verification takes nothing else."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.errors import InputError
from common.wire.catalogue import ErrorCode, WireError
from common.wire.pki import certificates
from common.wire.pki.certificates import Role, Subject

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
KEY = certificates.new_key()
AUTHORITY_KEY = certificates.new_key()
AUTHORITY = certificates.make_authority(
    AUTHORITY_KEY, "consortium", first=NOW - DAY, last=NOW + 1000 * DAY
)
NORTH = Subject(role=Role.PARTY, name="north")
HUB = Subject(role=Role.CURATOR, name="hub", hosts=("curator.example.org", "10.0.0.1", "::1"))


def issued(subject=NORTH, *, first=NOW, last=NOW + 365 * DAY, key=KEY, request=None):
    return certificates.issue(
        request or certificates.make_request(key, subject),
        authority=AUTHORITY,
        authority_key=AUTHORITY_KEY,
        first=first,
        last=last,
    )


@pytest.mark.parametrize("subject", [NORTH, HUB])
def test_what_the_authority_issues_verifies_for_its_holder(subject):
    certificate = issued(subject)
    assert certificates.verify(certificate, [AUTHORITY], role=subject.role, at=NOW) == subject


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=100))
@example("\N{LINEAR B SYLLABLE B008 A}" * 100)
@example("n" + "\N{LINEAR B SYLLABLE B008 A}" * 99)
@settings(deadline=None, max_examples=50)
def test_any_printable_name_survives(name):
    subject = Subject(role=Role.PARTY, name=name)
    assert certificates.subject_of(issued(subject)) == subject


@pytest.mark.parametrize("name", ["", "n" * 101, "a\nb", "\x00"])
def test_a_name_that_cannot_be_shown_is_refused(name):
    with pytest.raises(InputError, match="name has 1 to 100"):
        Subject(role=Role.PARTY, name=name)


def test_only_curators_have_hosts():
    with pytest.raises(InputError, match="hosts"):
        Subject(role=Role.CURATOR, name="hub")
    with pytest.raises(InputError, match="hosts"):
        Subject(role=Role.PARTY, name="north", hosts=("example.org",))
    with pytest.raises(InputError, match="host name"):
        certificates.make_request(KEY, Subject(role=Role.CURATOR, name="hub", hosts=("hüb",)))


def refusal(certificate, *, authorities=(AUTHORITY,), role=Role.PARTY, at=NOW):
    with pytest.raises(WireError) as caught:
        certificates.verify(certificate, authorities, role=role, at=at)
    return caught.value.code


def test_a_certificate_is_refused_outside_its_days():
    certificate = issued(first=NOW, last=NOW + DAY)
    assert certificates.verify(certificate, [AUTHORITY], role=Role.PARTY, at=NOW + DAY)
    for at in (NOW - timedelta(seconds=1), NOW + DAY + timedelta(seconds=1)):
        assert refusal(certificate, at=at) is ErrorCode.CERTIFICATE_EXPIRED


def test_a_certificate_is_refused_in_another_role():
    assert refusal(issued(HUB)) is ErrorCode.CERTIFICATE_UNTRUSTED
    assert refusal(issued(NORTH), role=Role.CURATOR) is ErrorCode.CERTIFICATE_UNTRUSTED


def test_an_authority_of_the_same_name_does_not_do():
    key = certificates.new_key()
    twin = certificates.make_authority(key, "consortium", first=NOW, last=NOW + DAY)
    assert refusal(issued(), authorities=[twin]) is ErrorCode.CERTIFICATE_UNTRUSTED
    assert refusal(issued(), authorities=[]) is ErrorCode.CERTIFICATE_UNTRUSTED
    assert certificates.verify(issued(), [twin, AUTHORITY], role=Role.PARTY, at=NOW) == NORTH


def foreign(*names):
    """Make a certificate that the authority issued for something else."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(AUTHORITY.subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
    )
    if names:
        uris = [x509.UniformResourceIdentifier(name) for name in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)
    return builder.sign(AUTHORITY_KEY, hashes.SHA256())


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("https://example.org",),
        ("parley://party",),
        ("parley://party/",),
        ("parley://party/%ff",),
        ("parley://party/a%0ab",),
        ("parley://owner/north",),
        ("parley://curator/hub",),
        ("parley://party/north", "parley://party/south"),
        ("parley://[party/north",),
    ],
)
def test_a_certificate_for_something_else_is_refused(names):
    assert refusal(foreign(*names)) is ErrorCode.CERTIFICATE_UNTRUSTED


def test_only_key_and_names_are_taken_from_a_request():
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .add_extension(NORTH.names(), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(KEY, hashes.SHA256())
    )
    certificate = issued(request=request)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert not usage.key_cert_sign


def test_a_certificate_does_not_outlive_its_authority():
    with pytest.raises(InputError, match="outlive"):
        issued(last=NOW + 1001 * DAY)
    with pytest.raises(InputError, match="last day"):
        issued(first=NOW, last=NOW)


def test_another_key_cannot_issue():
    with pytest.raises(InputError, match="does not belong"):
        certificates.issue(
            certificates.make_request(KEY, NORTH),
            authority=AUTHORITY,
            authority_key=KEY,
            first=NOW,
            last=NOW + DAY,
        )


@pytest.mark.parametrize(
    ("days", "words"),
    [(31, None), (30, "in 30 days"), (1, "in 1 day;"), (0, "in 0 days"), (-1, "expired on")],
)
def test_expiry_is_warned_about_30_days_ahead(days, words):
    certificate = issued(last=NOW + 100 * DAY)
    warning = certificates.expiry_warning(certificate, at=NOW + (100 - days) * DAY)
    assert (words in warning and "keys rotate" in warning) if words else warning is None


def test_request_and_certificate_show_the_same_key_and_every_certificate_its_own_fingerprint():
    request = certificates.make_request(KEY, NORTH)
    first, second = issued(request=request), issued(request=request)
    assert certificates.key_fingerprint(request) == certificates.key_fingerprint(first)
    assert certificates.fingerprint(first) != certificates.fingerprint(second)
    assert len(certificates.fingerprint(first).split(":")) == 32
