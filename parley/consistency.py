"""Do the files of a release agree with each other? Asked of a study: do they follow from it?

A study and the results published during it determine every step, what it cost, and the model. So
for a release of several owners the privacy statement and the model are derived again, by the same
functions that a party's node uses, and compared. A release of a single owner has no study: there
the statement's own sum is checked.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray

from common.bundle.checking import Checked, Kind, Problem
from common.bundle.contents import Contents, read_whole
from common.bundle.manifest import strict_json
from common.bundle.results import RESULTS, read_results
from common.bundle.signatures import SignerRole
from common.crypto.sum_plan import Aggregation
from common.errors import InputError, ParleyError
from common.methods import account, plan_of, statement_of
from common.privacy.budget import parse_epsilon
from common.privacy.statement import SEEDED, versions
from common.rounds import decode_total, sum_plan_of
from common.schema import Schema
from common.study import Study
from common.subn.steps import ChoiceStep, Model, Step
from common.wording import many
from parley import release
from parley.console import Reporter, silent
from parley.report.study_figures import study_noise

_MOST_TEXT = 64 << 20
# PrivBayes has at most 0.7 epsilon / 8 numbers a row, of 30 bytes: this is 400 million rows at
# epsilon 1. Less would refuse an honest release; parsed, it takes three to ten times as much.
_MOST_MODEL = 1 << 30
_MOST_RESULTS = 1 << 30
_MOST_HEADER = 1 << 20
_SAME = 1e-6  # relative, of a model's numbers: machines round differently, and no more than that
_ALWAYS = (release.STATEMENT, release.MODEL, release.SCHEMA, release.REPORT)
_OF_A_STUDY = (release.TRANSCRIPT, RESULTS)


@dataclass(slots=True)
class Agreement:
    """What was found.

    Attributes:
        study: what the owners agreed on, if there were several.
        privacy: the privacy statement.
        results: what was published during the study.
        problems: files that contradict another one.
        not_checked: what could not be looked at, and why.
    """

    study: Study | None = None
    privacy: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[bytes] = ()
    problems: list[Problem] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def blame(self, file: str, why: str) -> None:
        """A file that is not what the others say it must be."""
        self.problems.append(Problem(file, Kind.INCONSISTENT, why))


def check_agreement(contents: Contents, checked: Checked, *, tell: Reporter = silent) -> Agreement:
    """Compare the files of a release with each other; their bytes are the manifest's already."""
    found = Agreement()
    needed = [*_ALWAYS, *(_OF_A_STUDY if checked.manifest.study is not None else ())]
    for name in needed:
        if name not in checked.manifest.files:
            found.problems.append(Problem(name, Kind.MISSING, "is missing: every release has it"))
    if found.problems:
        return found
    try:
        schema = Schema.from_toml(_text(contents, release.SCHEMA), where=release.SCHEMA)
        found.privacy = _json(contents, release.STATEMENT)
        model = _json(contents, release.MODEL, most=_MOST_MODEL)
        _check_model(found, model, schema)
        _check_table(found, contents, checked, schema)
        _check_study(found, contents, checked, schema)
        if found.study is None:
            _check_sum(found)
        else:
            tell(0.5, "deriving the steps of the study again")
            _check_derivation(found, contents, checked, model)
    except ParleyError as error:
        name = str(error).partition(":")[0]
        found.blame(name if name in checked.manifest.files else "the release", str(error))
    except RecursionError:
        found.blame("the release", "a file is nested too deeply to be compared")
    return found


def _check_model(found: Agreement, model: Mapping[str, Any], schema: Schema) -> None:
    if model.get("privacy") != found.privacy:
        found.blame(release.MODEL, f"has another privacy statement than {release.STATEMENT}")
    written = model.get("schema")
    if not isinstance(written, str):
        found.blame(release.MODEL, "has no schema")
    elif Schema.from_toml(written, where=release.MODEL).digest() != schema.digest():
        found.blame(release.MODEL, f"has another schema than {release.SCHEMA}")


def _check_table(found: Agreement, contents: Contents, checked: Checked, schema: Schema) -> None:
    """The columns only: the rows of a table are as many as they are."""
    names = [release.table_name(kind) for kind in release.FORMATS]
    there = [name for name in names if name in checked.manifest.files]
    if len(there) != 1:
        found.problems.append(
            Problem(names[0], Kind.MISSING, f"a release has one of {', '.join(names)}")
        )
        return
    columns = _columns(contents, there[0])
    if sorted(columns) != sorted(schema.names):
        strange = sorted(set(columns) ^ set(schema.names)) or ["one that is there twice"]
        found.blame(there[0], f"its columns are not those of the schema: {', '.join(strange)}")


def _columns(contents: Contents, name: str) -> list[str]:
    with contents.open(name) as stream:
        if name.endswith(".parquet"):
            try:
                return list(pyarrow.parquet.read_schema(stream).names)
            except (OSError, pyarrow.ArrowException) as error:
                raise InputError(f"{name}: not a Parquet file: {error}") from None
        head = stream.read(_MOST_HEADER).decode("utf-8", errors="replace")
    try:
        return next(csv.reader(io.StringIO(head)), [])
    except csv.Error as error:
        raise InputError(f"{name}: not a CSV file: {error}") from None


