"""From a fitted model to a release folder: synthetic rows, model, statement, pictures, report."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common.analysis.conclusions import conclude
from common.analysis.diagnostics import diagnose
from common.analysis.linked_answers import every_answer
from common.analysis.means import known_means
from common.fitted.drawing import write_stream
from common.fitted.model import FittedModel
from common.release import folder as release
from common.release.archive import finish
from common.release.manifest import Signer, json_text
from common.release.synthetic_table import KEPT_ROWS, as_in_the_table
from common.report.network_picture import network_svg
from common.report.release_page import ReleaseFacts, answers_page, release_page
from common.schema import Codes
from common.wording import Reporter, silent


@dataclass(frozen=True, slots=True)
class Written:
    """What went into a release."""

    files: tuple[str, ...]  # their names
    rows: int  # how many synthetic rows
    synthetic: Codes  # those rows, or the first of them where they are very many


def write_release(
    folder: Path,
    fitted: FittedModel,
    *,
    rows: int | None = None,
    file_format: str = "csv",
    signer: Signer | None = None,
    tell: Reporter = silent,
) -> Written:
    """Fill an empty folder, usually one of `release.new_folder`, and finish it.

    Everything follows from what was released of the real rows, so it is free of cost. Without
    `rows` there are `fitted.output_rows` synthetic rows, in one of `release.FORMATS`.
    """
    number = fitted.output_rows if rows is None else rows
    synthetic = fitted.released
    if fitted.has_rows:
        synthetic = _write_rows(folder, fitted, number, file_format, tell)
    tell(0.6, "writing the report")
    (folder / release.SCHEMA).write_text(fitted.schema.to_toml(), encoding="utf-8")
    release.write_json(folder / release.STATEMENT, fitted.privacy)
    release.write_json(folder / release.MODEL, fitted.to_json())
    fitted.write_own_files(folder)
    date = datetime.now(UTC).date().isoformat()
    for name, text in pages_of(fitted, number, synthetic, date=date).items():
        (folder / name).write_bytes(text.encode())
    tell(0.9, "making the manifest")
    finish(folder, study=fitted.study_digest, method=fitted.made_with, date=date, signer=signer)
    tell(1.0, "flushing to disk")
    names = tuple(sorted(file.name for file in folder.iterdir()))
    return Written(names, number, synthetic)


def pages_of(fitted: FittedModel, rows: int, synthetic: Codes, *, date: str) -> dict[str, str]:
    """Make the pages of a release, from its rows or the first `KEPT_ROWS` of them.

    Pages are a function of the other files, so they can be made again: report.html, usage.json, and
    network.svg where there is a network.
    """
    facts = _facts(fitted, rows, as_in_the_table(fitted.schema, synthetic), date)
    if not fitted.has_rows:
        cautions = {"format": "parley usage notes", "version": 1, "cautions": list(facts.cautions)}
        return {release.REPORT: answers_page(facts), release.USAGE: json_text(cautions)}
    files = {release.REPORT: release_page(facts), release.USAGE: json_text(_usage(facts))}
    if facts.network is not None:
        files[release.NETWORK] = f"{network_svg(facts.network)}\n"
    return files


def _usage(facts: ReleaseFacts) -> dict[str, object]:
    """Return the content of usage.json: the relations that the rows hold, and the cautions."""
    relations = facts.relations
    return {
        "format": "parley usage notes",
        "version": 1,
        "cautions": list(facts.cautions),
        "columns_related_to_nothing": list(relations.alone),
        "pairs": relations.pairs,
        "related_pairs": relations.related,
    }


def _write_rows(
    folder: Path, fitted: FittedModel, rows: int, file_format: str, tell: Reporter
) -> Codes:
    """Write the table; many rows in blocks, on every core."""
    if rows > KEPT_ROWS and fitted.schema.events is None:
        path = folder / release.table_name(file_format)
        return write_stream(path, fitted, rows, tell=lambda share, what: tell(0.6 * share, what))
    tell(0.0, "drawing rows")
    synthetic = fitted.sample_codes(rows)
    tell(0.3, "writing the table")
    for stem, table in fitted.frames(synthetic).items():
        release.write_table(folder, table, file_format, stem=stem)
    return synthetic


def _facts(fitted: FittedModel, rows: int, synthetic: Codes, date: str) -> ReleaseFacts:
    shares, columns = fitted.shares, fitted.column_errors
    # Noise that depends from cell to cell tells no interval of a mean.
    known = known_means(fitted)
    diagnostics = diagnose(fitted, synthetic)
    direct = diagnostics.direct and synthetic.rows
    return ReleaseFacts(
        schema=fitted.schema,
        synthetic=synthetic,
        synthetic_rows=rows,
        rows=fitted.rows,
        privacy=fitted.privacy,
        diagnostics=diagnostics,
        conclusions=conclude(fitted, diagnostics, synthetic) if direct else None,
        date=date,
        shares=shares,
        columns=columns,
        method_facts=fitted.how_made,
        pairs=fitted.pair_errors,
        network=fitted.dependences(synthetic),
        means=known,
        traffic=fitted.traffic,
        method_cautions=fitted.cautions,
        title=fitted.title,
        has_rows=fitted.has_rows,
        below_floor=fitted.below_floor(synthetic),
        answers=every_answer(fitted, diagnostics, released=synthetic),
    )


def write_report(path: Path, fitted: FittedModel, *, overwrite: bool = False) -> None:
    """Write the report of a release of this model: one page, for a browser."""
    release.check_file(path, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
        write_release(Path(scratch), fitted)
        text = (Path(scratch) / release.REPORT).read_text(encoding="utf-8")
    release.write_file(path, text)
