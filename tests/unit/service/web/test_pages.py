"""Whatever a value says, it is shown as it is and never becomes markup."""

from hypothesis import given
from hypothesis import strategies as st

from common.report.page import element
from common.service.web import pages

NASTY = '<img src=x onerror="alert(1)">&\'{csrf}{content}'


def test_every_builder_escapes():
    for made in (
        pages.section(NASTY, identifier=NASTY),
        pages.table(NASTY, [NASTY], [[NASTY]]),
        pages.code(NASTY),
        pages.badge(NASTY, NASTY),
        pages.moment(NASTY),
        pages.filled("login.html", title=NASTY, complaint=NASTY, sign_on="").decode(),
    ):
        assert "<img" not in made
        assert '"alert' not in made


def test_a_page_is_filled_in_one_pass():
    body = pages.page(NASTY, NASTY, element("p", NASTY), csrf="the-secret").body.decode()
    assert "<img src=x" not in body
    # The session's secret is in the logout form and on the body, and not where a value asks for it.
    assert body.count("the-secret") == 2


@given(st.text())
def test_text_comes_back_as_it_was(words):
    from html.parser import HTMLParser

    class Reader(HTMLParser):
        tags, text = 0, ""

        def handle_starttag(self, tag, attrs):
            self.tags += 1

        def handle_data(self, data):
            self.text += data

    reader = Reader()
    reader.feed(pages.code(words))
    reader.close()
    assert reader.tags == 1
    assert reader.text == words.replace("\r\n", "\n").replace("\r", "\n") or reader.text == words
