"""`parley keys`: the consortium's authority, and the keys and certificates of its members."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from cryptography import x509

from common.crypto.key_files import load_public_identity
from common.errors import InputError
from common.files import read, whole_folder, write_new
from common.service.process import system_clock
from common.wire.pki import certificates
from common.wire.pki.certificates import Role
from common.wire.pki.credentials import parse_certificates, parse_request
from common.wire.pki.keyring import (
    CERTIFICATE_DAYS,
    Keyring,
    init_curator,
    init_identity,
    init_party,
)
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import chosen_passphrase, new_passphrase, passphrase_in
from parley.cli.result import Result, command

app = new_app("Keys and certificates: who may connect to the curator, and how the others know.")

Folder = Annotated[Path, typer.Option("--folder", help="The folder with the keys.")]
Fingerprint = Annotated[
    str | None,
    typer.Option(help="The fingerprint you were told; without it you are asked to compare."),
]
AskPassphraseFlag = Annotated[
    bool, typer.Option("--ask-passphrase", help="Ask for a passphrase to put the keys under.")
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="A file whose first line is the passphrase of the keys; only you may be able to read "
        "it. [default: PARLEY_PASSPHRASE, or you are asked]",
        show_default=False,
    ),
]
_FOLDER = Path("keys")


@dataclass(frozen=True)
class Described:
    """A certificate."""

    certificate: x509.Certificate

    @property
    def fingerprint(self) -> str:
        return certificates.fingerprint(self.certificate)

    @property
    def name(self) -> str:
        try:
            return certificates.subject_of(self.certificate).name
        except InputError:  # the authority itself
            return self.certificate.subject.rfc4514_string()

    def as_json(self) -> dict[str, object]:
        return {
            "fingerprint": self.fingerprint,
            "name": self.name,
            "from": self.certificate.not_valid_before_utc,
            "until": self.certificate.not_valid_after_utc,
        }

    def line(self, what: str) -> str:
        dated = self.certificate
        return (
            f"{what:<12} {self.fingerprint}  {self.name}, {dated.not_valid_before_utc:%Y-%m-%d} to "
            f"{dated.not_valid_after_utc:%Y-%m-%d}"
        )

    def warnings(self) -> list[str]:
        words = certificates.expiry_warning(self.certificate, at=system_clock())
        return [] if words is None else [words]


@command(app)
def init(
    role: Annotated[Role, typer.Argument(help="Whose keys these are.")],
    name: Annotated[str, typer.Argument(help="The name this curator or party goes by.")],
    *,
    folder: Folder = _FOLDER,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address the curator is reached at; may be repeated."),
    ] = None,
    external_authority: Annotated[
        bool, typer.Option(help="Curator: an existing authority will certify the server's key.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    ask_passphrase: AskPassphraseFlag = False,
) -> Result:
    """Make keys: at the curator the consortium's authority, at a party its key and a request.

    Private keys never leave the folder. With a passphrase (asked for, or of a file, or of
    PARLEY_PASSPHRASE) the identity and the authority's key are encrypted; without, their mode 0600
    is all that protects them. The keys for connections never are, so that a service can start by
    itself.
    """
    hosts = tuple(host or ())
    passphrase = new_passphrase(passphrase_file, ask=ask_passphrase)
    if role is Role.PARTY and (hosts or external_authority):
        raise InputError(
            "--host and --external-authority: both are for the curator. Leave them out"
        )
    with whole_folder(folder):
        if role is Role.PARTY:
            ring = init_party(folder, name, passphrase=passphrase)
        else:
            ring = init_curator(
                folder, name, hosts,
                now=system_clock(), external=external_authority, passphrase=passphrase,
            )  # fmt: skip
    console.note(f"keys of {role} {name!r} are in {folder}; keep a safe copy of the folder")
    if ring.is_authority:
        console.note(f"give every party {ring.files.authority} and tell them its fingerprint:")
    return _told(ring, "authority")


@command(app)
def request(
    *,
    folder: Folder = _FOLDER,
    out: Annotated[Path | None, typer.Option(help="Write a copy of the request here.")] = None,
) -> Result:
    """Show the request that waits for approval, and the fingerprint to tell the curator."""
    ring = Keyring.open(folder)
    waiting = read(ring.request)
    if out is not None:
        write_new(out, waiting)
    return _told(ring, "request")


@command(app)
def approve(
    request: Annotated[Path, typer.Argument(help="The party's request, a .csr file.")],
    *,
    folder: Folder = _FOLDER,
    fingerprint: Fingerprint = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="How long the certificate is valid.")
    ] = CERTIFICATE_DAYS,
    passphrase_file: PassphraseFile = None,
) -> Result:
    """Issue a certificate for a request, after comparing its fingerprint with the party's owner."""
    ring = Keyring.open(folder)
    waiting = parse_request(read(request), where=request)
    subject = certificates.subject_of(waiting)
    console.note(f"{subject.role} {subject.name!r} {' '.join(subject.hosts)}".rstrip())
    warn_of_earlier(ring, subject.name)
    actual = certificates.key_fingerprint(waiting)
    compare("key of the request", actual=actual, expected=fingerprint)
    certificate, path = ring.approve(
        waiting, days=days, now=system_clock(), passphrase=passphrase_in(passphrase_file)
    )
    console.note(f"send {path} and {ring.files.authority} to {subject.name!r}; neither is secret")
    described = Described(certificate)
    return Result(
        {"certificate": described, "file": path},
        [described.line("certificate")],
        warnings=described.warnings(),
    )


