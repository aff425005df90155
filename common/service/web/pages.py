"""HTML from values, escaped where it is written, and the files that pages are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from common import wording
from common.service.web.exchange import HTML, TEXT, Response

_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "html": HTML,
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the program."""

    kind: str
    body: bytes

    def response(self) -> Response:
        return Response(kind=self.kind, body=self.body)


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is escaped already."""

    html: str


def asset(package: str, name: str) -> Asset:
    """Read a file in the folder `static` of a package."""
    body = resources.files(package).joinpath("static", name).read_bytes()
    return Asset(_KINDS.get(name.rpartition(".")[2], TEXT), body)


def shared_assets() -> Mapping[str, Asset]:
    return {
        f"/{name}": asset("common.service.web", name)
        for name in ("style.css", "login.js", "icon.svg")
    }


def filled(template: str, **values: str) -> bytes:
    """Fill the places of a shared file with HTML; in one pass, so that values are not searched."""
    whole = asset("common.service.web", template).body.decode()
    return re.sub(r"\{(\w+)\}", lambda place: values[place[1]], whole).encode()


def paragraph(words: str, kind: str = "") -> Markup:
    return Markup(f"<p{_class(kind)}>{escape(words)}</p>")


def section(title: str, *content: Markup, identifier: str) -> Markup:
    name = escape(identifier, quote=True)
    inner = "".join(each.html for each in content)
    return Markup(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{inner}</section>'
    )


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[str | int | Markup]]
) -> Markup:
    """Make a table that scrolls by itself where it is too wide; numbers are aligned right."""
    numeric = [isinstance(value, int) for value in rows[0]] if rows else [False] * len(headings)
    head = "".join(
        f'<th scope="col"{_class("n" if right else "")}>{escape(words)}</th>'
        for words, right in zip(headings, numeric, strict=True)
    )
    lines = "".join(f"<tr>{''.join(map(_cell, headings, row))}</tr>" for row in rows)
    label = escape(caption, quote=True)
    return Markup(
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table class="stack">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def bullets(lines: Sequence[str | Markup]) -> Markup:
    shown = (each.html if isinstance(each, Markup) else escape(each) for each in lines)
    return Markup(f"<ul>{''.join(f'<li>{each}</li>' for each in shown)}</ul>")


def code(words: str) -> Markup:
    """Mark a digest or a name."""
    return Markup(f"<code>{escape(words)}</code>")


def badge(words: str, kind: str) -> Markup:
    """Show a state; `kind` is good, busy, bad or quiet."""
    return Markup(f'<span class="badge {escape(kind, quote=True)}">{escape(words)}</span>')


def page(title: str, lead: str, *content: Markup, csrf: str, script: str = "") -> Response:
    """Make a page of a site, for a user who is logged in."""
    scripts = f'<script src="{escape(script, quote=True)}" defer></script>' if script else ""
    return Response(
        body=filled(
            "page.html",
            title=escape(title),
            lead=escape(lead),
            csrf=escape(csrf, quote=True),
            scripts=scripts,
            content="".join(each.html for each in content),
        )
    )


def moment(at: str) -> Markup:
    """Show a time of a record, which is in UTC, as people read it."""
    return Markup(f'<time datetime="{escape(at, quote=True)}">{escape(wording.moment(at))}</time>')


def _cell(heading: str, value: str | int | Markup) -> str:
    label = f' data-label="{escape(heading, quote=True)}"'
    if isinstance(value, Markup):
        return f"<td{label}><span>{value.html}</span></td>"
    if isinstance(value, int):
        return f'<td{label} class="n"><span>{value:,}</span></td>'
    return f"<td{label}><span>{escape(value)}</span></td>"


def _class(kind: str) -> str:
    return f' class="{escape(kind, quote=True)}"' if kind else ""
