"""The owner's pages as HTML: values in, escaped markup out. No script is needed to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape

from common.privacy.spending import Spending
from common.privacy.spending import fraction_words as shown
from common.privacy.statement import Protection
from common.service.web.pages import (
    Markup,
    badge,
    bullets,
    code,
    moment,
    paragraph,
    section,
    table,
)
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.wording import many
from party.journal import Departure, StudyRecord
from party.ledger import Entry
from party.owner.decisions import Decision, in_words
from party.owner.dry_run import PlannedStep
from party.owner.review import Review
from party.releases import Collected

MOST_LINES = 200
MOST_REASON = 500

Row = Sequence[str | int | Markup]


def decision_badge(decision: Decision | None) -> Markup:
    if decision is None:
        return badge("to decide", "busy")
    if decision.approved:
        return badge("approved", "good")
    return badge("declined" if decision.withdrawn_at is None else "withdrawn", "bad")


def study_list(studies: Sequence[tuple[Study, Decision | None]]) -> Markup:
    """List every study in the inbox, those to decide first."""
    if not studies:
        return paragraph("None. The curator has not invited us, or was not asked.", "quiet")
    rows: list[Row] = [
        (
            Markup(f'<a href="/studies/{study.digest.hex()}">{escape(study.name)}</a>'),
            decision_badge(decision),
            str(study.epsilon) + (f", delta {float(study.delta):g}" if study.delta else ""),
            len(study.members),
            code(short_id(study.digest)),
        )
        for study, decision in sorted(studies, key=lambda pair: pair[1] is not None)
    ]
    return table(
        "Open one to see what it costs", ["Study", "Decision", "Epsilon", "Parties", "Digest"], rows
    )


def standing(decision: Decision | None, process: str | None) -> list[Markup]:
    """Show above all else what was decided, and whether our node runs to tell the curator."""
    if decision is None:
        return []
    told = f"<p>{decision_badge(decision).html} {escape(in_words(decision))}.</p>"
    waits = "" if process is not None else node_section(None).html
    return [Markup(f'<div role="status">{told}{waits}</div>')]


def review_sections(seen: Review) -> list[Markup]:
    """Show what `parley party review` says."""
    protections = bullets([_protection(each) for each in seen.protections])
    return [
        section("What it is for", bullets(seen.purpose), identifier="purpose"),
        section(
            "What it costs",
            paragraph(seen.price, "big"),
            bullets(seen.cost_lines()),
            identifier="cost",
        ),
        section("What it is about", bullets(seen.about), bullets(seen.columns), identifier="about"),
        section("Who takes part", bullets(seen.members), identifier="members"),
        section("What it asks", _phases(seen.phases, seen.currency), identifier="asks"),
        section("What leaves the building", bullets(seen.leaves), identifier="leaves"),
        section("Who is protected from whom", protections, identifier="protections"),
        section("What is not promised", bullets(seen.limits), identifier="limits"),
    ]


def _protection(each: Protection) -> Markup:
    bare = each.epsilon is None
    state = badge("NOT PROTECTED" if bare else "protected", "bad" if bare else "good")
    return Markup(f"{state.html} from {escape(each.against)}: {escape(each.assumes)}")


def _phases(phases: Sequence[PlannedStep], currency: str) -> Markup:
    rows: list[Row] = [
        (each.phase, shown(each.cost), each.tables, each.cells, each.choices) for each in phases
    ]
    headings = ["Phase", currency.capitalize(), "Tables", "Cells", "Choices of our own"]
    return table("Phase by phase, at most", headings, rows)


def decision_section(
    seen: Review,
    decision: Decision | None,
    csrf: str,
    *,
    withdrawal_means: str,
    rows_changed: str = "",
) -> Markup:
    """Show the two buttons; or what was decided, and a button to withdraw where one can."""
    here = f"/studies/{seen.digest}"
    if decision is not None:
        withdraw = [_no_form(here, csrf, "Withdraw", withdrawal_means)] if withdrawal_means else []
        decided = [paragraph(in_words(decision))]
        if rows_changed:
            decided.append(paragraph(rows_changed, "trouble"))
        return section("Our decision", *decided, *withdraw, identifier="decision")
    refused = [
        Markup('<div class="trouble" role="note"><p><strong>Our policy refuses it</strong></p>'),
        bullets(seen.reasons_against),
        Markup("</div>"),
    ]
    approve = Markup(
        f'<form class="card" method="post" action="{here}/approve"><h3>Approve</h3>'
        f"{_hidden(csrf=csrf, cost=str(seen.cost))}"
        '<label class="check" for="sure"><input type="checkbox" id="sure" name="sure" value="yes" '
        f"required> <span>Spend {escape(seen.price)} of every row of ours on it. "
        "What has left is not taken back.</span></label>"
        '<p><button type="submit">Approve this study</button></p></form>'
    )
    decline = _no_form(
        here, csrf, "Decline", "The study ends for every party; the reason stays here."
    )
    allowed = [paragraph("Our policy allows it."), approve]
    return section(
        "Decide", *(refused if seen.reasons_against else allowed), decline, identifier="decide"
    )


def _no_form(here: str, csrf: str, word: str, means: str) -> Markup:
    """Return the form of the owner's no, before a yes or after it."""
    return Markup(
        f'<form class="card" method="post" action="{here}/decline"><h3>{word}</h3>'
        f"{_hidden(csrf=csrf)}<p>{escape(means)}</p>"
        '<label for="reason">Reason, for our own records; it stays here</label>'
        f'<input type="text" id="reason" name="reason" maxlength="{MOST_REASON}">'
        f'<p><button type="submit" class="danger">{word} for good</button></p></form>'
    )