@command(app)
def accept(
    certificate: Annotated[Path, typer.Argument(help="The certificate that was issued.")],
    *,
    folder: Folder = _FOLDER,
    authority: Annotated[
        Path | None, typer.Option(help="The authority's certificate; needed the first time.")
    ] = None,
    fingerprint: Fingerprint = None,
) -> Result:
    """Take an approved certificate into use; the first time, the authority as well."""
    ring = Keyring.open(folder)
    if authority is not None:
        data = read(authority)
        trusted = parse_certificates(data, where=authority)[0]
        if ring.authority() is None:
            compare("authority", actual=certificates.fingerprint(trusted), expected=fingerprint)
        ring.trust(data, where=authority)
    elif ring.authority() is None:
        raise InputError("the authority is not known here yet. Name its file with --authority")
    ring.accept(read(certificate), where=certificate, now=system_clock())
    return _told(ring, "certificate")


@command(app)
def show(*, folder: Folder = _FOLDER) -> Result:
    """Show fingerprints and dates of everything in the folder. Nothing secret is shown."""
    ring = Keyring.open(folder)
    return _told(ring, "authority", "certificate", "request", "identity", "issued")


@command(app)
def identity(
    *,
    folder: Folder = _FOLDER,
    ask_passphrase: AskPassphraseFlag = False,
    passphrase_file: PassphraseFile = None,
) -> Result:
    """Make an identity by itself: for an owner who signs releases, or a curator that has none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = init_identity(folder, passphrase=new_passphrase(passphrase_file, ask=ask_passphrase))
    console.note(
        f"keep {folder / 'identity.key'} safe; readers of your releases want to know this:"
    )
    fingerprint = identity.fingerprint
    return Result({"identity": fingerprint}, [f"identity     {fingerprint}"])


@command(app)
def rotate(
    *,
    folder: Folder = _FOLDER,
    passphrase_file: PassphraseFile = None,
) -> Result:
    """Make a new key and ask for its certificate; the old one stays valid until it expires."""
    ring = Keyring.open(folder)
    renewed = ring.rotate(now=system_clock(), passphrase=passphrase_in(passphrase_file))
    if renewed is None:
        return _told(ring, "request")
    console.note("a running curator takes it up by itself; open connections go on")
    return _told(ring, "certificate")


@command(app)
def passphrase(
    *,
    folder: Folder = _FOLDER,
    passphrase_file: PassphraseFile = None,
    new_passphrase_file: Annotated[
        Path | None,
        typer.Option(help="A file whose first line is the new one; else you are asked."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the passphrase: file modes protect the keys.")
    ] = False,
) -> Result:
    """Put the identity and the authority's key under another passphrase, or a first one."""
    ring = Keyring.open(folder)
    if remove and new_passphrase_file is not None:
        raise InputError("give --remove or --new-passphrase-file, not both")
    new = None if remove else chosen_passphrase(new_passphrase_file)
    changed = ring.protect(old=passphrase_in(passphrase_file), new=new)
    protection = "mode 0600 only" if new is None else "under the new passphrase"
    return Result(
        {"files": changed, "encrypted": new is not None},
        [f"{path}: {protection}" for path in changed],
    )


