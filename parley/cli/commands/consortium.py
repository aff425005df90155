"""`parley consortium`: invite owners, join by one command, and admit who joined.

operator   parley consortium invite north        writes north.invitation.toml
owner      parley consortium accept FILE         makes keys, settings, a draft of a policy
operator   parley consortium approve FILE        issues the certificate, keeps the identity
owner      parley keys accept north.pem          and the node can connect
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from common.crypto.key_files import load_public_identity
from common.errors import InputError
from common.files import read, replace, whole_folder, write_new
from common.schema.toml import toml
from common.service.process import software, system_clock
from common.service.settings import check_address
from common.wire.pki import certificates
from common.wire.pki.certificates import subject_of
from common.wire.pki.credentials import parse_certificates
from common.wire.pki.invitations import Application, Invitation, file_name
from common.wire.pki.keyring import CERTIFICATE_DAYS, Keyring, init_party
from curator.settings import curator_settings
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.commands.keys import (
    AskPassphraseFlag,
    Described,
    Fingerprint,
    PassphraseFile,
    compare,
    warn_of_earlier,
)
from parley.cli.options import Config, new_passphrase, passphrase_in
from parley.cli.result import Result, command, listed

app = new_app("How owners join a consortium: one file and one command each.")

_PARTY = """\
# How our node runs: `parley party join --config party.toml`. All keys: docs/reference.
folder = "state"              # ledger, journal, decisions; back it up, never roll it back
keys = "keys"
policy = "policy.toml"
curator = {curator}

[source]                      # where our rows are
kind = "csv"
path = {rows}
"""
_POLICY = """\
# A DRAFT: what we take part in. Everything outside is refused; read every line before you run.
[budget]
epsilon_per_study = "1"       # the most that one study may cost a row
epsilon_in_total = "4"        # the most that all studies together may cost a row, ever
max_delta = "0"               # pure epsilon only

[study]
min_parties = 3
signers = [{signer}]  # who may sign studies: the curator's identity
curators = [
    {authority},
]                             # whose curator may run them: the consortium's authority

