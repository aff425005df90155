"""The owner's pages as HTML: values in, escaped markup out. No script is needed to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from common.privacy.spending import fraction_words as shown
from common.privacy.statement import Protection
from common.report.page import Markup, bullets, element, joined
from common.service.web.pages import badge, code, moment, section, table
from common.study.document import Study
from common.study.ids import StudyId, short_id
from common.wording import many
from party.collection import Collected
from party.journal import SentMessage, StudyRecord
from party.ledger import Entry
from party.owner.decisions import OwnerDecision, in_words
from party.owner.dry_run import PlannedStep
from party.owner.policy_file import PolicyFile
from party.owner.review import Review
from party.totals import Totals, Unit, mixture, spent_words

MOST_LINES = 200
MOST_REASON = 500

Row = Sequence[str | int]


def decision_badge(decision: OwnerDecision | None) -> Markup:
    if decision is None:
        return badge("to decide", "busy")
    if decision.approved:
        return badge("approved", "good")
    return badge("declined" if decision.withdrawn_at is None else "withdrawn", "bad")


def study_list(studies: Sequence[tuple[Study, OwnerDecision | None]]) -> Markup:
    """List every study in the inbox, those to decide first."""
    if not studies:
        none = "None. The curator has not invited us, or was not asked."
        return element("p", none, class_="quiet")
    rows: list[Row] = [
        (
            element("a", study.name, href=f"/studies/{study.digest.hex()}"),
            joined([decision_badge(decision), *_rehearsal_badge(study)]),
            shown(study.epsilon) + (f", delta {float(study.delta):g}" if study.delta else ""),
            len(study.members),
            code(short_id(study.digest)),
        )
        for study, decision in sorted(studies, key=lambda pair: pair[1] is not None)
    ]
    return table(
        "Open one to see what it costs", ["Study", "Decision", "Epsilon", "Parties", "Digest"], rows
    )


def _rehearsal_badge(study: Study) -> list[Markup]:
    return [Markup(" "), badge("rehearsal", "quiet")] if study.rehearsal else []


def standing(decision: OwnerDecision | None, process: str | None) -> list[Markup]:
    """Show above all else what was decided, and whether our node runs to tell the curator."""
    if decision is None:
        return []
    decided = element("p", decision_badge(decision), f" {in_words(decision)}.")
    waits = [node_section(None)] if process is None else []
    return [element("div", decided, *waits, role="status")]


def review_sections(review: Review) -> list[Markup]:
    """Show the rest of what `parley party review` says, below the decision."""
    protections = bullets([_protection(protection) for protection in review.protections])
    columns = element(
        "details",
        element("summary", "Show the columns"),
        bullets(review.columns),
    )
    return [
        section("What it costs", bullets(review.cost_lines()), identifier="cost"),
        section("What it is about", bullets(review.about), columns, identifier="about"),
        section("Who takes part", bullets(review.members), identifier="members"),
        section("What leaves the building", bullets(review.leaves), identifier="leaves"),
        section("What it asks", _phases(review.phases, review.currency), identifier="asks"),
        section("Who is protected from whom", protections, identifier="protections"),
        section("What is not promised", bullets(review.limits), identifier="limits"),
        section(
            "How to recognise it",
            element("p", "Digest ", code(review.digest)),
            element("p", "Signed by ", code(review.signer)) if review.signer else Markup(""),
            element("p", "Curator ", code(review.curator)) if review.curator else Markup(""),
            identifier="digest",
        ),
    ]


def summary_section(review: Review) -> Markup:
    """Show what the decision is about: the purpose, the price, what is left, what comes of it."""
    signed = [] if review.signer else ["The study is not signed."]
    warnings = (*review.warnings, *signed)
    return section(
        "In short",
        *([_note(bullets(warnings))] if warnings else []),
        element(
            "div",
            _card("It is for", bullets(review.purpose)),
            _cost_card(review),
            _card("Then is left", _figure(review.left_words), element("p", "for later studies")),
            _card("The table will be good for", bullets(review.expected)),
            class_="cards",
        ),
        identifier="short",
    )


def _cost_card(review: Review) -> Markup:
    of_whom = f"of every {review.unit} of ours"
    if review.rehearsal:
        after = element("p", f"The study itself will cost {review.price} {of_whom}")
        return _card("The rehearsal costs", _figure("nothing"), after)
    return _card("It costs", _figure(review.price), element("p", of_whom))


def _card(title: str, *content: Markup) -> Markup:
    return element("div", element("h3", title), *content, class_="card")


def _figure(words: str) -> Markup:
    return element("p", words, class_="big")


def _protection(protection: Protection) -> Markup:
    bare = protection.epsilon is None
    state = badge("NOT PROTECTED" if bare else "protected", "bad" if bare else "good")
    return joined([state, f" from {protection.against}: {protection.assumes}"])


def _phases(phases: Sequence[PlannedStep], currency: str) -> Markup:
    rows: list[Row] = [
        (phase.phase, shown(phase.cost), phase.tables, phase.cells, phase.choices)
        for phase in phases
    ]
    headings = ["Phase", currency.capitalize(), "Tables", "Cells", "Choices of our own"]
    return table("Phase by phase, at most", headings, rows)


def decision_section(
    review: Review,
    decision: OwnerDecision | None,
    csrf: str,
    *,
    withdrawal_means: str,
    rows_changed: str = "",
) -> Markup:
    """Show the two buttons; or what was decided, and a button to withdraw where one can."""
    here = f"/studies/{review.digest}"
    if decision is not None:
        withdraw = [_no_form(here, csrf, "Withdraw", withdrawal_means)] if withdrawal_means else []
        decided = [element("p", in_words(decision))]
        if rows_changed:
            decided.append(element("p", rows_changed, class_="trouble"))
        return section("Our decision", *decided, *withdraw, identifier="decision")
    if review.reasons_against:
        heading = element("p", element("strong", "Our policy refuses it"))
        answers = [_note(heading, bullets(review.reasons_against))]
    else:
        answers = [_yes_form(review, here, csrf)]
    means = "The study ends for every party; the reason stays here."
    answers.append(_no_form(here, csrf, "Decline", means))
    return section("Decide", element("div", *answers, class_="columns"), identifier="decide")


def _yes_form(review: Review, here: str, csrf: str) -> Markup:
    sure = element("input", type="checkbox", id="sure", name="sure", value="yes", required=True)
    means = f"{review.consent}. What has left is not taken back."
    return _form(
        f"{here}/approve",
        element("h3", "Approve"),
        element("p", "Our policy allows it."),
        _hidden("csrf", csrf),
        _hidden("cost", str(review.cost)),
        element("label", sure, " ", element("span", means), class_="check", for_="sure"),
        element("p", element("button", "Approve this study", type="submit")),
    )


def _no_form(here: str, csrf: str, word: str, means: str) -> Markup:
    """Return the form of the owner's no, before a yes or after it."""
    most = str(MOST_REASON)
    return _form(
        f"{here}/decline",
        element("h3", word),
        _hidden("csrf", csrf),
        element("p", means),
        element("label", "Reason, for our own records; it stays here", for_="reason"),
        element("input", type="text", id="reason", name="reason", maxlength=most),
        element("p", element("button", f"{word} for good", type="submit", class_="danger")),
    )


