"""Are the files of a release consistent? For a study: do they follow from it?

A study and the results published during it determine every step, what it cost, and the model. So
for a release of several owners the privacy statement and the model are derived again, by the same
functions that a party's node uses, and compared. A release of a single owner has no study: there
the statement's own sum is checked. In both cases the pages are made again from the other files.

A release that an earlier version of parley made, from 0.2 on, is derived as well. Its words and its
layout may be other ones (`blame_form`): a remark names those files. If the numbers do not follow,
this version derives other steps, or the release was changed: it is not called verified, because its
manifest must not be able to switch off what would refuse it. Nor is one that a later version made.
In every case the epsilon of the study is compared with the statement, and the statement's steps
with its sum.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from common.crypto.identities.identity import PublicIdentity
from common.errors import InputError, ParleyError
from common.methods.criteria import verdicts
from common.methods.registry import method_of
from common.privacy.budget import parse_epsilon, shown
from common.privacy.statement import ROWS_NOT_AGREED, SEEDED, versions
from common.release import folder as release
from common.release.contents import Contents, FileError, read_json, read_text, read_whole
from common.release.fitted import FittedModel
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.fitted_study import FittedStudy
from common.release.folder import RESULTS, read_results, read_schema, read_study
from common.release.loading import read_privbayes, read_ranges
from common.release.manifest import SignerRole, json_text, sha256_of
from common.release.prior import bundled_prior
from common.release.refit import replay
from common.release.synthetic_table import KINDS, Columns, ReleasedTable, read_released_table
from common.release.verify import Checked, Consistency, Kind, Problem, is_earlier, other_version
from common.release.writing import pages_of
from common.study.accounting import account, missing_in, statement_of
from common.study.document import Study
from common.study.steps import Step
from common.study.transcript import SETTING_UP, phases_of, transcript_of, without_times
from common.wording import Reporter, many, silent

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


def check_consistency(
    contents: Contents, checked: Checked, *, tell: Reporter = silent
) -> Consistency:
    """Compare the files of a release with each other."""
    found = Consistency()
    try:
        _Comparison(contents, checked, found).run(tell)
    except FileError as error:
        found.blame(error.file, why=error.why)
    except ParleyError as error:
        found.blame("the release", why=str(error))
    except RecursionError:
        found.blame("the release", why="a file is nested too deeply to be compared")
    found.derived &= not found.problems
    return found


class _Comparison:
    """The files of one release, each compared with what the others imply.

    A contradiction is recorded in `found`, and the comparison goes on. A file that cannot be read
    ends it with a FileError.
    """

    def __init__(self, contents: Contents, checked: Checked, found: Consistency) -> None:
        self._contents = contents
        self._manifest = checked.manifest
        self._signatures = checked.signatures
        self._found = found
        self._schema = read_schema(contents)

    def run(self, tell: Reporter) -> None:
        """Compare every file; tell how far the work is."""
        found, schema = self._found, self._schema
        found.privacy = read_json(self._contents, release.STATEMENT)
        self._check_study()
        self._check_epsilon()
        tell(0.3, "reading the table")
        (name,) = self._manifest.files.keys() & set(release.TABLES)
        table = read_released_table(self._contents, name, schema)
        if found.study is not None and table.rows != (found.study.output_rows or found.study.rows):
            rows = many(table.rows, "row")
            found.blame(name, why=f"has {rows}, which is not what {release.STUDY} says")
        tell(0.5, "deriving the steps of the study again")
        made_by = other_version(self._manifest)
        if made_by is None:
            self._derive(table)
        elif not is_earlier(made_by):
            self._leave_underived(made_by)
        else:
            self._try_to_derive(table, made_by)

    def _derive(self, table: ReleasedTable) -> None:
        """Compare the statement, the model and the pages with what the other files imply."""
        found = self._found
        if read_text(self._contents, release.SCHEMA) != self._schema.to_toml():
            found.blame_form(release.SCHEMA, why="is not written as parley writes a schema")
        fitted = self._single_owner() if found.study is None else self._derived(found.study)
        if fitted is not None and not found.problems:
            self._check_pages(fitted, table)

    def _try_to_derive(self, table: ReleasedTable, made_by: str) -> None:
        """Derive a release of an earlier version; a difference may be a forger's or ours."""
        found = self._found
        known, found.is_earlier = len(found.problems), True
        try:
            if found.privacy.get("versions") != dict(self._manifest.versions):
                found.blame(release.STATEMENT, why="names other versions than the manifest")
            self._derive(table)
        except ParleyError as error:
            found.blame("the release", why=str(error))
        differences = [str(each) for each in found.problems[known:]]
        if differences:
            del found.problems[known:]
            found.derived = False
            self._leave_underived(made_by, *differences)

    def _leave_underived(self, made_by: str, *differences: str) -> None:
        self._found.made_by = made_by
        aside = f" ({'; '.join(differences)})" if differences else ""
        self._found.not_checked.append(
            "whether statement, model and report follow from the other files: the release was made "
            f"by parley {made_by}, this is {versions()['parley']}{aside}"
        )

    def _check_study(self) -> None:
        found, digest = self._found, self._manifest.study
        roster: Mapping[str, PublicIdentity] = {}
        if digest is not None:
            study = found.study = read_study(self._contents)
            roster = study.roster
            if bool(study.prior) != (release.PRIOR in self._manifest.files):
                words = f"is there without one in {release.STUDY}, or missing"
                found.blame(release.PRIOR, why=words)
            if study.digest.hex() != digest:
                found.blame(release.STUDY, why="its digest is not the manifest's")
            if study.schema.digest() != self._schema.digest():
                found.blame(release.SCHEMA, why=f"is not the schema of {release.STUDY}")
        for each in self._signatures:
            if each.role is SignerRole.PARTY and roster.get(each.name) != each.identity:
                words = f"the study pins no such identity for a party {each.name!r}"
                found.problems.append(Problem(each.file, Kind.SIGNATURE, words))

    def _check_epsilon(self) -> None:
        """Check what the statement says of epsilon, as far as it needs no derivation."""
        study, privacy = self._found.study, self._found.privacy
        try:
            agreed = study is None or _is_agreed(privacy, study)
            right = _adds_up(privacy) if study is None else _costs_add_up(privacy, study)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InputError):
            agreed, right = study is None, study is not None
        if not agreed:
            words = f"states another epsilon than {release.STUDY}"
            self._found.blame(release.STATEMENT, why=words)
        elif not right:
            words = "its steps do not add up to the epsilon it states"
            self._found.blame(release.STATEMENT, why=words)

    def _single_owner(self) -> FittedModel:
        """Read the model of a release without a study."""
        fitted: FittedPrivBayes | FittedPrivelet
        model = read_json(self._contents, release.MODEL, most=_MOST_MODEL)
        self._check_model(model)
        if release.RANGES in self._manifest.files:
            fitted = read_ranges(self._contents)
            self._check_ranges(fitted)
        else:
            fitted = read_privbayes(self._contents, model)
        if not self._found.problems and fitted.to_json() != model:
            self._found.blame_form(release.MODEL, why="is not written as parley writes a model")
        return fitted

    def _check_model(self, model: Mapping[str, Any]) -> None:
        found, schema = self._found, self._schema
        if model.get("privacy") != found.privacy:
            words = f"has another privacy statement than {release.STATEMENT}"
            found.blame(release.MODEL, why=words)
        if model.get("schema") != schema.to_toml():
            found.blame(release.MODEL, why=f"has another schema than {release.SCHEMA}")
        columns = model.get("columns")
        if (
            not isinstance(columns, dict)
            or set(columns) != set(schema.names)
            or not all(isinstance(kind, str) and kind in KINDS for kind in columns.values())
        ):
            found.blame(release.MODEL, why="its columns are not those of the schema")

    def _check_ranges(self, fitted: FittedPrivelet) -> None:
        """Refuse a file that is not what these range counts are written to."""
        with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
            again = Path(scratch) / release.RANGES
            fitted.save(again)
            with again.open("rb") as stream:
                if sha256_of(stream) != self._manifest.files[release.RANGES]:
                    words = "holds something besides the noisy counts"
                    raise self._contents.error(release.RANGES, why=words)

    def _derived(self, study: Study) -> FittedStudy | None:
        """Derive statement, model and transcript; return None if the results do not fit."""
        found = self._found
        if read_text(self._contents, release.STUDY) != study.to_toml():
            found.blame_form(release.STUDY, why="is not written as parley writes a study")
        found.results = read_results(self._contents)
        prior = bundled_prior(self._contents, study)
        try:
            missing = _missing(found.privacy, study)
            run = replay(study, found.results, missing, prior)
            steps, learnt = run.made, run.model()
            reasons = found.privacy.get("not_private_because")
            stated = reasons if isinstance(reasons, list) else []
            statement = statement_of(
                study,
                method_of(study),
                account(study, steps),
                source_private=not study.seeded and SEEDED not in stated,
                rows_agreed=ROWS_NOT_AGREED not in stated,
                criteria=verdicts(study, steps, found.results, learnt),
                left=_left(found.privacy, study, missing),
                disputes=_disputes(found.privacy, study, missing),
            )
        except ParleyError as error:
            found.blame(RESULTS, why=f"does not follow from {release.STUDY}: {error}")
            return None
        privacy = statement.as_dict() | {"versions": dict(self._manifest.versions)}
        self._check_statement(privacy)
        fitted = FittedStudy(
            study=study,
            schema=self._schema,
            made=(tuple(steps), learnt),
            results=found.results,
            privacy=privacy,
            columns=Columns.by_schema(self._schema),
            transcript=self._transcript(study, steps),
            prior=prior,
        )
        self._check_derived_model(fitted)
        found.derived = True
        return fitted

    def _check_statement(self, expected: Mapping[str, object]) -> None:
        as_json = json.loads(json.dumps(expected))
        # Verdicts compare noisy sums with the model, whose last digits depend on the machine.
        stated = self._found.privacy
        differing = _differing(as_json, stated, rounded={"criteria"})
        if not differing:
            return
        words = f"is not what {release.STUDY} and {RESULTS} imply: {', '.join(differing)}"
        if all(key in _WORDS or key not in stated for key in differing):
            self._found.blame_form(release.STATEMENT, why=words)
        else:
            self._found.blame(release.STATEMENT, why=words)

    def _transcript(self, study: Study, steps: Sequence[Step]) -> dict[str, object]:
        """Read the transcript; refuse it if it has anything but counts of bytes."""
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
                each.sent.keys() | each.received.keys() <= names for each in phases.values()
            ):
                raise InputError("not a transcript: it has bytes of a party without a seat")
            missing = missing_in(study, [step.parties for step in steps])
            again = without_times(transcript_of(study, phases, missing))
            if json_text(again).encode() != data:
                why = f"is not a transcript of {release.STUDY}"
                self._found.blame_form(release.TRANSCRIPT, why=why)
        return again

    def _check_derived_model(self, fitted: FittedStudy) -> None:
        """Compare with model.json, which is read only if it is not much longer than expected."""
        text = json.dumps(fitted.to_json(), indent=2)
        model = read_json(self._contents, release.MODEL, most=2 * len(text))
        self._check_model(model)
        as_stated = {key: model.get(key) for key in ("columns", "privacy")}
        expected = json.loads(text) | as_stated
        differing = _differing(expected, model, rounded=expected)
        if differing:
            named = ", ".join(differing)
            words = f"is not the model that {release.STUDY} and {RESULTS} imply: {named}"
            self._found.blame(release.MODEL, why=words)

    def _check_pages(self, fitted: FittedModel, table: ReleasedTable) -> None:
        """Blame the pages that are not, byte for byte, what the other files imply."""
        try:
            pages = pages_of(fitted, table.rows, table.kept, date=self._manifest.date)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            words = f"no report can be made of it: {error!r}"
            raise self._contents.error(release.STATEMENT, why=words) from None
        for name, text in pages.items():
            if hashlib.sha256(text.encode()).hexdigest() != self._manifest.files[name].sha256:
                words = "is not what the table, the model and the statement imply"
                self._found.blame_form(name, why=words)


