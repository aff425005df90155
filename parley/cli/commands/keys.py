"""`parley keys`: the consortium's authority, and the keys and certificates of its members."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
from parley.cli.options import AsJson, chosen_passphrase, new_passphrase, passphrase_in

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


@app.command()
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
    json: AsJson = False,
) -> None:
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
    _tell(ring, "authority", ring.authority(), as_json=json)


@app.command()
def request(
    *,
    folder: Folder = _FOLDER,
    out: Annotated[Path | None, typer.Option(help="Write a copy of the request here.")] = None,
    json: AsJson = False,
) -> None:
    """Show the request that waits for approval, and the fingerprint to tell the curator."""
    ring = Keyring.open(folder)
    waiting = read(ring.request)
    if out is not None:
        write_new(out, waiting)
    _tell(ring, "certificate", None, as_json=json)


@app.command()
def approve(
    request: Annotated[Path, typer.Argument(help="The party's request, a .csr file.")],
    *,
    folder: Folder = _FOLDER,
    fingerprint: Fingerprint = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="How long the certificate is valid.")
    ] = CERTIFICATE_DAYS,
    passphrase_file: PassphraseFile = None,
    json: AsJson = False,
) -> None:
    """Issue a certificate for a request, after comparing its fingerprint with the party's owner."""
    ring = Keyring.open(folder)
    waiting = parse_request(read(request), where=request)
    subject = certificates.subject_of(waiting)
    key = certificates.key_fingerprint(waiting)
    console.note(f"{subject.role} {subject.name!r} {' '.join(subject.hosts)}".rstrip())
    for earlier in ring.issued():
        if certificates.subject_of(earlier).name == subject.name:
            console.warn(
                f"{subject.name!r} has a certificate until {earlier.not_valid_after_utc:%Y-%m-%d} "
                f"({certificates.fingerprint(earlier)}): is this a rotation?"
            )
    _compare("key of the request", key, fingerprint, as_json=json)
    certificate, path = ring.approve(
        waiting, days=days, now=system_clock(), passphrase=passphrase_in(passphrase_file)
    )
    if json:
        console.result_json({"certificate": _described(certificate), "file": str(path)})
    else:
        _show_certificate("certificate", certificate)
    console.note(f"send {path} and {ring.files.authority} to {subject.name!r}; neither is secret")


@app.command()
def accept(
    certificate: Annotated[Path, typer.Argument(help="The certificate that was issued.")],
    *,
    folder: Folder = _FOLDER,
    authority: Annotated[
        Path | None, typer.Option(help="The authority's certificate; needed the first time.")
    ] = None,
    fingerprint: Fingerprint = None,
    json: AsJson = False,
) -> None:
    """Take an approved certificate into use; the first time, the authority as well."""
    ring = Keyring.open(folder)
    if authority is not None:
        data = read(authority)
        trusted = parse_certificates(data, where=authority)[0]
        if ring.authority() is None:
            _compare("authority", certificates.fingerprint(trusted), fingerprint, as_json=json)
        ring.trust(data, where=authority)
    elif ring.authority() is None:
        raise InputError("the authority is not known here yet. Name its file with --authority")
    taken = ring.accept(read(certificate), where=certificate, now=system_clock())
    _tell(ring, "certificate", taken, as_json=json)


@app.command()
def show(*, folder: Folder = _FOLDER, json: AsJson = False) -> None:
    """Show fingerprints and dates of everything in the folder. Nothing secret is shown."""
    ring = Keyring.open(folder)
    if json:
        console.result_json(_as_json(ring))
        return
    _show_certificate("authority", ring.authority())
    _show_certificate("certificate", ring.certificate())
    if ring.request.exists():
        _show_request(ring)
    if ring.public_identity.exists():
        public = load_public_identity(ring.public_identity)
        console.result(f"identity     {public.fingerprint}")
    for one in ring.issued():
        _show_certificate("issued", one)


