"""A self-contained HTML page made of titled sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--warn:#b35c00;
--link:#0072b2;--paper:#fff;--ink:#111}
*{box-sizing:border-box}
body{background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
max-width:62rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.7rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;
border-bottom:1px solid var(--line);padding-bottom:.2rem}
p.lead{opacity:.8;margin:.2rem 0 1rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;margin:.6rem 0}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.warning{border-left:4px solid var(--warn);background:var(--soft);padding:.6rem 1rem;margin:1rem 0}
.grid{display:flex;flex-wrap:wrap;gap:1.2rem}figure{margin:0;max-width:100%;overflow-x:auto}
figcaption{font-size:.85rem;opacity:.8}figcaption.title{font-weight:600;opacity:1;
margin-bottom:.2rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}svg{max-width:100%;height:auto}
code{background:var(--soft);padding:.1rem .3rem;border-radius:3px}
@media(prefers-color-scheme:dark){:root{--link:#56b4e9;--warn:#e69f00;--paper:#16181c;--ink:#e8e8e8}}
@media screen and (max-width:40rem){figure svg{max-width:none}}
@media print{@page{margin:16mm}:root{color-scheme:light;--paper:#fff;--ink:#000}
body{max-width:none;padding:0;font-size:10.5pt}.screen{display:none}
figure,tr{break-inside:avoid}h1,h2,h3{break-after:avoid}p{orphans:3;widows:3}
.grid{display:block}.grid figure{display:inline-block;margin:0 4mm 4mm 0;vertical-align:top}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it (HTML that the caller has escaped)."""

    title: str
    html: str


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole document: no scripts, no external requests."""
    body = "".join(f"<section><h2>{escape(s.title)}</h2>{s.html}</section>" for s in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{body}</body></html>\n'
    )


def paragraph(words: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(words)}</p>"


def bullets(sentences: Sequence[str]) -> str:
    """A list of plain sentences."""
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def aside(words: str) -> str:
    """A hint that is of no use on paper."""
    return f'<p class="screen">{escape(words)}</p>'


def warning(words: str) -> str:
    """A paragraph that must not be overlooked."""
    return f'<p class="warning" role="note">{escape(words)}</p>'


def figure(picture: str, caption: str) -> str:
    """A picture with the sentence that explains it."""
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


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
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
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
    return f'<div class="wide"><table>{rows}</table></div>'
