"""`parley verify` and `parley bundle`: is a release what its makers signed, and all in one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from common.errors import ParleyError
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


@dataclass(frozen=True)
class CheckedRelease(Result):
    """What is known about a release: lines of one that is to be relied on, and what is not."""

    release: Verified

    def as_json(self) -> object:
        return self.release.as_json()

    def lines(self) -> Iterator[str]:
        self.require()
        release, manifest = self.release, self.release.checked.manifest
        agree = ", and they agree with each other" if self._whole else ""
        word = "checked" if release.not_derived else "verified"
        files = len(release.checked.files)
        yield f"{word} {release.where}: {files} files are what the manifest says{agree}"
        if manifest.study is not None:
            yield f"study {manifest.study}"
        yield from map(str, release.signatures)
        if self._whole and release.consistency is not None:
            yield from self._promise(release.consistency.privacy)

    @property
    def _whole(self) -> bool:
        """Whether everything was checked that this version can check."""
        return self.release.verified or bool(self.release.not_derived)

    def _promise(self, privacy: Mapping[str, Any]) -> Iterator[str]:
        if privacy.get("private") is False:
            return
        source = "as it follows from the study" if self.release.derived else "as its maker states"
        rows = privacy["unit_of_privacy"] == UNIT_OF_PRIVACY
        whom = "one row of one owner" if rows else privacy["unit_of_privacy"]
        yield f"{promise_words(privacy)} for {whom}, {source}"
        for words in ON_TRUST:
            yield f"the makers' word: {words}"

    def warnings(self) -> Iterator[str]:
        release = self.release
        if not release.signatures:
            yield "it is not signed: files and manifest could have been changed alike"
        yield from release.remarks
        yield from (f"not checked: {words}" for words in release.not_checked)
        stated = release.consistency.privacy if self._whole and release.consistency else {}
        if stated.get("private") is False:
            reasons = "; ".join(stated["not_private_because"])
            yield f"NOT PRIVATE, as the release says itself: {reasons}. Do not publish it"

    @property
    def relied_on(self) -> bool:
        """Whether nothing speaks against the release."""
        try:
            self.require()
        except ParleyError:
            return False
        return True

    def require(self) -> None:
        self.release.require()


@dataclass(frozen=True)
class Bundled(Result):
    """A release in one file."""

    out: Path
    bytes: int

    def lines(self) -> Iterator[str]:
        yield f"{self.out}: {self.bytes:,} bytes"


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
) -> CheckedRelease:
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
    checked = CheckedRelease(verified)
    if safe_for_spreadsheets is not None and checked.relied_on:
        write_safe_copy(release, target=safe_for_spreadsheets)
    return checked


@command(app, "bundle")
def bundle_release(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    *,
    out: Annotated[Path, typer.Option(help="The .zip to write.")],
    overwrite: Overwrite = False,
) -> Bundled:
    """Put a release folder into one .zip; the same release gives the same bytes.

    Every file is compared with the manifest first. `parley verify` reads the .zip as it is.
    """
    releases.check_file(out, overwrite=overwrite)
    with console.progress("bundling") as tell:
        bundle(release, target=out, tell=tell)
    return Bundled(out, out.stat().st_size)