@app.command()
def identity(
    *,
    folder: Folder = _FOLDER,
    ask_passphrase: AskPassphraseFlag = False,
    passphrase_file: PassphraseFile = None,
    json: AsJson = False,
) -> None:
    """Make an identity by itself: for an owner who signs releases, or a curator that has none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = init_identity(folder, passphrase=new_passphrase(passphrase_file, ask=ask_passphrase))
    console.note(
        f"keep {folder / 'identity.key'} safe; readers of your releases want to know this:"
    )
    told = {"identity": made.fingerprint}
    console.show(told, f"identity     {made.fingerprint}", as_json=json)


@app.command()
def rotate(
    *,
    folder: Folder = _FOLDER,
    passphrase_file: PassphraseFile = None,
    json: AsJson = False,
) -> None:
    """Make a new key and ask for its certificate; the old one stays valid until it expires."""
    ring = Keyring.open(folder)
    renewed = ring.rotate(now=system_clock(), passphrase=passphrase_in(passphrase_file))
    _tell(ring, "certificate", renewed, as_json=json)
    if renewed is not None:
        console.note("a running curator takes it up by itself; open connections go on")


@app.command()
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
    json: AsJson = False,
) -> None:
    """Put the identity and the authority's key under another passphrase, or a first one."""
    ring = Keyring.open(folder)
    if remove and new_passphrase_file is not None:
        raise InputError("give --remove or --new-passphrase-file, not both")
    new = None if remove else chosen_passphrase(new_passphrase_file)
    changed = ring.protect(old=passphrase_in(passphrase_file), new=new)
    told = {"files": [str(path) for path in changed], "encrypted": new is not None}
    protected = "mode 0600 only" if new is None else "under the new passphrase"
    console.show(told, *(f"{path}: {protected}" for path in changed), as_json=json)


@app.command()
def revoke(
    certificate: Annotated[str, typer.Argument(help="A certificate's file, or its fingerprint.")],
    *,
    folder: Folder = _FOLDER,
    reason: Annotated[str, typer.Option(help="A note for the list.")] = "",
    json: AsJson = False,
) -> None:
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
    told = {"revoked": fingerprint, "already": not added}
    word = "revoked" if added else "was revoked already"
    console.show(told, f"{word}  {fingerprint}", as_json=json)


def _compare(what: str, actual: str, told: str | None, *, as_json: bool) -> None:
    """Go on only after the fingerprint was compared."""
    console.note(f"fingerprint of the {what}:")
    (console.note if as_json else console.result)(actual)
    if told is not None:
        if told.strip().upper() != actual:
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


def _as_json(ring: Keyring) -> dict[str, object]:
    """Return what `show` and every command that changes it print; None for what is missing."""
    public = ring.public_identity
    identity = load_public_identity(public).fingerprint if public.exists() else None
    request = certificates.key_fingerprint(ring.read_request()) if ring.request.exists() else None
    return {
        "role": ring.role.value,
        "authority": _described(ring.authority()),
        "certificate": _described(ring.certificate()),
        "request": request,
        "identity": identity,
        "issued": [_described(each) for each in ring.issued()],
    }


def _described(certificate: x509.Certificate | None) -> dict[str, str] | None:
    if certificate is None:
        return None
    return {
        "fingerprint": certificates.fingerprint(certificate),
        "name": _name(certificate),
        "from": certificate.not_valid_before_utc.isoformat(),
        "until": certificate.not_valid_after_utc.isoformat(),
    }


def _name(certificate: x509.Certificate) -> str:
    try:
        return certificates.subject_of(certificate).name
    except InputError:  # the authority itself
        return certificate.subject.rfc4514_string()


def _tell(ring: Keyring, what: str, certificate: x509.Certificate | None, *, as_json: bool) -> None:
    """Say what is new: a certificate, or else the request that waits for one."""
    if as_json:
        console.result_json(_as_json(ring))
    elif certificate is None:
        _show_request(ring)
    else:
        _show_certificate(what, certificate)


def _show_request(ring: Keyring) -> None:
    waiting = ring.read_request()
    console.note(f"send {ring.request} to the authority's operator and tell them this fingerprint:")
    console.result(f"request      {certificates.key_fingerprint(waiting)}")


def _show_certificate(what: str, certificate: x509.Certificate | None) -> None:
    if certificate is None:
        console.result(f"{what:<12} none yet")
        return
    console.result(
        f"{what:<12} {certificates.fingerprint(certificate)}  {_name(certificate)}, "
        f"{certificate.not_valid_before_utc:%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}"
    )
    warning = certificates.expiry_warning(certificate, at=system_clock())
    if warning is not None:
        console.warn(warning)
