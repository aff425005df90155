"""The release that a study builds on, in the part that a study needs: its table, and who signed it.

    priors = Priors(state / "priors")
    digest = priors.add(last_years_release)     # study.prior
    run = priors.begin(study)                   # the study's script, with these rows

A prior is a .zip with the manifest of a release, its signatures, its schema, its study and its
table: the first is what the digest is of, and has the digests of the others. The curator hands it
to the parties, and a release has that of its study in `prior.zip`, so that it can be verified by
itself. `replay` runs a study's script again on the results in a release, with its prior.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from common.errors import InputError, RemoteProtocolError
from common.files import make_private_folder, replace
from common.methods.prior import Prior
from common.methods.registry import run_of
from common.release import folder as release
from common.release.archive import zip_pieces
from common.release.contents import Contents, copy_into, open_release
from common.release.folder import read_schema, read_study
from common.release.integrity import Fault, check_bytes
from common.release.manifest import FOLDER, MANIFEST
from common.release.synthetic_table import read_codes
from common.schema import Codes, Schema
from common.study.document import Study
from common.study.script import ScriptRun, drive
from common.study.steps import Result, Step
from common.wording import many


@dataclass(frozen=True, eq=False)
class PriorRelease:
    """What a study needs of an earlier release."""

    data: bytes  # the .zip
    digest: str  # the SHA-256 of the release's manifest
    name: str  # of the study that it is a release of; empty for a release of one owner
    signers: tuple[str, ...]  # who signed it, in words
    schema: Schema  # its public domains
    table: Codes  # its synthetic rows

    @cached_property
    def rows(self) -> Prior:
        return Prior(self.table)

    def require(self, study: Study) -> PriorRelease:
        """Return this; InputError if it is not what the study names as its prior."""
        if self.digest != study.prior:
            raise InputError(
                f"prior: this is release {self.digest[:16]}, study {study.name!r} names "
                f"{study.prior[:16] or 'none'}"
            )
        check_schema(self, study.schema)
        return self

    def begin(self, study: Study) -> ScriptRun:
        return run_of(study, self.require(study).rows)


def check_schema(prior: PriorRelease, schema: Schema) -> None:
    """Refuse a release of another schema, naming the columns that differ."""
    if prior.schema.digest() == schema.digest():
        return
    before, after = (
        {attribute.name: Schema((attribute,)).digest() for attribute in domains.attributes}
        for domains in (prior.schema, schema)
    )
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    raise InputError(
        f"prior: release {prior.digest[:16]} has another schema than the study "
        f"({', '.join(differing) or 'its rules, or the order of its columns'}). A prior needs the "
        "same columns, values and rules: leave it out, or keep the schema"
    )


def read_prior(path: Path) -> PriorRelease:
    """Read a release, a folder or a .zip, or a prior, which is a part of a release.

    The files that are there must be what the manifest says, and every signature right.
    """
    with open_release(path) as contents:
        checked = check_bytes(contents)
        wrong = [problem for problem in checked.problems if problem.kind is not Fault.MISSING]
        if wrong:
            raise InputError(f"prior: {path}: {wrong[0]}")
        tables = sorted(checked.manifest.files.keys() & set(release.TABLES))
        if len(tables) != 1:
            raise InputError(f"prior: {path}: it has no table of synthetic rows, or two")
        study = None if checked.manifest.study is None else read_study(contents)
        if study is not None and study.rehearsal:
            raise InputError(f"prior: {path}: it is of a rehearsal, whose rows were simulated")
        schema = read_schema(contents)
        if schema.events is not None:
            raise InputError(
                f"prior: {path}: it is of people and their {schema.events.name}, and only single "
                "tables can be built on. Leave it out"
            )
        names = {MANIFEST, release.SCHEMA, release.STUDY, tables[0]}
        names |= {file for file in contents.sizes() if file.startswith(f"{FOLDER}/")}
        return PriorRelease(
            data=b"".join(zip_pieces(contents, only=names)),
            digest=hashlib.sha256(checked.manifest_bytes).hexdigest(),
            name="" if study is None else study.name,
            signers=tuple(
                f"{signature.role.value} {signature.name}" for signature in checked.signatures
            ),
            schema=schema,
            table=read_codes(contents, tables[0], schema),
        )


def bundled_prior(contents: Contents, study: Study) -> PriorRelease | None:
    if not study.prior:
        return None
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch, contents.blaming(release.PRIOR):
        return read_prior(copy_into(Path(scratch), contents, release.PRIOR)).require(study)


class Priors:
    """The earlier releases that the studies of a node build on, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, PriorRelease] = {}

    def path(self, study: Study) -> Path | None:
        """Return the path of a study's prior, which may be missing; None if it has no prior."""
        return self._folder / f"{study.prior}.zip" if study.prior else None

    def has(self, study: Study) -> bool:
        """Return whether all that the script of a study needs is here."""
        path = self.path(study)
        return path is None or path.is_file()

    def add(self, path: Path) -> PriorRelease:
        """Put the part of a release that a prior is into the folder."""
        prior = read_prior(path)
        self._write(prior)
        return prior

    def keep(self, pieces: Iterable[bytes], study: Study, *, most: int) -> PriorRelease:
        """Put what the curator sends into the folder, if it is the prior of the study."""
        make_private_folder(self._folder)
        with tempfile.TemporaryDirectory(prefix=".coming-", dir=self._folder) as scratch:
            file, size = Path(scratch) / release.PRIOR, 0
            with file.open("wb") as stream:
                for piece in pieces:
                    size += len(piece)
                    if size > most:
                        raise InputError(f"prior: it has more than {most:,} bytes")
                    stream.write(piece)
            prior = read_prior(file).require(study)
        self._write(prior)
        return prior

    def of(self, study: Study) -> PriorRelease | None:
        """Return the prior of a study, if it names one; raise InputError if it is not here."""
        if not study.prior:
            return None
        if study.prior not in self._read:
            if not self.has(study):
                raise InputError(
                    f"prior: release {study.prior[:16]}, which study {study.name!r} builds on, is "
                    "not here. Hand it over with prior=..."
                )
            self._read[study.prior] = read_prior(self._folder / f"{study.prior}.zip")
        return self._read[study.prior].require(study)

    def begin(self, study: Study) -> ScriptRun:
        prior = self.of(study)
        return run_of(study) if prior is None else prior.begin(study)

    def _write(self, prior: PriorRelease) -> None:
        make_private_folder(self._folder)
        replace(self._folder / f"{prior.digest}.zip", prior.data)


def replay(
    study: Study,
    results: Sequence[bytes],
    missing: Mapping[str, int] = MappingProxyType({}),
    prior: PriorRelease | None = None,
) -> ScriptRun:
    """Run the study's script to its last step: it has every step, and can fit the model.

    `missing` has, for each party that went missing, the first step without it. Raise InputError
    if the results are not those of this study.
    """
    try:
        return _replay(study, results, missing, prior)
    except RemoteProtocolError as error:  # as from a peer, but a file has it
        raise InputError(f"the results are not those of study {study.name!r}: {error}") from error


def _replay(
    study: Study,
    results: Sequence[bytes],
    missing: Mapping[str, int],
    prior: PriorRelease | None,
) -> ScriptRun:
    run = run_of(study) if prior is None else prior.begin(study)
    unread = iter(results)

    def published(step: Step) -> Result:
        data = next(unread, None)
        if data is None:
            raise InputError(f"found {many(len(results), 'result')}, and the study has more steps")
        return step.read(study, data)

    drive(run, published, missing)
    if next(unread, None) is not None:
        number = len(run.steps)
        raise InputError(f"expected the results of {many(number, 'step')}, found {len(results)}")
    return run
