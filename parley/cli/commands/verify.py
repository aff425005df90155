"""`parley verify` and `parley bundle`: is a release what its makers signed, and all in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from common.release import folder as releases
from common.release.archive import bundle
from common.release.spreadsheet import check_copy, write_safe_copy
from common.release.verify import ON_TRUST, Verified, verify
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.exit_codes import ExitCode
from parley.cli.options import AsJson, Overwrite, Release, promise_words

app = new_app()


@app.command(name="verify")
def verify_release(
    release: Release,
    *,
    signer: Annotated[
        list[str] | None,
        typer.Option(help="A fingerprint that must be among the signatures. Repeatable."),
    ] = None,
    all_parties: Annotated[
        bool,
        typer.Option(
            "--all-parties", help="Every party must have countersigned, and the curator signed."
        ),
    ] = False,
    unsigned: Annotated[
        bool,
        typer.Option(
            "--unsigned", help="Accept a release without a signature of a known identity."
        ),
    ] = False,
    bytes_only: Annotated[
        bool,
        typer.Option("--bytes-only", help="Hashes and signatures; not whether files agree."),
    ] = False,
    safe_for_spreadsheets: Annotated[
        Path | None,
        typer.Option(help="A CSV file to write: the table, with formulas as text."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every file of a release against its manifest, and the manifest's signatures.

    Then whether the files agree: privacy statement and model are derived again from the study and
    what was published during it. If this version does not have the version of the method that made
    the model, that is not derived again, and said. The pages are their maker's word.

    Exit code 0 if all that was checked is right, or 3 with the files at fault, or 6 if a later
    version of parley made the release in a format of its own, or 9 if only keys signed it that the
    study's digest does not stand for.

    A party or the curator that study.toml pins must have signed; of a release of one owner, its
    maker. A signature says who vouches, not that you should trust them: compare the fingerprint
    with one that you were told, or give it as --signer.
    """
    if safe_for_spreadsheets is not None:
        check_copy(release, target=safe_for_spreadsheets)
    with console.progress("verifying") as tell:
        found = verify(
            release,
            signers=signer or (),
            all_parties=all_parties,
            unsigned=unsigned,
            bytes_only=bytes_only,
            tell=tell,
        )
    if json:
        console.result_json(found.as_json())
        if found.problems:
            raise typer.Exit(ExitCode.INPUT)
        if found.unknown_signers:
            raise typer.Exit(ExitCode.UNKNOWN_SIGNER)
    else:
        found.require()
        report(found)
    if safe_for_spreadsheets is not None:
        write_safe_copy(release, target=safe_for_spreadsheets)


def report(found: Verified) -> None:
    """Print what is known about a release without problems."""
    whole = found.verified or found.not_derived
    agree = ", and they agree with each other" if whole else ""
    word = "checked" if found.not_derived else "verified"
    files = len(found.checked.files)
    console.result(f"{word} {found.where}: {files} files are what the manifest says{agree}")
    if found.checked.manifest.study is not None:
        console.result(f"study {found.checked.manifest.study}")
    for signature in found.signatures:
        console.result(str(signature))
    if not found.signatures:
        console.warn("it is not signed: files and manifest could have been changed alike")
    for words in [*found.remarks, *(f"not checked: {each}" for each in found.not_checked)]:
        console.warn(words)
    if whole and found.consistency is not None:
        _report_epsilon(found.consistency.privacy, derived=found.derived)


def _report_epsilon(privacy: Mapping[str, Any], *, derived: bool) -> None:
    if privacy.get("private") is False:
        console.warn("NOT PRIVATE: the release says so itself; do not publish it")
        return
    source = "as it follows from the study" if derived else "as its maker states"
    console.result(f"{promise_words(privacy)} for one row of one owner, {source}")
    for each in ON_TRUST:
        console.result(f"the makers' word: {each}")


@app.command(name="bundle")
def bundle_release(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    *,
    out: Annotated[Path, typer.Option(help="The .zip to write.")],
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Put a release folder into one .zip; the same release gives the same bytes.

    Every file is compared with the manifest first. `parley verify` reads the .zip as it is.
    """
    releases.check_file(out, overwrite=overwrite)
    with console.progress("bundling") as tell:
        bundle(release, target=out, tell=tell)
    size = out.stat().st_size
    console.show({"out": str(out), "bytes": size}, f"{out}: {size:,} bytes", as_json=json)
