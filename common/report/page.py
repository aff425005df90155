"""HTML from values, escaped where it is written, and a self-contained page of titled sections.

`element` makes every tag. Text is escaped; `Markup` is HTML already, and goes in as it is. A text
that was put together from markup by hand is a plain `str` again, and so is escaped: a mistake
shows on the page, and lets nothing through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import TypeGuard

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_WITHOUT_CONTENT = ("input",)


class Markup(str):
    """HTML that is escaped already."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str | bool) -> Markup:
    """Make an element, with those of the attributes (`class_`, `aria_label`) that are not empty."""
    named = "".join(_attribute(name, value=value) for name, value in attributes.items() if value)
    end = "" if tag in _WITHOUT_CONTENT else f"</{tag}>"
    return Markup(f"<{tag}{named}>{joined(content)}{end}")


def _attribute(name: str, *, value: str | bool) -> str:
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if isinstance(value, bool) else f' {written}="{escape(value)}"'


def joined(content: Iterable[str]) -> Markup:
    """Put text and markup one after the other; text is escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in content))


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    html: Markup


def page(
    title: str, lead: str, sections: Sequence[Section], *, summary: Sequence[Markup] = ()
) -> str:
    """Make the whole document: no scripts, no external requests."""
    body = [
        element("section", element("h2", section.title), section.html, id=f"section-{number}")
        for number, section in enumerate(sections, start=1)
    ]
    contents = [
        element("li", element("a", section.title, href=f"#section-{number}"))
        for number, section in enumerate(sections, start=1)
    ]
    words = element("h2", "Words of this page"), Markup(_static("words.html"))
    body.append(element("section", *words, id="help"))
    link = element("a", "Help", href="#help", class_="help")
    named = element("div", _mark(), element("h1", title), link, class_="named")
    header = element("header", named, element("p", lead, class_="lead"), *summary)
    navigation = element("nav", element("ol", *contents), aria_label="Contents")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"{element('title', title)}<style>{_static('report.css')}</style></head>"
        f"{element('body', header, navigation, element('main', *body))}</html>\n"
    )


def _mark() -> Markup:
    """Return the mark of the program, a picture that says nothing."""
    return Markup(_static("mark.svg").replace("<svg ", '<svg class="mark" aria-hidden="true" ', 1))


@cache
def _static(name: str) -> str:
    return resources.files("common.report").joinpath("static", name).read_text().strip()


def heading(words: str) -> Markup:
    return element("h3", words)


def card(title: str, *sentences: str, figure: str) -> Markup:
    """Make a box of a summary: its topic, the figure to remember, and what it means."""
    shown = element("strong", figure)
    return element("div", heading(title), shown, *map(paragraph, sentences), class_="card")


def cards(boxes: Sequence[Markup]) -> Markup:
    """Lay out boxes side by side as far as there is room."""
    return element("div", *boxes, class_="cards")


def folded(content: Markup, *, summary: str) -> Markup:
    """Hide content that is shown on a click, on a touch or with the keyboard."""
    return element("details", element("summary", summary), content)


def readable(value: float) -> str:
    """Write a number for people: thousands apart, an exponent only below one ten-thousandth."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return f"{value:.4f}".rstrip("0") if size >= 0.0001 else f"{value:.2g}"


def paragraph(words: str, **attributes: str) -> Markup:
    """Make a paragraph of plain text; `commands` are set apart."""
    shown = Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escape(words)))
    return element("p", shown, **attributes)


def bullets(lines: Sequence[str]) -> Markup:
    return element("ul", *(element("li", line) for line in lines))


def warning(words: str) -> Markup:
    """Make a paragraph that must not be overlooked."""
    return paragraph(words, class_="warning", role="note")


def figure(picture: Markup, *, caption: str) -> Markup:
    """Show a picture with the sentence that explains it."""
    return element("figure", _scrolling(picture), element("figcaption", caption))


def titled(picture: Markup, *, title: str) -> Markup:
    """Show a picture of a series of similar pictures, under its title."""
    return element("figure", element("figcaption", title, class_="title"), picture)


def grid(figures: Sequence[Markup]) -> Markup:
    return element("div", *figures, class_="grid")


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Lay out a table; numbers stand right, everything else left."""

    def has_numbers(column: int) -> bool:
        cells = [row[column] for row in rows]
        return bool(cells) and all(map(_is_number, cells))

    head = [
        element("th", words, scope="col", class_="n" if has_numbers(column) else "")
        for column, words in enumerate(headings)
    ]
    lines = [element("tr", *map(_cell, row)) for row in rows]
    top, body = element("thead", element("tr", *head)), element("tbody", *lines)
    return _scrolling(element("table", top, body))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> Markup:
    if not _is_number(value):
        return element("td", value if isinstance(value, str) else str(value))
    return element("td", f"{value:,}" if isinstance(value, int) else readable(value), class_="n")


def described(lines: Sequence[tuple[str, object]]) -> Markup:
    rows = (
        element("tr", element("th", word, scope="row"), element("td", str(value)))
        for word, value in lines
    )
    return _scrolling(element("table", element("tbody", *rows)))


def _scrolling(content: Markup) -> Markup:
    """Let wide content scroll by itself: the page stays as wide as a telephone's screen."""
    return element("div", content, class_="wide", tabindex="0")
