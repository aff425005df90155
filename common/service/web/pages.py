"""The parts of a site's pages, and the files that pages are made of.

`common.report.page` makes every tag; text is escaped there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from common import wording
from common.report.page import Markup, element, joined
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


def asset(package: str, name: str) -> Asset:
    """Read a file in the folder `static` of a package."""
    body = resources.files(package).joinpath("static", name).read_bytes()
    return Asset(_KINDS.get(name.rpartition(".")[2], TEXT), body)


def shared_assets() -> Mapping[str, Asset]:
    files = {"/style.css": "style.css", "/login.js": "login.js", "/help": "help.html"}
    assets = {path: asset("common.service.web", name) for path, name in files.items()}
    return {**assets, "/icon.svg": asset("common.report", "mark.svg")}


def filled(template: str, **values: str) -> bytes:
    """Fill the places of a shared file; in one pass, so that values are not searched."""
    whole = asset("common.service.web", template).body.decode()
    return re.sub(r"\{(\w+)\}", lambda place: joined([values[place[1]]]), whole).encode()


def section(title: str, *content: Markup, identifier: str) -> Markup:
    heading = element("h2", title, id=identifier)
    return element("section", heading, *content, aria_labelledby=identifier)


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Markup:
    """Make a table that scrolls by itself where it is too wide; numbers are aligned right."""
    numeric = [isinstance(value, int) for value in rows[0]] if rows else [False] * len(headings)
    head = (
        element("th", words, scope="col", class_="n" if right else "")
        for words, right in zip(headings, numeric, strict=True)
    )
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *(element("tr", *map(_cell, headings, row)) for row in rows)),
        class_="stack",
    )
    return element("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")


def _cell(heading: str, value: str | int) -> Markup:
    if isinstance(value, int):
        return element("td", element("span", f"{value:,}"), data_label=heading, class_="n")
    return element("td", element("span", value), data_label=heading)


def code(words: str) -> Markup:
    """Mark a digest or a name."""
    return element("code", words)


def badge(words: str, kind: str) -> Markup:
    """Show a state; `kind` is good, busy, bad or quiet."""
    return element("span", words, class_=f"badge {kind}")


def page(title: str, lead: str, *content: Markup, csrf: str, script: str = "") -> Response:
    """Make a page of a site, for a user who is logged in."""
    scripts = element("script", src=script, defer=True) if script else ""
    return Response(
        body=filled(
            "page.html",
            title=title,
            lead=lead,
            csrf=csrf,
            scripts=scripts,
            content=joined(content),
        )
    )


def moment(at: str) -> Markup:
    """Show a time of a record, which is in UTC, as people read it."""
    return element("time", wording.moment(at), datetime=at)
