"""From a fitted model to a release folder: synthetic rows, model, statement, pictures, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from common.methods.criteria import PHASE
from common.methods.registry import cautions_of, method_of
from common.methods.subn_plus.descent import SpreadModel
from common.release import folder as release
from common.release.archive import finish
from common.release.fitted_privbayes import FittedPrivBayes
from common.release.fitted_privelet import FittedPrivelet
from common.release.fitted_study import FittedStudy, study_drawing
from common.release.measured import model_tables, study_shares, study_tables
from common.release.progress import Reporter, silent
from common.release.released_table import KEPT_ROWS
from common.release.report.expected_error import expected_errors
from common.release.report.floor_check import floor_forecast
from common.release.report.means import means
from common.release.report.page import Section, paragraph, table
from common.release.report.release_page import ReleaseFacts, release_page
from common.release.report.released import (
    model_shares,
    network_drawing,
    range_errors,
    range_shares,
)
from common.release.report.usable_pairs import usable_pairs
from common.release.results import RESULTS, write_results
from common.release.signatures import Signer
from common.release.streaming import write_stream
from common.schema import Codes, Schema
from common.study.accounting import missing_in
from common.study.transcript import without_times
from common.wording import many

Fitted = FittedPrivBayes | FittedPrivelet | FittedStudy


@dataclass(frozen=True, slots=True)
class Written:
    """What went into a release."""

    files: tuple[str, ...]  # their names
    rows: int  # how many synthetic rows
    synthetic: Codes  # those rows, or the first of them where they are very many


def write_release(
    folder: Path,
    fitted: Fitted,
    *,
    rows: int | None = None,
    file_format: str = "csv",
    signer: Signer | None = None,
    tell: Reporter = silent,
) -> Written:
    """Fill an empty folder, usually one of `release.new_folder`, and finish it.

    Args:
        folder: exists and is empty.
        fitted: what was released of the real rows; all that follows is free of cost.
        rows: how many synthetic rows; as many as there were real ones if None.
        file_format: of the synthetic rows, see `release.FORMATS`.
        signer: who signs the release, or None.
        tell: told how far the work is.
    """
    wanted = fitted.output_rows if rows is None else rows
    synthetic = _write_rows(folder, fitted, wanted, file_format, tell)
    tell(0.6, "writing the report")
    (folder / release.SCHEMA).write_text(fitted.schema.to_toml(), encoding="utf-8")
    release.write_json(folder / release.STATEMENT, fitted.privacy)
    release.write_json(folder / release.MODEL, fitted.to_json())
    if isinstance(fitted, FittedPrivelet):
        fitted.save(folder / release.RANGES)
    if isinstance(fitted, FittedStudy):
        release.write_json(folder / release.TRANSCRIPT, without_times(fitted.transcript))
        (folder / release.STUDY).write_text(fitted.study.to_toml(), encoding="utf-8")
        write_results(folder / RESULTS, fitted.results)
        if fitted.prior is not None:
            (folder / release.PRIOR).write_bytes(fitted.prior.data)
    date = datetime.now(UTC).date().isoformat()
    for name, text in pages_of(fitted, wanted, synthetic, date=date).items():
        (folder / name).write_bytes(text.encode())
    tell(0.9, "making the manifest")
    digest = fitted.study.digest if isinstance(fitted, FittedStudy) else None
    finish(folder, study=digest, date=date, signer=signer)
    tell(1.0, "flushing to disk")
    names = tuple(sorted(file.name for file in folder.iterdir()))
    return Written(names, wanted, synthetic)


def pages_of(fitted: Fitted, rows: int, synthetic: Codes, *, date: str) -> dict[str, str]:
    """Make what people read of a release, from its rows or the first `KEPT_ROWS` of them.

    It is a function of the other files, so it can be made again: report.html, usage.json, and
    network.svg where there is a network.
    """
    facts = _facts(fitted, rows, _as_in_the_table(fitted.schema, synthetic), date)
    files = {release.REPORT: release_page(facts), release.USAGE: release.json_text(_usage(facts))}
    if facts.network is not None:
        files[release.NETWORK] = f"{facts.network.svg()}\n"
    return files


def _usage(facts: ReleaseFacts) -> dict[str, object]:
    """The content of usage.json: which relations the rows hold, and what to beware of."""
    found = facts.relations
    return {
        "format": "parley usage notes",
        "version": 1,
        "cautions": list(facts.cautions),
        "columns_related_to_nothing": list(found.alone),
        "pairs": found.pairs,
        "related_pairs": found.standing_out,
    }


def _as_in_the_table(schema: Schema, codes: Codes) -> Codes:
    """The codes that a reader of the table finds: without text, `other` is an empty cell."""
    columns = list(codes.columns)
    for place, each in enumerate(schema.attributes):
        if each.other and each.missing and not each.textual:
            found = codes.columns[place]
            columns[place] = np.where(
                found == each.value_count, found.dtype.type(each.size - 1), found
            )
    return Codes(tuple(columns), codes.sizes)


def _write_rows(folder: Path, fitted: Fitted, rows: int, file_format: str, tell: Reporter) -> Codes:
    """The table; many rows in blocks, on every core."""
    if rows > KEPT_ROWS:
        path = folder / release.table_name(file_format)
        return write_stream(path, fitted, rows, tell=lambda share, what: tell(0.6 * share, what))
    tell(0.0, "drawing rows")
    synthetic = fitted.sample_codes(rows)
    tell(0.3, "writing the table")
    release.write_table(folder, fitted.decode(synthetic), file_format)
    return synthetic


def _facts(fitted: Fitted, rows: int, synthetic: Codes, date: str) -> ReleaseFacts:
    facts = partial(
        ReleaseFacts,
        schema=fitted.schema,
        synthetic=synthetic,
        synthetic_rows=rows,
        rows=fitted.rows,
        privacy=fitted.privacy,
        date=date,
    )
    usable = usable_pairs(fitted.diagnose(synthetic))
    match fitted:
        case FittedPrivelet():  # no means: its noise is not independent from value to value
            return facts(
                made=_privelet_steps(fitted),
                shares=range_shares(fitted.ranges),
                columns=range_errors(fitted.ranges),
                more=usable,
                method_cautions=_told(fitted.ranges.plan.caution),
            )
        case FittedPrivBayes():
            tables, shares = model_tables(fitted.model), model_shares(fitted.model)
            columns = expected_errors(tables, 1)
            return facts(
                made=_privbayes_steps(fitted),
                shares=shares,
                columns=columns,
                pairs=expected_errors(tables, 2),
                means=means(fitted.schema, shares, columns, fitted.rows),
                network=network_drawing(fitted.model, fitted.schema),
                more=usable,
                method_cautions=_told(fitted.model.plan.caution),
            )
        case FittedStudy():
            tables = study_tables(fitted.study, fitted.steps)
            shares = study_shares(fitted.study, fitted.steps, fitted.results)
            columns = expected_errors(tables, 1)
            traffic = Section("Communication", _traffic(fitted))
            return facts(
                made=_study_steps(fitted),
                shares=shares,
                columns=columns,
                pairs=expected_errors(tables, 2),
                means=means(fitted.schema, shares, columns, fitted.rows),
                network=study_drawing(fitted.model, fitted.schema, synthetic),
                more=[*usable, *_criteria(fitted.privacy), traffic],
                title=fitted.study.name,
                below_floor=_below_floor(fitted, synthetic),
                method_cautions=cautions_of(fitted.study),
            )
        case _:
            assert_never(fitted)


def _told(caution: str | None) -> tuple[str, ...]:
    return () if caution is None else (caution,)


def _privelet_steps(fitted: FittedPrivelet) -> list[tuple[str, object]]:
    plan = fitted.ranges.plan
    transforms = zip(fitted.schema.names, plan.axes, strict=True)
    return [
        ("method", f"Privelet ({plan.method})"),
        ("cells", f"{plan.cells:,}"),
        ("transforms", ", ".join(f"{name}: {axis.kind}" for name, axis in transforms)),
        ("noise scale", f"{float(plan.scale):,.4g} on weighted coefficients"),
        ("range counts", f"{release.RANGES}: ask it with `parley query`"),
    ]


def _study_steps(fitted: FittedStudy) -> list[tuple[str, object]]:
    study = fitted.study
    return [
        ("study", study.name),
        ("method", study.method),
        ("parties", ", ".join(f"{m.name} ({many(m.rows, 'row')})" for m in study.members)),
        *_missing_lines(fitted),
        ("profile", study.profile),
        ("noise", study.noise.value),
        ("aggregation", study.aggregation.value),
        ("colluding parties tolerated", study.effective_colluders),
        ("attributes as", "bits" if study.encoding == "binary" else "their own domains"),
        *((each.name, each.value) for each in method_of(study).decisions(study)),
        *_frequencies(fitted),
        ("study digest", study.digest.hex()),
    ]


def _frequencies(fitted: FittedStudy) -> list[tuple[str, object]]:
    """The attributes whose rare values were drawn by the schema's public frequencies."""
    public = fitted.model.public if isinstance(fitted.model, SpreadModel) else {}
    names = [fitted.schema.names[a] for a, own in public.items() if own is not None]
    words = ", ".join(names)
    return [("rare values drawn by public frequencies of", words)] if names else []


