"""A page is self-contained, escapes what it shows, and writes numbers for people."""

import re

import pytest

from common.fitted.dependences import Dependences
from common.report import page as pages
from common.report.network_picture import network_svg
from common.report.page import Section, figure, page


def test_page_asks_nothing_of_the_network():
    document = page(
        "t", "l", [Section("s", figure(network_svg(Dependences(["a"], {}, {})), caption="c"))]
    )
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')> ]+)""", document)
    assert [link for link in links if not link.startswith("#")] == []
    assert document.count("http") == document.count("http-equiv") + document.count(
        "http://www.w3.org/2000/svg"
    )


NASTY = "<script>alert('x')</script>&\""


def test_whatever_is_shown_is_escaped():
    builders = [
        pages.page(NASTY, NASTY, [Section(NASTY, pages.Markup())]),
        pages.card(NASTY, NASTY, figure=NASTY),
        pages.folded(pages.Markup(), summary=NASTY),
        pages.paragraph(NASTY),
        pages.bullets([NASTY]),
        pages.warning(NASTY),
        pages.figure(pages.Markup(), caption=NASTY),
        pages.titled(pages.Markup(), title=NASTY),
        pages.table([NASTY], [[NASTY]]),
        pages.described([(NASTY, NASTY)]),
        pages.element("i", NASTY, title=NASTY),
        pages.joined([pages.element("b"), NASTY]),
    ]
    for made in builders:
        assert "<script" not in made
        assert "&lt;script&gt;" in made


def test_markup_goes_in_as_it_is_and_attributes_are_named_like_keywords():
    inner = pages.element("b", "x & y")
    made = pages.element("p", inner, "<", class_="n", aria_label='a "b"', id="")
    assert made == '<p class="n" aria-label="a &quot;b&quot;"><b>x &amp; y</b>&lt;</p>'


def test_an_input_has_no_content_and_a_true_attribute_no_value():
    made = pages.element("input", type="checkbox", required=True, disabled=False)
    assert made == '<input type="checkbox" required>'


def test_markup_put_together_by_hand_is_escaped():
    assert pages.element("p", f"{pages.element('b')}") == "<p>&lt;b&gt;&lt;/b&gt;</p>"


def test_commands_in_a_sentence_are_set_apart():
    assert pages.paragraph("`parley <x>` lists") == ("<p><code>parley &lt;x&gt;</code> lists</p>")


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"), (1234567.8, "1,234,568"), (-1234.5, "-1,234"), (99.94, "99.9"), (9.5, "9.5"),
        (2.0, "2"), (0.25, "0.25"), (0.0001, "0.0001"), (0.00001234, "1.2e-05"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(number, shown):
    assert pages.readable(number) == shown


def test_numbers_stand_right_with_their_heading_and_everything_else_left():
    made = pages.table(["name", "count", "yes"], [["a", 1234, True], ["b", 0.5, False]])
    assert '<th scope="col">name</th><th scope="col" class="n">count</th>' in made
    assert '<td class="n">1,234</td><td>True</td>' in made
    assert '<td class="n">0.5</td>' in made


def test_every_section_is_in_the_contents():
    made = pages.page("t", "l", [Section("one", "x"), Section("two", "y")])
    for number, title in enumerate(("one", "two"), start=1):
        assert f'<a href="#section-{number}">{title}</a>' in made
        assert f'<section id="section-{number}"><h2>{title}</h2>' in made
