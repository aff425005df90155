"""`parley verify` and `parley bundle`: is a release what its makers signed, and all in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from common.privacy.statement import UNIT_OF_PRIVACY
from common.release import folder as releases
from common.release.archive import bundle
from common.release.spreadsheet import check_copy, write_safe_copy
from common.release.verify import ON_TRUST, Verified, verify
from parley.cli import console
from parley.cli.commands import new_app
from parley.cli.options import Overwrite, Release, promise_words
from parley.cli.result import Result, command

app = new_app()


def checked_release(release: Verified) -> Result:
    """Return what is known about a release: lines only of one that is to be relied on."""
    # Whether everything was checked that this version can check.
    whole = release.verified or bool(release.consistency.not_derived)
    privacy = release.consistency.privacy if whole else {}
    return Result(
        release.as_json(),
        _lines(release, privacy, whole=whole),
        warnings=_warnings(release, privacy),
        require=release.require,
    )


def _lines(release: Verified, privacy: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    release.require()
    manifest, files = release.checked.manifest, len(release.checked.files)
    agree = ", and they agree with each other" if whole else ""
    word = "checked" if release.consistency.not_derived else "verified"
    yield f"{word} {release.where}: {files} files are what the manifest says{agree}"
    if manifest.study is not None:
        yield f"study {manifest.study}"
    yield from map(str, release.signatures)
    if not privacy or privacy.get("private") is False:
        return
    source = (
        "as it follows from the study" if release.consistency.derived else "as its maker states"
    )
    rows = privacy["unit_of_privacy"] == UNIT_OF_PRIVACY
    whom = "one row of one owner" if rows else privacy["unit_of_privacy"]
    yield f"{promise_words(privacy)} for {whom}, {source}"
    for words in ON_TRUST:
        yield f"the makers' word: {words}"


def _warnings(release: Verified, privacy: Mapping[str, Any]) -> Iterator[str]:
    if not release.signatures:
        yield "it is not signed: files and manifest could have been changed alike"
    yield from release.remarks
    yield from (f"not checked: {words}" for words in release.not_checked)
    if privacy.get("private") is False:
        reasons = "; ".join(privacy["not_private_because"])
        yield f"NOT PRIVATE, as the release says itself: {reasons}. Do not publish it"


@command(app, "verify")
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
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="Accept a rehearsal, whose rows were simulated.")
    ] = False,
    safe_for_spreadsheets: Annotated[
        Path | None,
        typer.Option(help="A CSV file to write: the table, with formulas as text."),
    ] = None,
) -> Result:
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
        verified = verify(
            release,
            signers=signer or (),
            all_parties=all_parties,
            unsigned=unsigned,
            bytes_only=bytes_only,
            rehearsal=rehearsal,
            tell=tell,
        )
    if safe_for_spreadsheets is not None and not (verified.problems or verified.unknown_signers):
        write_safe_copy(release, target=safe_for_spreadsheets)
    return checked_release(verified)


@command(app, "bundle")
def bundle_release(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    *,
    out: Annotated[Path, typer.Option(help="The .zip to write.")],
    overwrite: Overwrite = False,
) -> Result:
    """Put a release folder into one .zip; the same release gives the same bytes.

    Every file is compared with the manifest first. `parley verify` reads the .zip as it is.
    """
    releases.check_file(out, overwrite=overwrite)
    with console.progress("bundling") as tell:
        bundle(release, target=out, tell=tell)
    size = out.stat().st_size
    return Result({"out": out, "bytes": size}, [f"{out}: {size:,} bytes"])