def _missing_lines(fitted: FittedStudy) -> list[tuple[str, object]]:
    """Who is in which sum, in a study that may miss parties."""
    study = fitted.study
    if not study.may_miss:
        return []
    first = missing_in(study, [step.parties for step in fitted.steps])
    lines: list[tuple[str, object]] = [
        ("parties that may be missing", study.may_miss),
        ("parties that went missing", ", ".join(first) or "none"),
    ]
    if first:
        lines += [
            (f"parties in sum {number}, {step.name}", ", ".join(step.parties))
            for number, step in enumerate(fitted.steps, start=1)
        ]
    return lines


def _below_floor(fitted: FittedStudy, synthetic: Codes) -> str | None:
    """What is said of a release to which independent columns are expected to be preferable."""
    forecast = floor_forecast(
        fitted.model,
        tuple(step for step in fitted.steps if step.phase != PHASE),
        synthetic,
        rows=fitted.rows,
        promise=fitted.study.method_promise,
    )
    return forecast.words() if forecast is not None and forecast.below_floor else None


def _criteria(privacy: Mapping[str, Any]) -> list[Section]:
    """Which criteria the model meets; nothing if the study named none."""
    if not privacy["criteria"]:
        return []
    words = (
        "The owners agreed on these criteria beforehand. Each was measured in their rows, with "
        "noise, after the model was fitted; all verdicts are right 19 times of 20. A distance is "
        "the mean over owners, and holds chance as well: compare it with that of rows drawn from "
        "the model."
    )
    lines = [list(release.verdict_words(each)) for each in privacy["criteria"]]
    return [Section("Criteria", paragraph(words) + table(["criterion", "", "measured"], lines))]


def _traffic(fitted: FittedStudy) -> str:
    phases = fitted.transcript["phases"]
    if not isinstance(phases, dict):
        return ""
    lines = [
        [
            phase,
            traffic["rounds"],
            sum(traffic["bytes_sent"].values()),
            sum(traffic["bytes_received"].values()),
        ]
        for phase, traffic in phases.items()
    ]
    return table(["phase", "rounds", "bytes from the parties", "bytes to the parties"], lines)


def _privbayes_steps(fitted: FittedPrivBayes) -> list[tuple[str, object]]:
    model = fitted.model
    plan = model.plan
    limit = (
        f"{plan.degree} parents"
        if plan.degree is not None
        else f"{plan.cells or 0:,} cells a table"
    )
    return [
        ("method", "PrivBayes"),
        ("encoding", plan.encoding),
        ("score", plan.score),
        ("largest useful table", limit),
        ("epsilon for the network", f"{float(plan.network_epsilon):g}"),
        ("epsilon for the tables", f"{float(plan.table_epsilon):g}"),
        ("released tables", f"{len(model.tables)}"),
        ("noise scale", f"{float(model.noise_scale):,.4g} on every count"),
        ("tables made to agree", "yes" if model.consistency else "no"),
    ]
