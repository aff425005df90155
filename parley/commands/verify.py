"""`parley verify`: is a release what its makers signed?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parley import console
from parley.commands import new_app
from parley.commands.options import AsJson
from parley.verification import Verified, signer_text, verify

app = new_app()


@app.command(name="verify")
def verify_release(
    release: Annotated[Path, typer.Argument(help="The release: a folder or a .zip.")],
    *,
    signer: Annotated[
        list[str] | None,
        typer.Option(help="A fingerprint that must be among the signatures. Repeatable."),
    ] = None,
    all_parties: Annotated[
        bool, typer.Option("--all-parties", help="Every party must have countersigned.")
    ] = False,
    bytes_only: Annotated[
        bool,
        typer.Option("--bytes-only", help="Hashes and signatures; not whether files agree."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Check every file of a release against its manifest, and the manifest's signatures.

    Then whether the files agree: privacy statement and model are derived again from the study and
    what was published during it. Nothing is unpacked. Exit code 0, or 3 with the files at fault.

    A signature says who vouches, not that you should trust them: compare the fingerprint with one
    that you were told, or give it as --signer.
    """
    with console.progress("verifying") as tell:
        found = verify(
            release,
            signers=signer or (),
            all_parties=all_parties,
            bytes_only=bytes_only,
            tell=tell,
        )
    if json:
        console.result_json(found.as_json())
        if found.problems:
            raise typer.Exit(3)
        return
    found.require()
    report(found)


def report(found: Verified) -> None:
    """What is known about a release to rely on, for people."""
    files = len(found.checked.manifest.files)
    agreed = "" if found.agreement is None else ", and they agree with each other"
    console.result(f"verified {found.where}: {files} files are what the manifest says{agreed}")
    for signature in found.signatures:
        console.result(signer_text(signature))
    if not found.signatures:
        console.warn("nobody signed it: whoever had it could have changed files and manifest alike")
    if found.agreement is None:
        return
    for each in found.agreement.not_checked:
        console.warn(f"not checked: {each}")
    privacy = found.agreement.privacy
    if privacy.get("private") is False:
        console.warn("NOT PRIVATE: the release says so itself; do not publish it")
        return
    epsilon = privacy.get("epsilon_delivered")
    if isinstance(epsilon, int | float):  # not so in what another version wrote, or somebody else
        console.result(f"epsilon {epsilon:g} for one row of one owner")