def ledger_section(
    entries: Sequence[Entry], *, totals: Totals, cap: Fraction, head: str, complaint: str
) -> Markup:
    if complaint:
        state = element("div", element("p", complaint), class_="trouble", role="alert")
    else:
        state = element("p", badge("chain verified", "good"), " head ", code(head))
    rows: list[Row] = [
        (
            entry.number,
            moment(entry.charged_at),
            entry.charge.study_name,
            entry.charge.step,
            Unit.of(entry.charge.rows_per_person).value,
            f"rho {shown(entry.charge.rho)}" if entry.charge.delta else shown(entry.charge.epsilon),
            code(entry.digest[:16]),
        )
        for entry in reversed(entries[-MOST_LINES:])
    ]
    caption = f"{many(len(entries), 'charge')}, newest first" + _cut(len(entries))
    headings = ["No.", "When", "Study", "Step", "Of a", "Epsilon", "Digest"]
    return section(
        "Ledger",
        element("p", f"{spent_words(totals)} spent, our cap is {shown(cap)}", class_="big"),
        *([element("p", note)] if (note := mixture(totals)) else []),
        state,
        _listing(caption, headings, rows, none="Nothing was charged yet."),
        identifier="ledger",
    )


def sent_section(departures: Sequence[SentMessage]) -> Markup:
    total = sum(message.size for message in departures)
    rows: list[Row] = [
        (
            moment(message.released_at),
            message.study_name,
            message.sequence,
            message.words,
            message.recipient,
            message.size,
            code(message.digest[:16]),
        )
        for message in reversed(departures[-MOST_LINES:])
    ]
    caption = f"{many(len(departures), 'message')}, {many(total, 'byte')}, newest first"
    headings = ["When", "Study", "No.", "Kind", "For", "Bytes", "SHA-256"]
    return section(
        "What left the building",
        _listing(caption + _cut(len(departures)), headings, rows, none="Nothing has left yet."),
        identifier="sent-log",
    )


