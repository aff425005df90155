"""A self-contained HTML page made of titled sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--warn:#b35c00;
--link:#0072b2;--paper:#fff;--ink:#111}
*{box-sizing:border-box}
body{background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
max-width:68rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.8rem;line-height:1.2;margin:.2rem 0}h2{font-size:1.25rem;margin:2.4rem 0 .6rem;
border-bottom:1px solid var(--line);padding-bottom:.2rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}
p.lead{opacity:.85;margin:.2rem 0 1rem}p,li{max-width:46rem}a{color:var(--link)}
nav ol{columns:2 14rem;margin:.3rem 0;padding-left:1.4rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,12rem),1fr));gap:.8rem;
margin:1rem 0}.card{border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;
background:var(--soft)}.card h3{margin:0 0 .2rem}.card p{margin:.2rem 0}
.card strong{font-size:1.25rem;display:block;line-height:1.3}
table{border-collapse:collapse;font-size:.9rem;margin:.6rem 0}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.warning{border-left:4px solid var(--warn);background:var(--soft);padding:.6rem 1rem;margin:1rem 0}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:1.4rem}
.grid svg{width:100%}figure{margin:0;max-width:100%}
.wide{overflow-x:auto;background:
linear-gradient(to right,var(--paper) 30%,transparent) left/2rem 100% no-repeat local,
linear-gradient(to left,var(--paper) 30%,transparent) right/2rem 100% no-repeat local,
linear-gradient(to right,#8886,transparent) left/.8rem 100% no-repeat scroll,
linear-gradient(to left,#8886,transparent) right/.8rem 100% no-repeat scroll}
figcaption{font-size:.85rem;opacity:.85;max-width:46rem}
figcaption.title{font-weight:600;opacity:1;margin-bottom:.2rem}svg{max-width:100%;height:auto}
.wide>svg{max-width:none}code{background:var(--soft);padding:.1rem .3rem;border-radius:3px}
summary{cursor:pointer;margin:.4rem 0}
@media(prefers-color-scheme:dark){:root{--link:#56b4e9;--warn:#e69f00;--paper:#16181c;--ink:#e8e8e8}}
@media print{@page{margin:16mm}:root{color-scheme:light;--paper:#fff;--ink:#000}
body{max-width:none;padding:0;font-size:10.5pt}nav{display:none}
figure,tr,.card{break-inside:avoid}h1,h2,h3{break-after:avoid}p{orphans:3;widows:3}
.grid{display:block}.grid figure{display:inline-block;width:48%;vertical-align:top}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it (HTML that the caller has escaped)."""

    title: str
    html: str


def page(title: str, lead: str, sections: Sequence[Section], *, summary: str = "") -> str:
    """The whole document: no scripts, no external requests.

    Args:
        title: of the document.
        lead: a line below it.
        sections: in order; each is in the contents.
        summary: what stands before the contents, as HTML.
    """
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
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{summary}</header>'
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav><main>{body}</main></body></html>\n'
    )


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
    """A list of plain sentences."""
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
    """Figures side by side as far as there is room."""
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