def ledger_section(
    entries: Sequence[Entry], *, spent: Spending, cap: Fraction, head: str, complaint: str
) -> Markup:
    state = (
        Markup(f'<div class="trouble" role="alert"><p>{escape(complaint)}</p></div>')
        if complaint
        else Markup(f"<p>{badge('chain verified', 'good').html} head {code(head).html}</p>")
    )
    rows: list[Row] = [
        (
            entry.number,
            moment(entry.charged_at),
            entry.charge.study_name,
            entry.charge.step,
            str(entry.charge.epsilon) if not entry.charge.delta else "",
            shown(entry.charge.rho) if entry.charge.delta else "",
            code(entry.digest[:16]),
        )
        for entry in reversed(entries[-MOST_LINES:])
    ]
    caption = f"{many(len(entries), 'charge')}, newest first" + _cut(len(entries))
    headings = ["No.", "When", "Study", "Step", "Epsilon", "Rho", "Digest"]
    return section(
        "Ledger",
        paragraph(f"{spent.words()} spent of {shown(cap)}", "big"),
        state,
        _listing(caption, headings, rows, none="Nothing was charged yet."),
        identifier="ledger",
    )


def transcript_section(departures: Sequence[Departure]) -> Markup:
    total = sum(each.size for each in departures)
    rows: list[Row] = [
        (
            moment(each.released_at),
            each.study_name,
            each.sequence,
            each.kind,
            each.recipient,
            each.size,
            code(each.digest[:16]),
        )
        for each in reversed(departures[-MOST_LINES:])
    ]
    caption = f"{many(len(departures), 'message')}, {many(total, 'byte')}, newest first"
    headings = ["When", "Study", "No.", "Kind", "For", "Bytes", "SHA-256"]
    return section(
        "What left the building",
        _listing(caption + _cut(len(departures)), headings, rows, none="Nothing has left yet."),
        identifier="transcript",
    )


def attended_section(
    records: Sequence[StudyRecord], releases: Mapping[StudyId, Collected]
) -> Markup:
    """List the studies that our node took part in, with their releases to download."""
    kinds = {"running": "busy", "finished": "good"}
    rows: list[Row] = [
        (
            each.name,
            badge(each.state.value, kinds.get(each.state.value, "bad")),
            moment(each.began_at),
            "not yet" if each.ended_at is None else moment(each.ended_at),
            release_cell(each.study, releases.get(each.study)),
            each.reason,
        )
        for each in reversed(records[-MOST_LINES:])
    ]
    headings = ["Study", "State", "Began", "Ended", "Release", "Reason, for our eyes"]
    return section(
        "Studies our node took part in",
        _listing("Newest first", headings, rows, none="None yet."),
        identifier="attended",
    )


def release_cell(study: StudyId, release: Collected | None) -> Markup:
    """Link the release to download, and say whether we countersigned it."""
    if release is None:
        return Markup("none here")
    if release.place is None:
        return badge(f"not kept: {release.problem}", "bad")
    link = f'<a href="/studies/{study.hex()}/release.zip" download>Download</a> '
    word = "countersigned" if release.countersigned else f"not countersigned: {release.problem}"
    return Markup(link + badge(word, "good" if release.countersigned else "busy").html)


def node_section(process: str | None) -> Markup:
    """Say whether our node runs; without it nothing that is decided here takes effect."""
    if process is not None:
        return Markup(f"<p>{badge('our node runs', 'good').html} {escape(process)}</p>")
    return Markup(
        '<div class="trouble" role="note"><p><strong>Our node does not run.</strong> Decisions '
        "made here are kept, and take effect when it runs: <code>parley party join</code>.</p>"
        "</div>"
    )


def ask_form(csrf: str, *, answer: str) -> Markup:
    return Markup(
        f'<form class="row" method="post" action="/ask">{_hidden(csrf=csrf)}'
        '<button type="submit" class="plain">Ask the curator for invitations</button>'
        f'<span class="quiet" role="status">{escape(answer)}</span></form>'
    )


def _listing(caption: str, headings: Sequence[str], rows: Sequence[Row], *, none: str) -> Markup:
    return table(caption, headings, rows) if rows else paragraph(none, "quiet")


def _hidden(**fields: str) -> str:
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(value, quote=True)}">'
        for name, value in fields.items()
    )


def _cut(lines: int) -> str:
    return f"; the newest {MOST_LINES}" if lines > MOST_LINES else ""