def _adds_up(privacy: Mapping[str, Any]) -> bool:
    """Return whether the steps cost what was delivered, to the digits that the file prints."""
    spent = sum(float(step["epsilon"]) for step in privacy["steps"])
    delivered = float(parse_epsilon(privacy["exact"]["epsilon_delivered"]))
    return math.isclose(spent, delivered, rel_tol=1e-9) and math.isclose(
        float(privacy["epsilon_delivered"]), delivered, rel_tol=1e-9
    )


def _costs_add_up(privacy: Mapping[str, Any], study: Study) -> bool:
    """Return whether the steps cost every owner what it paid; in profile paper, at most that."""
    costs: Counter[str] = Counter()
    for step in privacy["steps"]:
        for party, cost in step["parties"].items():
            costs[party] += cost
    paid = {
        party: float(Fraction(each)) for party, each in privacy["exact"]["parties_paid"].items()
    }
    bounded = study.profile == "paper"  # of all runs, which may cost more than this one
    return costs.keys() <= paid.keys() and all(
        math.isclose(costs[party], most, rel_tol=1e-9, abs_tol=1e-9)
        or (bounded and costs[party] < most)
        for party, most in paid.items()
    )


def _is_agreed(privacy: Mapping[str, Any], study: Study) -> bool:
    """Return whether the epsilon asked for is the study's.

    In profile sound it is also the most that any party pays. A party that has no turn in a step
    pays less. Which party that is, only the derivation tells.
    """

    def states(key: str) -> bool:
        exact = privacy["exact"][key] == str(study.epsilon)
        return bool(exact and privacy[key] == shown(study.epsilon))

    if study.profile != "sound":
        return states("epsilon_requested")
    paid = {name: Fraction(each) for name, each in privacy["exact"]["parties"].items()}
    return (
        states("epsilon_requested")
        and states("epsilon_delivered")
        and privacy["exact"]["delta"] == str(study.delta)
        and privacy["delta"] == privacy["delta_delivered"] == float(study.delta)
        and set(paid) == set(study.parties)
        and max(paid.values()) == study.epsilon
        and privacy["parties"] == {name: shown(each) for name, each in paid.items()}
    )