@command(app)
def revoke(
    certificate: Annotated[str, typer.Argument(help="A certificate's file, or its fingerprint.")],
    *,
    folder: Folder = _FOLDER,
    reason: Annotated[str, typer.Option(help="A note for the list.")] = "",
) -> Result:
    """Put a certificate on the curator's revocation list; it is refused from the next call on."""
    ring = Keyring.open(folder)
    if ring.role is not Role.CURATOR:
        raise InputError(f"{folder}: certificates are revoked at the curator")
    fingerprint = certificate.upper()
    path = Path(certificate)
    if path.is_file():
        fingerprint = certificates.fingerprint(parse_certificates(read(path), where=path)[0])
    if not reason.isprintable():
        raise InputError("--reason: the note must be one line. Shorten it")
    added = ring.revoke(fingerprint, reason=reason)
    words = "revoked" if added else "was revoked already"
    return Result({"revoked": fingerprint, "already": not added}, [f"{words}  {fingerprint}"])


def warn_of_earlier(ring: Keyring, name: str) -> None:
    """Warn of a certificate that was issued to this name before."""
    for earlier in ring.issued():
        if certificates.subject_of(earlier).name == name:
            console.warn(
                f"{name!r} has a certificate until {earlier.not_valid_after_utc:%Y-%m-%d} "
                f"({certificates.fingerprint(earlier)}): is this a rotation?"
            )


def compare(what: str, *, actual: str, expected: str | None) -> None:
    """Go on only after the fingerprint was compared."""
    console.note(f"fingerprint of the {what}:")
    console.note(actual)
    if expected is not None:
        if expected.strip().upper() != actual:
            raise InputError(
                f"the fingerprint of the {what} is not the one you were told. Stop here"
            )
    elif not sys.stdin.isatty():
        raise InputError(
            f"the fingerprint of the {what} was not confirmed. Compare it with its owner's, and "
            "give it with --fingerprint"
        )
    elif not typer.confirm(
        "Is this what the other side sees, by telephone or in person?", err=True
    ):
        raise InputError("you did not confirm, so nothing was changed")


def _described(certificate: x509.Certificate | None) -> Described | None:
    return None if certificate is None else Described(certificate)


def _told(ring: Keyring, *shown: str) -> Result:
    """Return everything in the folder; lines say what is named, or what waits for approval."""
    public = ring.public_identity
    waiting = certificates.key_fingerprint(ring.read_request()) if ring.request.exists() else None
    form = {
        "role": ring.role.value,
        "authority": _described(ring.authority()),
        "certificate": _described(ring.certificate()),
        "request": waiting,
        "identity": load_public_identity(public).fingerprint if public.exists() else None,
        "issued": tuple(map(Described, ring.issued())),
    }
    if len(shown) == 1 and form[shown[0]] is None:
        shown = ("request",)
    if waiting is not None and "request" in shown:
        console.note(
            f"send {ring.request} to the authority's operator and tell them this fingerprint:"
        )
    return Result(form, _lines(form, shown), warnings=_expiring(form, shown))


def _lines(form: Mapping[str, Any], shown: Sequence[str]) -> Iterator[str]:
    for what in shown:
        value = form[what]
        if what in ("authority", "certificate"):
            yield f"{what:<12} none yet" if value is None else value.line(what)
        elif what == "issued":
            yield from (certificate.line("issued") for certificate in value)
        elif value is not None:
            yield f"{what:<12} {value}"


def _expiring(form: Mapping[str, Any], shown: Sequence[str]) -> Iterator[str]:
    dated = [form[what] for what in shown if what in ("authority", "certificate")]
    for certificate in [*filter(None, dated), *(form["issued"] if "issued" in shown else ())]:
        yield from certificate.warnings()
