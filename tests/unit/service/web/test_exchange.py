"""Requests as a browser sends them, and responses that carry nothing they should not."""

import re
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.service.web.exchange import WebRequest, download, see_other, text


@given(st.text(max_size=200))
def test_any_cookie_header_is_read_without_a_failure(header):
    request = WebRequest(method="GET", path="/", headers={"cookie": header})
    assert isinstance(request.cookie("parley"), str)


def test_a_cookie_is_found_among_others():
    request = WebRequest(method="GET", path="/", headers={"cookie": "a=1; parley=x=y; parley=z"})
    assert request.cookie("parley") == "x=y"


FORM = "application/x-www-form-urlencoded"


def posted(body, kind=FORM):
    return WebRequest(method="POST", path="/", headers={"content-type": kind}, body=body)


@pytest.mark.parametrize("kind", [FORM, FORM.upper(), f"{FORM}; charset=utf-8"])
def test_the_first_field_of_each_name_counts_and_an_empty_one_is_there(kind):
    assert posted(b"a=1&a=2&b=&c=%C3%A9+x", kind).form() == {"a": "1", "b": "", "c": "é x"}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"a=1", "text/plain", "expected a form"),
        (b"a=1", "", "expected a form"),
        (b"\xff\xfe", FORM, "cannot be read"),
        (b"&".join(b"f%d=1" % i for i in range(21)), FORM, "cannot be read"),
    ],
)
def test_what_is_no_form_is_refused(body, kind, words):
    with pytest.raises(InputError, match=words):
        posted(body, kind).form()


@given(st.text())
def test_the_name_of_a_download_cannot_end_its_header(name):
    ((_, value),) = download(name, iter(())).headers
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]*"', value)


def test_a_redirection_goes_where_it_says_with_what_is_added():
    response = see_other("/studies", ("Set-Cookie", "a=b"))
    assert response.status == 303
    assert response.headers == (("Location", "/studies"), ("Set-Cookie", "a=b"))
    assert text(HTTPStatus.NOT_FOUND, "no such page").body == b"no such page\n"