def _missing(privacy: Mapping[str, Any], study: Study) -> dict[str, int]:
    """Return for each missing party the first step without it, as the statement says."""
    stated = privacy.get("missing")
    known = set(study.parties)
    if not isinstance(stated, dict) or not set(stated) <= known or len(stated) > study.may_miss:
        raise InputError(f"{release.STATEMENT}: names missing parties that the study cannot miss")
    if any(type(first) is not int or first < 0 for first in stated.values()):
        raise InputError(f"{release.STATEMENT}: a party is missing from a step on, from 0")
    return stated


def _left(privacy: Mapping[str, Any], study: Study, missing: Collection[str]) -> Collection[str]:
    """Return the parties that left and are counted, as the statement says.

    After which sums they left is derived. Statements of parley 0.2.0 name none.
    """
    stated = privacy.get("left", {})
    if not isinstance(stated, dict) or not set(stated) <= set(study.parties):
        raise InputError(f"{release.STATEMENT}: names parties that left and are not in the study")
    if len({*stated, *missing}) > study.may_miss:
        raise InputError(f"{release.STATEMENT}: names more parties that left than the study allows")
    return stated


def _disputes(
    privacy: Mapping[str, Any], study: Study, missing: Collection[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the disputes about boxes of key shares, as the statement says."""
    stated = privacy.get("disputes", [])
    left = {*privacy.get("left", {}), *missing}
    if not isinstance(stated, list) or not all(
        isinstance(each, dict) and _is_dispute(each, study, left) for each in stated
    ):
        raise InputError(f"{release.STATEMENT}: a dispute is not one that the study can have had")
    return stated


def _is_dispute(stated: Mapping[str, Any], study: Study, left: Collection[str]) -> bool:
    if set(stated) != {"step", "dealer", "receiver", "left", "evidence"}:
        return False
    step, evidence = stated["step"], stated["evidence"]
    two = [stated["dealer"], stated["receiver"]]
    return (
        type(step) is int
        and step >= 0
        and isinstance(evidence, str)
        and re.fullmatch("[0-9a-f]{64}", evidence) is not None
        and len({name for name in two if name in study.parties}) == len(two)
        and stated["left"] in two
        and stated["left"] in left
    )


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
