"""A self-contained HTML page made of titled sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it (HTML that the caller has escaped)."""

    title: str
    html: str


def page(title: str, lead: str, sections: Sequence[Section], *, summary: str = "") -> str:
    """The whole document: no scripts, no external requests."""
    body = "".join(
        f'<section id="section-{number}"><h2>{escape(s.title)}</h2>{s.html}</section>'
        for number, s in enumerate(sections, start=1)
    )
    contents = "".join(
        f'<li><a href="#section-{number}">{escape(s.title)}</a></li>'
        for number, s in enumerate(sections, start=1)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{_style()}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{summary}</header>'
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav><main>{body}</main></body></html>\n'
    )


@cache
def _style() -> str:
    return resources.files("common.release.report").joinpath("static", "report.css").read_text()


def card(title: str, figure: str, *sentences: str) -> str:
    """One box of a summary: what it is about, the figure to remember, and what it means."""
    words = "".join(map(paragraph, sentences))
    return (
        f'<div class="card"><h3>{escape(title)}</h3><strong>{escape(figure)}</strong>{words}</div>'
    )


def cards(boxes: Sequence[str]) -> str:
    """Boxes side by side as far as there is room."""
    return f'<div class="cards">{"".join(boxes)}</div>'


def folded(summary: str, html: str) -> str:
    """What is shown on a click, on a touch or with the keyboard."""
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def readable(value: float) -> str:
    """A number for people: thousands apart, and an exponent only below one ten-thousandth."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:.4f}".rstrip("0") if size >= 0.0001 else f"{value:.2g}"


def paragraph(words: str) -> str:
    """A paragraph of plain text; `commands` are set apart."""
    return f"<p>{_prose(words)}</p>"


def _prose(words: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(words))


def bullets(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def warning(words: str) -> str:
    """A paragraph that must not be overlooked."""
    return f'<p class="warning" role="note">{_prose(words)}</p>'


def figure(picture: str, caption: str) -> str:
    """A picture with the sentence that explains it."""
    return (
        f'<figure><div class="wide" tabindex="0">{picture}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def titled(picture: str, title: str) -> str:
    """A picture of a series of similar ones, under its title."""
    return f'<figure><figcaption class="title">{escape(title)}</figcaption>{picture}</figure>'


def grid(figures: Sequence[str]) -> str:
    return f'<div class="grid">{"".join(figures)}</div>'


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers stand right, everything else left."""

    def cell(value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"<td>{escape(str(value))}</td>"
        shown = f"{value:,}" if isinstance(value, int) else readable(value)
        return f'<td class="n">{shown}</td>'

    def heading(words: str, column: int) -> str:
        above_numbers = bool(rows) and all(
            isinstance(row[column], int | float) and not isinstance(row[column], bool)
            for row in rows
        )
        kind = ' class="n"' if above_numbers else ""
        return f'<th scope="col"{kind}>{escape(words)}</th>'

    head = "".join(heading(words, column) for column, words in enumerate(headings))
    lines = "".join(f"<tr>{''.join(cell(v) for v in row)}</tr>" for row in rows)
    return _scrolling(f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>")


def described(lines: Sequence[tuple[str, object]]) -> str:
    """A table of words and what each stands for."""
    body = "".join(
        f'<tr><th scope="row">{escape(word)}</th><td>{escape(str(value))}</td></tr>'
        for word, value in lines
    )
    return _scrolling(f"<tbody>{body}</tbody>")


def _scrolling(rows: str) -> str:
    """On a telephone a wide table is moved by itself: the page stays as wide as the screen."""
    return f'<div class="wide" tabindex="0"><table>{rows}</table></div>'