def attended_section(
    records: Sequence[StudyRecord], releases: Mapping[StudyId, Collected]
) -> Markup:
    """List the studies that our node took part in, with their releases to download."""
    kinds = {"running": "busy", "finished": "good"}
    rows: list[Row] = [
        (
            record.name,
            badge(record.state.value, kinds.get(record.state.value, "bad")),
            moment(record.began_at),
            "not yet" if record.ended_at is None else moment(record.ended_at),
            release_cell(record.study, releases.get(record.study)),
            record.reason,
        )
        for record in reversed(records[-MOST_LINES:])
    ]
    headings = ["Study", "State", "Began", "Ended", "Release", "Reason, for our eyes"]
    return section(
        "Studies our node took part in",
        _listing("Newest first", headings, rows, none="None yet."),
        identifier="attended",
    )


def release_cell(study: StudyId, release: Collected | None) -> str:
    """Link the release to download, and say whether we countersigned it."""
    if release is None:
        return "none here"
    if release.place is None:
        return badge(f"not kept: {release.problem}", "bad")
    link = element("a", "Download", href=f"/studies/{study.hex()}/release.zip", download=True)
    if release.countersigned:
        return joined([link, " ", badge("countersigned", "good")])
    return joined([link, " ", badge(f"not countersigned: {release.problem}", "busy")])


def node_section(process: str | None) -> Markup:
    """Say whether our node runs; without it nothing that is decided here takes effect."""
    if process is not None:
        return element("p", badge("our node runs", "good"), f" {process}")
    words = element(
        "p",
        element("strong", "Our node does not run."),
        " Decisions made here are kept, and take effect when it runs: ",
        code("parley party join"),
        ".",
    )
    return _note(words)


def policy_section(policies: PolicyFile) -> Markup:
    """Say which policy counts, and loudly if the file on disk cannot be used."""
    counts = element("p", badge("our policy", "good"), f" {policies.words}")
    if not policies.complaint:
        return counts
    heading = element("p", element("strong", "The policy on disk cannot be used."))
    return _note(heading, element("p", policies.complaint))


def ask_form(csrf: str, *, answer: str) -> Markup:
    return _form(
        "/ask",
        _hidden("csrf", csrf),
        element("button", "Ask the curator for invitations", type="submit", class_="plain"),
        element("span", answer, class_="quiet", role="status"),
        kind="row",
    )


def _listing(caption: str, headings: Sequence[str], rows: Sequence[Row], *, none: str) -> Markup:
    return table(caption, headings, rows) if rows else element("p", none, class_="quiet")


def _note(*content: Markup) -> Markup:
    return element("div", *content, class_="trouble", role="note")


def _form(action: str, *content: Markup, kind: str = "card") -> Markup:
    return element("form", *content, class_=kind, method="post", action=action)


def _hidden(name: str, value: str) -> Markup:
    return element("input", type="hidden", name=name, value=value)


def _cut(lines: int) -> str:
    return f"; the newest {MOST_LINES}" if lines > MOST_LINES else ""
