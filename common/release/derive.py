"""Are the files of a release consistent? For a study: do they follow from it?

A study and the results published during it determine every step, what it cost, and the model. So
for a release of several owners the privacy statement and the model are derived again, by the same
functions that a party's node uses, and compared. A release of a single owner has no study: there
the statement's own sum is checked. In both cases the pages are made again from the other files.

A release that another version of parley made cannot be derived here, and is never called verified:
its manifest must not be able to switch off what would refuse it. The epsilon of the study is
compared with the statement in every case.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from common.errors import InputError, ParleyError
from common.methods.criteria import verdicts
from common.methods.registry import method_of
from common.privacy.budget import parse_epsilon, shown
from common.privacy.statement import ROWS_NOT_AGREED, SEEDED, versions
from common.release import folder as release
from common.release.contents import Contents, read_json, read_text, read_whole
from common.release.fitted import FittedModel
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.fitted_study import FittedStudy
from common.release.folder import RESULTS, read_results
from common.release.loading import read_ranges
from common.release.manifest import FileEntry, SignerRole, json_text, sha256_of
from common.release.prior import bundled_prior
from common.release.progress import Reporter, silent
from common.release.refit import replay
from common.release.synthetic_table import KINDS, Columns, ReleasedTable, read_released_table
from common.release.verify import Checked, Consistency, Kind, Problem, other_version
from common.release.writing import pages_of
from common.schema import Schema
from common.study.accounting import account, missing_in, statement_of
from common.study.document import Study
from common.study.steps import Step
from common.study.transcript import SETTING_UP, PhaseTraffic, transcript_of, without_times
from common.wording import many

_MOST_TRANSCRIPT = 64 << 20
# PrivBayes has at most 0.7 epsilon / 8 numbers a row, of 30 bytes: this is 400 million rows at
# epsilon 1. Less would refuse an honest release; parsed, it takes three to ten times as much.
_MOST_MODEL = 1 << 30
_SAME = 1e-6  # relative, of a model's numbers: machines round differently, and no more than that


def check_consistency(
    contents: Contents, checked: Checked, *, tell: Reporter = silent
) -> Consistency:
    """Compare the files of a release with each other."""
    found = Consistency()
    try:
        _check_all(found, contents, checked, tell)
    except ParleyError as error:
        name, _, why = str(error).removeprefix(f"{contents.where}: ").partition(": ")
        known = name in checked.manifest.files
        found.blame(name if known else "the release", why=why if known else str(error))
    except RecursionError:
        found.blame("the release", why="a file is nested too deeply to be compared")
    found.derived &= not found.problems
    return found


def _check_all(found: Consistency, contents: Contents, checked: Checked, tell: Reporter) -> None:
    schema = Schema.from_toml(read_text(contents, release.SCHEMA), where=release.SCHEMA)
    found.privacy = read_json(contents, release.STATEMENT)
    _check_study(found, contents, checked, schema)
    _check_epsilon(found)
    tell(0.3, "reading the table")
    (name,) = checked.manifest.files.keys() & set(release.TABLES)
    table = read_released_table(contents, name, schema)
    if found.study is not None and table.rows != (found.study.output_rows or found.study.rows):
        rows = many(table.rows, "row")
        found.blame(name, why=f"has {rows}, which is not what {release.STUDY} says")
    made_by = other_version(checked.manifest)
    if made_by is not None:
        found.not_checked.append(
            "whether statement, model and report follow from the other files: the release was made "
            f"by parley {made_by}, this is {versions()['parley']}"
        )
        return
    if read_text(contents, release.SCHEMA) != schema.to_toml():
        found.blame(release.SCHEMA, why="is not written as parley writes a schema")
    tell(0.5, "deriving the steps of the study again")
    fitted = _fitted(found, contents, checked, schema)
    if fitted is not None and not found.problems:
        for name in differing_pages(checked, fitted, table):
            found.blame(name, why="is not what the table, the model and the statement imply")


def _check_study(found: Consistency, contents: Contents, checked: Checked, schema: Schema) -> None:
    digest = checked.manifest.study
    if digest is not None:
        text = read_text(contents, release.STUDY)
        study = found.study = Study.from_toml(text, where=release.STUDY)
        if bool(study.prior) != (release.PRIOR in checked.manifest.files):
            found.blame(release.PRIOR, why=f"is there without one in {release.STUDY}, or missing")
        if study.digest.hex() != digest:
            found.blame(release.STUDY, why="its digest is not the manifest's")
        if study.schema.digest() != schema.digest():
            found.blame(release.SCHEMA, why=f"is not the schema of {release.STUDY}")
    roster = {} if found.study is None else found.study.roster
    for signature in checked.signatures:
        if signature.role is SignerRole.PARTY and roster.get(signature.name) != signature.identity:
            found.problems.append(
                Problem(
                    signature.file,
                    Kind.SIGNATURE,
                    f"the study pins no such identity for a party {signature.name!r}",
                )
            )


def _check_epsilon(found: Consistency) -> None:
    """Check what the statement says of epsilon, as far as it needs no derivation."""
    try:
        study, privacy = found.study, found.privacy
        right = _adds_up(privacy) if study is None else _is_agreed(privacy, study)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InputError):
        right = False
    if not right and found.study is None:
        found.blame(release.STATEMENT, why="its steps do not add up to the epsilon it states")
    elif not right:
        found.blame(release.STATEMENT, why=f"states another epsilon than {release.STUDY}")


def _adds_up(privacy: Mapping[str, Any]) -> bool:
    """Return whether the steps cost what was delivered, to the digits that the file prints."""
    spent = sum(float(step["epsilon"]) for step in privacy["steps"])
    delivered = float(parse_epsilon(privacy["exact"]["epsilon_delivered"]))
    return math.isclose(spent, delivered, rel_tol=1e-9) and math.isclose(
        float(privacy["epsilon_delivered"]), delivered, rel_tol=1e-9
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


def _fitted(
    found: Consistency, contents: Contents, checked: Checked, schema: Schema
) -> FittedModel | None:
    """Read or derive the model of a release; return None if it does not follow."""
    if found.study is not None:
        return _derived(found, contents, checked, found.study, schema)
    fitted: FittedPrivBayes | FittedPrivelet
    model = read_json(contents, release.MODEL, most=_MOST_MODEL)
    _check_model(found, model, schema)
    if release.RANGES in checked.manifest.files:
        fitted = read_ranges(contents)
        _check_ranges(fitted, checked.manifest.files[release.RANGES])
    else:
        fitted = FittedPrivBayes.from_json(model, where=release.MODEL)
    if not found.problems and fitted.to_json() != model:
        found.blame(release.MODEL, why="is not written as parley writes a model")
    return fitted


def _check_model(found: Consistency, model: Mapping[str, Any], schema: Schema) -> None:
    if model.get("privacy") != found.privacy:
        found.blame(release.MODEL, why=f"has another privacy statement than {release.STATEMENT}")
    if model.get("schema") != schema.to_toml():
        found.blame(release.MODEL, why=f"has another schema than {release.SCHEMA}")
    columns = model.get("columns")
    if (
        not isinstance(columns, dict)
        or set(columns) != set(schema.names)
        or not all(isinstance(kind, str) and kind in KINDS for kind in columns.values())
    ):
        found.blame(release.MODEL, why="its columns are not those of the schema")


def _derived(
    found: Consistency, contents: Contents, checked: Checked, study: Study, schema: Schema
) -> FittedStudy | None:
    """Derive statement, model and transcript from the study and what was published."""
    if read_text(contents, release.STUDY) != study.to_toml():
        found.blame(release.STUDY, why="is not written as parley writes a study")
    found.results = read_results(contents)
    prior = bundled_prior(contents, study)
    try:
        run = replay(study, found.results, _missing(found, study), prior)
        steps, learnt = run.made, run.model()
        reasons = found.privacy.get("not_private_because")
        stated = reasons if isinstance(reasons, list) else []
        statement = statement_of(
            study,
            method_of(study),
            account(study, steps),
            source_private=SEEDED not in stated,
            rows_agreed=ROWS_NOT_AGREED not in stated,
            criteria=verdicts(study, steps, found.results, learnt),
        )
    except ParleyError as error:
        found.blame(RESULTS, why=f"does not follow from {release.STUDY}: {error}")
        return None
    privacy = statement.as_dict() | {"versions": dict(checked.manifest.versions)}
    _check_statement(found, privacy)
    transcript = read_whole(contents, release.TRANSCRIPT, most=_MOST_TRANSCRIPT)
    fitted = FittedStudy(
        study=study,
        schema=schema,
        made=(tuple(steps), learnt),
        results=found.results,
        privacy=privacy,
        columns=Columns.by_schema(schema),
        transcript=check_transcript(transcript, study, steps),
        prior=prior,
    )
    _check_derived_model(found, contents, fitted)
    found.derived = True
    return fitted


def _check_statement(found: Consistency, expected: Mapping[str, object]) -> None:
    as_json = json.loads(json.dumps(expected))
    # Verdicts compare noisy sums with the model, whose last digits depend on the machine.
    differing = _differing(as_json, found.privacy, rounded={"criteria"})
    if differing:
        words = f"is not what {release.STUDY} and {RESULTS} imply: {differing}"
        found.blame(release.STATEMENT, why=words)


def _check_derived_model(found: Consistency, contents: Contents, fitted: FittedStudy) -> None:
    """Compare with model.json, which is read only if it is not much longer than expected."""
    text = json.dumps(fitted.to_json(), indent=2)
    model = read_json(contents, release.MODEL, most=2 * len(text))
    _check_model(found, model, fitted.schema)
    expected = json.loads(text) | {"columns": model.get("columns"), "privacy": model.get("privacy")}
    differing = _differing(expected, model, rounded=expected)
    if differing:
        words = f"is not the model that {release.STUDY} and {RESULTS} imply: {differing}"
        found.blame(release.MODEL, why=words)


def _differing(
    expected: Mapping[str, object], stated: Mapping[str, object], *, rounded: Collection[str]
) -> str:
    """Name the keys whose values differ, of `rounded` keys by more than the last digits."""
    return ", ".join(
        key
        for key in sorted(expected.keys() | stated.keys())
        if expected.get(key) != stated.get(key)
        and not (key in rounded and _alike(expected.get(key), stated.get(key)))
    )


def _missing(found: Consistency, study: Study) -> dict[str, int]:
    """Return for each missing party the first step without it, as the statement says."""
    stated = found.privacy.get("missing")
    if (
        not isinstance(stated, dict)
        or not set(stated) <= set(study.parties)
        or len(stated) > study.may_miss
    ):
        raise InputError(f"{release.STATEMENT}: names missing parties that the study cannot miss")
    if any(type(first) is not int or first < 0 for first in stated.values()):
        raise InputError(f"{release.STATEMENT}: a party is missing from a step on, from 0")
    return stated


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


def differing_pages(checked: Checked, fitted: FittedModel, table: ReleasedTable) -> list[str]:
    """Name the pages that are not, byte for byte, what the other files imply."""
    try:
        pages = pages_of(fitted, table.rows, table.kept, date=checked.manifest.date)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{release.STATEMENT}: no report can be made of it: {error!r}") from None
    return [
        name
        for name, text in pages.items()
        if hashlib.sha256(text.encode()).hexdigest() != checked.manifest.files[name].sha256
    ]


def _check_ranges(fitted: FittedPrivelet, expected: FileEntry) -> None:
    """Refuse a file that is not what these range counts are written to."""
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        again = Path(scratch) / release.RANGES
        fitted.save(again)
        with again.open("rb") as stream:
            if sha256_of(stream) != expected:
                raise InputError(f"{release.RANGES}: holds something besides the noisy counts")


def check_transcript(data: bytes, study: Study, steps: Sequence[Step]) -> dict[str, object]:
    """Read a transcript; raise InputError if it has anything but counts of bytes."""
    rounds_of = {SETTING_UP: 0} | Counter(step.phase for step in steps)  # as a transcript has them
    try:
        found = json.loads(data)
        phases = {
            phase: _traffic(found["phases"][phase], rounds, study)
            for phase, rounds in rounds_of.items()
        }
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{release.TRANSCRIPT}: not a transcript: {error!r}") from None
    missing = missing_in(study, [step.parties for step in steps])
    again = without_times(transcript_of(study, phases, missing))
    if json_text(again).encode() != data:
        raise InputError(f"{release.TRANSCRIPT}: is not a transcript of {release.STUDY}")
    return again


def _traffic(counted: Mapping[str, Any], rounds: int, study: Study) -> PhaseTraffic:
    sent, received = (dict(counted[key]) for key in ("bytes_sent", "bytes_received"))
    for party, size in [*sent.items(), *received.items()]:
        if party not in study.parties or type(size) is not int or size < 0:
            raise ValueError(f"{size!r} bytes of {party!r}")
    return PhaseTraffic(rounds=rounds, sent=Counter(sent), received=Counter(received))