[approval]
automatic = false             # every study waits for us
"""


@command(app)
def invite(
    names: Annotated[list[str], typer.Argument(help="The names that the owners go by.")],
    *,
    config: Config = None,
    address: Annotated[
        str,
        typer.Option(
            help="HOST:PORT that owners dial. [default: the certificate's first name, the "
            "settings' port]",
            show_default=False,
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="The folder for the invitations.")] = Path(),
) -> Result:
    """Write an invitation for every owner: address, authority, name. Nothing in it is secret.

    Send every owner its file, and read out its fingerprint by telephone: it stands for all that the
    file says.
    """
    settings = curator_settings(config, os.environ).values
    ring = Keyring.open(settings.keys)
    dialled = address or _first_address(ring, settings.listen)
    _check_dialled(dialled, ring)
    trusted = ring.files.authority
    authorities = parse_certificates(read(trusted), where=trusted)
    invitations = [
        Invitation(
            party=name,
            curator=dialled,
            signer=load_public_identity(ring.public_identity).fingerprint,
            software=software(),
            authorities=tuple(authorities),
        )
        for name in dict.fromkeys(names)
    ]
    files = [
        out / file_name(invitation.party, ending="invitation.toml") for invitation in invitations
    ]
    _refuse_taken(files)
    out.mkdir(parents=True, exist_ok=True)
    for invitation, file in zip(invitations, files, strict=True):
        write_new(file, invitation.to_toml().encode())
        console.note(
            f"send {file} to {invitation.party!r}, and read out its fingerprint by telephone:"
        )
    return listed(
        Result(
            {"party": one.party, "fingerprint": one.fingerprint, "file": file},
            [f"{one.party:<12} {one.fingerprint}"],
        )
        for one, file in zip(invitations, files, strict=True)
    )


@command(app)
def accept(
    invitation: Annotated[Path, typer.Argument(help="The invitation, a .toml file.")],
    *,
    fingerprint: Fingerprint = None,
    folder: Annotated[Path, typer.Option(help="Where the node's files are to be.")] = Path(),
    rows: Annotated[
        Path | None,
        typer.Option(
            help="The CSV file with your rows. [default: rows.csv in the folder]",
            show_default=False,
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    ask_passphrase: AskPassphraseFlag = False,
) -> Result:
    """Join a consortium: make keys, settings, a draft of a policy, and an application to send.

    Compare the fingerprint that the operator reads out: it stands for the whole invitation. Private
    keys never leave the folder. Nothing is sent, and nothing that exists is overwritten.
    """
    invited = Invitation.load(invitation)
    console.note(f"party {invited.party!r}, curator {invited.curator}, {invited.software}")
    settings, policy = folder / "party.toml", folder / "policy.toml"
    applying = folder / file_name(invited.party, ending="application.toml")
    _refuse_taken([settings, policy, applying])
    compare("invitation", actual=invited.fingerprint, expected=fingerprint)
    passphrase = new_passphrase(passphrase_file, ask=ask_passphrase)
    place = os.path.relpath(rows or folder / "rows.csv", folder)  # as paths in settings are
    with whole_folder(folder / "keys"):
        ring = init_party(folder / "keys", invited.party, passphrase=passphrase)
        ring.trust(invited.authority_pem, where=invitation)
        identity = load_public_identity(ring.public_identity)
        application = Application(request=ring.read_request(), identity=identity)
        write_new(settings, _PARTY.format(curator=toml(invited.curator), rows=toml(place)).encode())
        write_new(policy, _policy(invited).encode())
        write_new(applying, application.to_toml().encode())
    return Result(
        {
            "party": invited.party, "fingerprint": application.fingerprint,
            "application": applying, "settings": settings, "policy": policy,
        },
        [f"application  {application.fingerprint}"],
        remarks=[
            f"send {applying} to the operator, and read out its fingerprint by telephone",
            f"read {policy}, a draft; write into {settings} where your rows are",
            f"with the certificate you get: `parley keys accept FILE --folder {folder / 'keys'}`",
            f"then: `parley doctor party --config {settings}`",
        ],
    )  # fmt: skip


@command(app)
def approve(
    application: Annotated[Path, typer.Argument(help="The owner's application, a .toml file.")],
    *,
    config: Config = None,
    fingerprint: Fingerprint = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="How long the certificate is valid.")
    ] = CERTIFICATE_DAYS,
    passphrase_file: PassphraseFile = None,
) -> Result:
    """Issue an owner's certificate, after comparing the fingerprint that the owner reads out.

    The fingerprint stands for the owner's identity as well, which is kept for studies in `members`
    beside the keys.
    """
    ring = Keyring.open(curator_settings(config, os.environ).values.keys)
    applying = Application.load(application)
    console.note(f"party {applying.party!r}, identity {applying.identity.fingerprint}")
    warn_of_earlier(ring, applying.party)
    compare("application", actual=applying.fingerprint, expected=fingerprint)
    certificate, path = ring.approve(
        applying.request, days=days, now=system_clock(), passphrase=passphrase_in(passphrase_file)
    )
    identity_file = ring.folder / "members" / file_name(applying.party, ending="pub")
    identity_file.parent.mkdir(exist_ok=True)
    if identity_file.exists() and load_public_identity(identity_file) != applying.identity:
        console.warn(
            f"{identity_file}: {applying.party!r} has another identity now; new studies pin it"
        )
    replace(identity_file, f"{applying.identity.text}\n".encode())
    described, identity = Described(certificate), applying.identity.fingerprint
    return Result(
        {
            "party": applying.party, "certificate": described, "identity": identity,
            "file": path, "identity_file": identity_file,
        },
        [described.line("certificate"), f"identity     {identity}"],
        remarks=[
            f"send {path} to {applying.party!r}; it is not secret",
            f"in studies: `--party {applying.party}:ROWS:{identity_file}`",
        ],
    )  # fmt: skip


def _hosts(ring: Keyring) -> tuple[str, ...]:
    """Return the names and addresses in the curator's certificate."""
    certificate = ring.certificate()
    if certificate is None:
        raise InputError(f"{ring.folder}: there is no certificate yet. See `parley keys show`")
    hosts = subject_of(certificate).hosts
    if not hosts:
        raise InputError(f"{ring.folder}: these are keys of a party. Name the curator's settings")
    return hosts


def _first_address(ring: Keyring, listen: str) -> str:
    host = _hosts(ring)[0]
    return f"{f'[{host}]' if ':' in host else host}:{listen.rpartition(':')[2]}"


def _check_dialled(address: str, ring: Keyring) -> None:
    """Refuse an address at which owners would not trust the curator."""
    check_address("--address", address, least_port=1)
    host, hosts = address.rpartition(":")[0].strip("[]"), _hosts(ring)
    if host not in hosts:
        raise InputError(
            f"--address {address}: the curator's certificate is for {', '.join(hosts)}. Owners "
            "would refuse it; name one of these, or make keys with `--host`"
        )


def _refuse_taken(files: list[Path]) -> None:
    for file in files:
        if file.exists():
            raise InputError(f"{file}: it exists. Move it away, or name another folder")


def _policy(invited: Invitation) -> str:
    return _POLICY.format(
        signer=toml(invited.signer),
        authority=toml(certificates.fingerprint(invited.authorities[0])),
    )
