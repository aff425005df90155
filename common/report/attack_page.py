"""The page behind `parley attack --html`."""

from __future__ import annotations

from common.analysis.attacks import CONFIDENCE, Attack, AttackReport, AttackVerdict
from common.report.page import (
    Markup,
    Section,
    card,
    cards,
    element,
    joined,
    page,
    paragraph,
    table,
    warning,
)
from common.wording import many

_VERDICTS = {
    AttackVerdict.NOTHING: "no difference found",
    AttackVerdict.WITHIN: "a difference within the promise",
    AttackVerdict.BEYOND: "MORE than the promise allows",
}
_HEADINGS = [
    "attack", "rows of the study", "bounds", "other rows", "bounds", "epsilon allows", "verdict",
]  # fmt: skip


def attack_page(report: AttackReport) -> str:
    """Show what attacks reach, for the owner of the rows that were attacked."""
    everything = [*report.attacks, report.face]
    sentences = element("ul", *(element("li", sentence) for sentence in report.sentences()))
    sections = [
        Section(
            "NOT FOR PUBLICATION",
            warning(
                "These figures were computed from real rows without noise. They are for the owner "
                "of the rows and are not covered by the release's privacy guarantee. Keep this "
                "page apart from the release."
            ),
        ),
        Section("In plain words", sentences),
        Section(
            "Every attack",
            joined([table(_HEADINGS, [_line(result) for result in everything]), _reading()]),
        ),
        Section("Are the held-back rows like the others?", _control(report)),
    ]
    lead = (
        f"{many(report.synthetic, 'synthetic row')}, attacked with "
        f"{many(report.rows, 'row')} of the study and {many(report.held_back, 'row')} that "
        f"were held back. The release states {report.guarantee.words()}."
    )
    summary = cards(
        [
            card("All attacks together", report.summary(), figure=_VERDICTS[report.verdict]),
            card(
                "What epsilon allows",
                "The largest difference between rows of the study and others, for any attack.",
                figure=f"{report.guarantee.advantage:.1%}",
            ),
            card(
                "What was shown",
                f"The epsilon that these attacks prove, with {CONFIDENCE:.0%} confidence.",
                figure=f"at least {report.epsilon_shown:.2f}",
            ),
        ]
    )
    return page("What does the release give away?", lead, sections, summary=[summary])


def _line(result: Attack) -> list[str]:
    return [
        result.name,
        f"{result.members.value:.1%}",
        f"{result.members.low:.1%} to {result.members.high:.1%}",
        f"{result.others.value:.1%}",
        f"{result.others.low:.1%} to {result.others.high:.1%}",
        f"{result.allowed:.1%}",
        _VERDICTS[result.verdict],
    ]


def _reading() -> Markup:
    return paragraph(
        f"All bounds hold together with {CONFIDENCE:.0%} confidence. “Epsilon allows” is the "
        "highest rate on rows of the study beside the upper bound for other rows. An attack that "
        "finds nothing proves nothing: a better one may exist, and the guarantee is the proof."
    )


def _control(report: AttackReport) -> Markup:
    control = report.control
    words = (
        f"A classifier that has seen half of both files, and not the release, calls "
        f"{control.members.value:.1%} of the other rows of the study and "
        f"{control.others.value:.1%} of the other held-back rows rows of the study."
    )
    if report.comparable:
        return paragraph(f"{words} It cannot tell the files apart, so they can be compared.")
    return joined([warning(report.summary()), paragraph(words)])
