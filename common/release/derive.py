"""Are the files of a release consistent? For a study: do they follow from it?

A study and the results published during it determine every step, what it cost, and the model. So
for a release of several owners the privacy statement and the model are derived again, by the same
functions that a party's node uses, and compared. A release of a single owner has no study: there
the statement's own sum is checked. The pages are not looked at: what report.html says of the other
files is its maker's word.

What follows from the sums is a matter of the method, which has a version of its own. Where this
program has that version, everything must follow, whichever version of parley made the release;
only words and layout may be those of another version (`blame_form`), and a remark names their
files. Where it does not, this one thing is not derived again, and that is said. Everything else
holds in every version: the study's epsilon is compared with the statement, the statement's steps
with their sum, and their number with that of the published results.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, ParleyError, RemoteProtocolError
from common.methods.criteria import verdicts
from common.methods.registry import method_of, methods, publishes_rows, run_of
from common.privacy.statement import ROWS_NOT_AGREED, SEEDED, minor_version, versions
from common.release import folder as release
from common.release import range_file
from common.release.contents import Contents, FileError, read_json, read_text, read_whole
from common.release.folder import RESULTS, read_commitments, read_results, read_schema, read_study
from common.release.integrity import Checked, Fault, Problem
from common.release.manifest import (
    MANIFEST,
    Manifest,
    MethodVersion,
    SignerRole,
    json_text,
    sha256_of,
)
from common.release.model_file import (
    model_document,
    privbayes_content,
    ranges_content,
    read_privbayes,
    read_ranges,
    study_content,
)
from common.release.prior import PriorRelease, bundled_prior, replay
from common.release.stated import (
    OwnerStanding,
    adds_up,
    costs_add_up,
    is_agreed,
    standings,
    stated_disputes,
    stated_left,
    stated_missing,
)
from common.release.synthetic_table import KINDS, TableColumns, count_rows, read_linked, table_names
from common.study.accounting import account, missing_in, statement_of
from common.study.commitments import Commitments, require_tables
from common.study.document import Study
from common.study.steps import Step
from common.study.transcript import SETTING_UP, phases_of, transcript_of, without_times
from common.wavelet import NoisyMatrix
from common.wording import Reporter, many, silent

_FIRST_VERSION = 1  # of every method in parley 0.2, whose manifests name none
_MOST_TRANSCRIPT = 64 << 20
# PrivBayes has at most 0.7 epsilon / 8 numbers a row, of 30 bytes: this is 400 million rows at
# epsilon 1. Less would refuse an honest release; parsed, it takes three to ten times as much.
_MOST_MODEL = 1 << 30
# Keys of the statement that explain its numbers.
_WORDS = {
    "adversaries", "neighbours", "not_promised", "notes", "sampler", "unit_of_privacy",
    "what_delta_means",
}  # fmt: skip
_SAME = 1e-6  # relative, of a model's numbers: machines round differently, and no more than that


@dataclass(slots=True)
class Consistency:
    """What a comparison of the files with each other found."""

    study: Study | None = None  # what the owners agreed on, if there were several
    privacy: Mapping[str, Any] = field(default_factory=dict)  # the privacy statement
    results: tuple[bytes, ...] = ()  # what was published during the study
    commitments: Commitments | None = None  # what the owners committed to, if they did
    derived: bool = False  # whether statement and model follow from the study and the results
    problems: list[Problem] = field(default_factory=list)  # files that contradict another file
    not_checked: list[str] = field(default_factory=list)  # what could not be looked at, and why
    not_derived: str = ""  # why it was not derived again whether the model follows from the sums
    made_by: str | None = None  # the version of parley that made it, if it is another one
    other_forms: list[str] = field(default_factory=list)  # what that version wrote otherwise

    @property
    def owners(self) -> tuple[OwnerStanding, ...]:
        """How each owner stands to the sums, if the study may miss some; empty if not derived."""
        if self.study is None or not (self.study.may_miss and self.derived):
            return ()
        missing, left = self.privacy["missing"], self.privacy.get("left", ())
        return standings(self.study.parties, sums=len(self.results), missing=missing, left=left)

    def blame(self, file: str, *, why: str) -> None:
        """Record a file that is not what the other files say it must be."""
        self.problems.append(Problem(file, Fault.INCONSISTENT, why))

    def blame_form(self, file: str, *, why: str) -> None:
        """Record words or a layout that differ, which those of another version may."""
        if self.made_by is not None:
            self.other_forms.append(file)
        else:
            self.blame(file, why=why)


def method_of_release(manifest: Manifest, study: Study) -> MethodVersion:
    """Return which version of which method made the model of a study."""
    return manifest.method or MethodVersion(study.method, _FIRST_VERSION)


def check_consistency(
    contents: Contents, checked: Checked, *, tell: Reporter = silent
) -> Consistency:
    consistency = Consistency()
    try:
        _Comparison(contents, checked, consistency).run(tell)
    except FileError as error:
        consistency.blame(error.file, why=error.why)
    except ParleyError as error:
        consistency.blame("the release", why=str(error))
    except RecursionError:
        consistency.blame("the release", why="a file is nested too deeply to be compared")
    consistency.derived &= not consistency.problems
    return consistency


class _Comparison:
    """The files of one release, each compared with what the others imply.

    A contradiction is recorded in `consistency`, and the comparison goes on. A file that cannot be
    read ends it with a FileError.
    """

    def __init__(self, contents: Contents, checked: Checked, consistency: Consistency) -> None:
        self._contents = contents
        self._manifest = checked.manifest
        self._signatures = checked.signatures
        self._consistency = consistency
        self._schema = read_schema(contents)
        made_by = str(checked.manifest.versions.get("parley"))
        consistency.made_by = None if made_by == versions()["parley"] else made_by

    def run(self, tell: Reporter) -> None:
        """Compare every file; tell how far the work is."""
        consistency = self._consistency
        consistency.privacy = read_json(self._contents, release.STATEMENT)
        self._check_study()
        self._check_epsilon()
        tell(0.3, "reading the table")
        self._check_table()
        tell(0.5, "deriving the steps of the study again")
        if consistency.privacy.get("versions") != dict(self._manifest.versions):
            consistency.blame(release.STATEMENT, why="names other versions than the manifest")
        if read_text(self._contents, release.SCHEMA) != self._schema.to_toml():
            consistency.blame_form(release.SCHEMA, why="is not written as parley writes a schema")
        if consistency.study is None:
            self._single_owner()
        else:
            self._of_study(consistency.study)

    def _check_table(self) -> None:
        """Read the synthetic rows, if there are any: as many as the study says."""
        study = self._consistency.study
        if study is not None and not publishes_rows(study.method):
            return
        (name,) = self._manifest.files.keys() & set(release.TABLES)
        rows = self._count_rows(name)
        if study is not None and rows != (study.output_rows or study.rows):
            words = f"has {many(rows, study.schema.row)}, which is not what {release.STUDY} says"
            self._consistency.blame(name, why=words)

    def _count_rows(self, name: str) -> int:
        """Read the table, and that of events where the schema has them; return its rows."""
        schema, listed = self._schema, release.event_tables(self._manifest.files)
        expected = set() if schema.events is None else {table_names([name], schema)[1]}
        for file in sorted(listed ^ expected):
            words = "is there" if file in listed else "is missing"
            raise self._contents.error(file, why=f"{words}, against {release.SCHEMA}")
        if schema.events is None:
            return count_rows(self._contents, name, schema)
        return read_linked(self._contents, schema).rows

    def _check_study(self) -> None:
        consistency, digest = self._consistency, self._manifest.study
        roster: Mapping[str, PublicIdentity] = {}
        if digest is not None:
            study = consistency.study = read_study(self._contents)
            roster = study.roster
            if bool(study.prior) != (release.PRIOR in self._manifest.files):
                words = f"is there without one in {release.STUDY}, or missing"
                consistency.blame(release.PRIOR, why=words)
            if study.commitments != (release.COMMITMENTS in self._manifest.files):
                words = f"is there, and {release.STUDY} says that it is not, or missing"
                consistency.blame(release.COMMITMENTS, why=words)
            if study.digest.hex() != digest:
                consistency.blame(release.STUDY, why="its digest is not the manifest's")
            if study.schema.digest() != self._schema.digest():
                consistency.blame(release.SCHEMA, why=f"is not the schema of {release.STUDY}")
            if method_of_release(self._manifest, study).name != study.method:
                consistency.blame(MANIFEST, why=f"names another method than {release.STUDY}")
        for signature in self._signatures:
            if (
                signature.role is SignerRole.PARTY
                and roster.get(signature.name) != signature.identity
            ):
                words = f"the study pins no such identity for a party {signature.name!r}"
                consistency.problems.append(Problem(signature.file, Fault.SIGNATURE, words))

    def _check_epsilon(self) -> None:
        """Check what the statement says of epsilon, as far as it needs no derivation."""
        study, privacy = self._consistency.study, self._consistency.privacy
        try:
            agreed = study is None or is_agreed(privacy, study)
            right = adds_up(privacy) if study is None else costs_add_up(privacy, study)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InputError):
            agreed, right = study is None, study is not None
        if not agreed:
            words = f"states another epsilon than {release.STUDY}"
            self._consistency.blame(release.STATEMENT, why=words)
        elif not right:
            words = "its steps do not add up to the epsilon it states"
            self._consistency.blame(release.STATEMENT, why=words)

    def _single_owner(self) -> None:
        """Compare the model of a release without a study with its statement and its schema."""
        model = read_json(self._contents, release.MODEL, most=_MOST_MODEL)
        self._check_model(model)
        if release.RANGES in self._manifest.files:
            ranges, stored = read_ranges(self._contents)
            again = model_document(ranges_content(ranges), **stored._asdict())
            self._check_ranges(ranges, again)
        else:
            with self._contents.blaming(release.MODEL):
                bayes, stored = read_privbayes(model, where=release.MODEL)
            again = model_document(privbayes_content(bayes), **stored._asdict())
        if not self._consistency.problems and again != model:
            self._consistency.blame_form(
                release.MODEL, why="is not written as parley writes a model"
            )

    def _check_model(self, model: Mapping[str, Any]) -> None:
        consistency, schema = self._consistency, self._schema
        if model.get("privacy") != consistency.privacy:
            words = f"has another privacy statement than {release.STATEMENT}"
            consistency.blame(release.MODEL, why=words)
        if model.get("schema") != schema.to_toml():
            consistency.blame(release.MODEL, why=f"has another schema than {release.SCHEMA}")
        columns = model.get("columns")
        if (
            not isinstance(columns, dict)
            or set(columns) != set(schema.names)
            or not all(isinstance(kind, str) and kind in KINDS for kind in columns.values())
        ):
            consistency.blame(release.MODEL, why="its columns are not those of the schema")

    def _check_ranges(self, ranges: NoisyMatrix, stated: Mapping[str, object]) -> None:
        """Refuse a file that is not what these range counts are written to."""
        with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
            again = Path(scratch) / release.RANGES
            range_file.save(ranges, again, stated)
            with again.open("rb") as stream:
                if sha256_of(stream) != self._manifest.files[release.RANGES]:
                    words = "holds something besides the noisy counts"
                    raise self._contents.error(release.RANGES, why=words)

    def _of_study(self, study: Study) -> None:
        """Compare the files of a study with what it and its results imply."""
        consistency = self._consistency
        if read_text(self._contents, release.STUDY) != study.to_toml():
            consistency.blame_form(release.STUDY, why="is not written as parley writes a study")
        consistency.results = read_results(self._contents)
        consistency.commitments = read_commitments(self._contents, study)
        steps = consistency.privacy.get("steps")
        if not isinstance(steps, list) or len(consistency.results) != len(steps):
            consistency.blame(
                RESULTS, why=f"has another number of results than {release.STATEMENT}"
            )
        prior = bundled_prior(self._contents, study)
        reason = self._reason_not_to_derive(study, prior)
        if reason:
            consistency.not_derived = f"whether the model follows from the sums: {reason}"
            self._check_model(read_json(self._contents, release.MODEL, most=_MOST_MODEL))
            self._check_commitments(study, None)
        else:
            self._derive(study, prior)

    def _reason_not_to_derive(self, study: Study, prior: PriorRelease | None) -> str:
        """Say why this version does not lead from the results to the model; empty if it does."""
        made_with = method_of_release(self._manifest, study)
        here, running = methods().get(study.method), versions()["parley"]
        if here is None:
            return f"{made_with} made it, and parley {running} does not have that method"
        if here.version != made_with.version:
            return f"{made_with} made it, and parley {running} has version {here.version}"
        if self._consistency.made_by is not None:  # whose studies this version may refuse to run
            try:
                (run_of(study) if prior is None else prior.begin(study)).step()
            except InputError as error:
                return f"parley {running} does not run the study ({error})"
        return ""

    def _derive(self, study: Study, prior: PriorRelease | None) -> None:
        consistency = self._consistency
        try:
            gone = stated_missing(consistency.privacy, study)
            run = replay(study, consistency.results, gone, prior)
            steps, learnt = run.steps, run.model()
            reasons = consistency.privacy.get("not_private_because")
            stated = reasons if isinstance(reasons, list) else []
            statement = statement_of(
                study,
                method_of(study),
                account(study, steps),
                source_private=not study.seeded and SEEDED not in stated,
                rows_agreed=ROWS_NOT_AGREED not in stated,
                criteria=verdicts(study, steps, consistency.results, learnt),
                left=stated_left(consistency.privacy, study, gone),
                disputes=stated_disputes(consistency.privacy, study, gone),
            )
        except ParleyError as error:
            consistency.blame(RESULTS, why=f"does not follow from {release.STUDY}: {error}")
            return
        privacy = statement.as_dict() | {"versions": dict(self._manifest.versions)}
        self._check_statement(privacy)
        self._check_transcript(study, steps)
        self._check_commitments(study, [step.parties for step in steps])
        self._check_derived_model(study_content(study, steps, learnt, consistency.results))
        consistency.derived = True

    def _check_statement(self, expected: Mapping[str, object]) -> None:
        as_json = json.loads(json.dumps(expected))
        # Verdicts compare noisy sums with the model, whose last digits depend on the machine.
        stated = self._consistency.privacy
        differing = _differing(as_json, stated, rounded={"criteria"})
        if not differing:
            return
        words = f"is not what {release.STUDY} and {RESULTS} imply: {', '.join(differing)}"
        unknown = stated.keys() - expected.keys() if self._is_later else set()
        if all(key in _WORDS or key not in stated or key in unknown for key in differing):
            self._consistency.blame_form(release.STATEMENT, why=words)
        else:
            self._consistency.blame(release.STATEMENT, why=words)

    @property
    def _is_later(self) -> bool:
        """Whether a later version of parley made it: its statement may say more."""
        made_by = minor_version(self._consistency.made_by or "")
        running = minor_version(versions()["parley"])
        return made_by is not None and running is not None and made_by > running

    def _check_transcript(self, study: Study, steps: Sequence[Step]) -> None:
        """Refuse a transcript that has anything but counts of bytes."""
        data = read_whole(self._contents, release.TRANSCRIPT, most=_MOST_TRANSCRIPT)
        rounds_of = {SETTING_UP: 0} | Counter(step.phase for step in steps)  # in this order
        names = set(study.parties)
        with self._contents.blaming(release.TRANSCRIPT):
            try:
                stated = phases_of(json.loads(data))
                phases = {
                    phase: replace(stated[phase], rounds=rounds)
                    for phase, rounds in rounds_of.items()
                }
            except (LookupError, ValueError, RecursionError) as error:
                raise InputError(f"not a transcript: {error!r}") from None
            if not all(
                traffic.sent.keys() | traffic.received.keys() <= names
                for traffic in phases.values()
            ):
                raise InputError("not a transcript: it has bytes of a party without a seat")
            missing = missing_in(study, [step.parties for step in steps])
            again = without_times(transcript_of(study, phases, missing))
            if json_text(again).encode() != data:
                why = f"is not a transcript of {release.STUDY}"
                self._consistency.blame_form(release.TRANSCRIPT, why=why)

    def _check_commitments(self, study: Study, steps: Sequence[Sequence[str]] | None) -> None:
        """Refuse commitments that their owners did not sign, or that are not of these steps."""
        commitments = self._consistency.commitments
        if commitments is not None:
            try:
                require_tables(study, commitments.tables)
                if steps is not None:
                    commitments.require_steps(steps)
            except RemoteProtocolError as error:  # as from a peer, but a file has it
                self._consistency.blame(release.COMMITMENTS, why=str(error))

    def _check_derived_model(self, content: dict[str, object]) -> None:
        """Compare with model.json, which is read only if it is not much longer than expected."""
        document = model_document(
            content,
            schema=self._schema,
            columns=TableColumns.by_schema(self._schema),
            privacy=self._consistency.privacy,
        )
        text = json.dumps(document, indent=2)
        model = read_json(self._contents, release.MODEL, most=2 * len(text))
        self._check_model(model)
        as_stated = {key: model.get(key) for key in ("columns", "privacy")}
        expected = json.loads(text) | as_stated
        differing = _differing(expected, model, rounded=expected)
        if differing:
            named = ", ".join(differing)
            words = f"is not the model that {release.STUDY} and {RESULTS} imply: {named}"
            self._consistency.blame(release.MODEL, why=words)


def _differing(
    expected: Mapping[str, object], stated: Mapping[str, object], *, rounded: Collection[str]
) -> list[str]:
    """Name the keys whose values differ, of `rounded` keys by more than the last digits."""
    return [
        key
        for key in sorted(expected.keys() | stated.keys())
        if expected.get(key) != stated.get(key)
        and not (key in rounded and _alike(expected.get(key), stated.get(key)))
    ]


def _alike(one: object, other: object) -> bool:
    """Return whether two JSON values are equal but for the last digits of numbers."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_alike, one, other))
        case bool(), _:
            return one is other
        case int(), int():  # which may be larger than any float
            return one == other
        case int() | float(), int() | float():
            try:
                return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
            except OverflowError:  # an integer that is larger than any float
                return False
        case _:
            return one == other