def _check_study(found: Agreement, contents: Contents, checked: Checked, schema: Schema) -> None:
    digest = checked.manifest.study
    if (digest is not None) != (release.STUDY in checked.manifest.files):
        found.blame(release.STUDY, "is there if and only if the manifest names a study")
        return
    if digest is None:
        roster = {}
    else:
        study = found.study = Study.from_toml(_text(contents, release.STUDY), where=release.STUDY)
        roster = {member.name: member.identity for member in study.members}
        if study.digest.hex() != digest:
            found.blame(release.STUDY, "its digest is not the manifest's")
        if study.schema.digest() != schema.digest():
            found.blame(release.SCHEMA, f"is not the schema of {release.STUDY}")
        if _json(contents, release.TRANSCRIPT).get("study") != study.digest.hex():
            found.blame(release.TRANSCRIPT, f"is of another study than {release.STUDY}")
    for signature in checked.signatures:
        if signature.role is SignerRole.PARTY and roster.get(signature.name) != signature.identity:
            found.problems.append(
                Problem(
                    signature.file,
                    Kind.SIGNATURE,
                    f"the study pins no such identity for a party {signature.name!r}",
                )
            )


def _check_sum(found: Agreement) -> None:
    """What the steps cost adds up to what was delivered; to the digits that the file prints."""
    privacy = found.privacy
    try:
        spent = sum(float(step["epsilon"]) for step in privacy["steps"])
        delivered = float(parse_epsilon(privacy["exact"]["epsilon_delivered"]))
        right = math.isclose(spent, delivered, rel_tol=1e-9)
        right &= math.isclose(float(privacy["epsilon_delivered"]), delivered, rel_tol=1e-9)
    except (KeyError, TypeError, ValueError, ArithmeticError, InputError):
        right = False
    if not right:
        found.blame(release.STATEMENT, "its steps do not add up to the epsilon it states")


def _check_derivation(
    found: Agreement, contents: Contents, checked: Checked, model: Mapping[str, Any]
) -> None:
    """The statement and the model again, from the study and the published results."""
    made_by, here = checked.manifest.versions.get("parley"), versions()["parley"]
    if made_by != here:
        found.not_checked.append(
            f"whether statement and model follow from the study: the release was made by parley "
            f"{made_by}, this is {here}"
        )
        return
    size = checked.manifest.files[RESULTS].size
    if size > _MOST_RESULTS:
        raise InputError(f"{RESULTS}: {size:,} bytes are more than {_MOST_RESULTS:,}")
    with contents.open(RESULTS) as stream:
        found.results = read_results(stream, size=size)
    study = found.study
    if study is None:
        return
    try:
        steps, learnt = derive(study, found.results)
        reasons = found.privacy.get("not_private_because")
        seeded = isinstance(reasons, list) and SEEDED in reasons
        statement = statement_of(study, account(study, steps), source_private=not seeded)
    except ParleyError as error:
        found.blame(RESULTS, f"does not follow from {release.STUDY}: {error}")
        return
    expected = statement.as_dict() | {"versions": found.privacy.get("versions")}
    differing = [
        key
        for key in sorted(expected.keys() | found.privacy.keys())
        if _plain(expected.get(key)) != found.privacy.get(key)
    ]
    if differing:
        found.blame(
            release.STATEMENT,
            f"is not what {release.STUDY} and {RESULTS} imply: {', '.join(differing)}",
        )
    if model.get("method") != study.method or not _alike(
        _plain(learnt.as_json()), model.get("model")
    ):
        found.blame(release.MODEL, f"is not the model that {release.STUDY} and {RESULTS} imply")
    elif not _alike(study_noise(study, steps), model.get("noise_in_a_count")):
        found.blame(release.MODEL, f"states other noise than {release.STUDY} implies")


def derive(study: Study, results: Sequence[bytes]) -> tuple[list[Step], Model]:
    """Every step of a study and its model, from what was published.

    Raises:
        ParleyError: these are not the results of this study.
    """
    # The bounds of a sum do not depend on how it is added up; in the clear it needs no key. Nobody
    # signed that variant of the study.
    bounds = replace(study, aggregation=Aggregation.CLEAR, signature=None)
    plan, steps = plan_of(study), list[Step]()
    for number, result in enumerate(results):
        step = plan.step()
        if step is None:
            raise InputError(
                f"expected the results of {many(number, 'step')}, found {len(results)}"
            )
        value: bytes | NDArray[np.int64] = result
        if not isinstance(step, ChoiceStep):
            value = decode_total(sum_plan_of(bounds, number, step, None, history=b""), result)
        plan.advance(value)
        steps.append(step)
    if plan.step() is not None:
        raise InputError(f"found {many(len(results), 'result')}, and the study has more steps")
    return steps, plan.model()


def _text(contents: Contents, name: str) -> str:
    try:
        return read_whole(contents, name, most=_MOST_TEXT).decode()
    except UnicodeDecodeError:
        raise InputError(f"{name}: not UTF-8") from None


def _json(contents: Contents, name: str, *, most: int = _MOST_TEXT) -> dict[str, Any]:
    return strict_json(read_whole(contents, name, most=most), name)


def _plain(value: object) -> object:
    """A value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _alike(one: object, other: object) -> bool:
    """The same, but for the last digits of numbers."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_alike, one, other))
        case bool(), _:
            return one is other
        case int() | float(), int() | float():
            return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
        case _:
            return one == other
