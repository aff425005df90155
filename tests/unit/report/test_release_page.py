"""What the report says of a release: figures against simulation and by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

import parley
from common.analysis.diagnostics import diagnose
from common.privacy.randomness import SeededRandomSource
from common.release.measured import ExpectedError
from common.report.release_page import ReleaseFacts, release_page
from common.schema import Codes, Schema
from tests.unit.report.conftest import SCHEMA


def facts(codes, **changes):
    one_row = SCHEMA.decode(
        Codes.from_columns([np.array([0]), np.array([0])], SCHEMA.sizes), SeededRandomSource(1)
    )
    privacy = parley.Privelet(epsilon=1).fit(one_row, SCHEMA)
    given = {
        "schema": SCHEMA, "synthetic": codes, "rows": 1_000, "privacy": privacy.privacy,
        "network": None, "shares": [None, None], "columns": [], "pairs": [],
        "method_facts": [("method", "by hand")], "diagnostics": diagnose(privacy, codes),
        "synthetic_rows": codes.rows, "date": "2026-11-16",
    }  # fmt: skip
    return ReleaseFacts(**(given | changes))


def test_names_of_attributes_are_escaped(codes):
    page = release_page(facts(codes))
    assert "<b>number" not in page
    assert "&lt;b&gt;number" in page


def test_a_wide_attribute_is_drawn_in_groups(codes):
    page = release_page(facts(codes))
    assert ">a</text>" in page
    assert ">0 … 1</text>" in page
    assert page.count("%</text>") == 3 + 64 // 2


def test_the_page_begins_with_study_owners_date_and_a_summary(codes):
    page = release_page(facts(codes, title="lungs & hearts", date="2026-11-17"))
    heading, _, rest = page.partition("</h1>")
    assert heading.endswith("lungs &amp; hearts: a synthetic table")
    before, _, _ = rest.partition('<section id="section-1">')
    assert "2026-11-17" in before
    for box in ("What it is", "Privacy", "Single columns", "Pairs of columns", "Do not use it for"):
        assert f"<h3>{box}</h3>" in before
    linked = re.findall(r'href="#([^"]+)"', heading + before)
    assert sorted(linked) == sorted(re.findall(r'<section id="([^"]+)"', page)), "help among them"


def test_every_column_and_every_pair_has_one_line_of_error(codes):
    columns = [ExpectedError((0,), 3, 10.0, 0.01), ExpectedError((1,), 64, 10.0, 0.2)]
    pairs = [ExpectedError((0, 1), 12, 5.0, 0.3, grouped=True)]
    page = release_page(facts(codes, columns=columns, pairs=pairs))
    _, _, section = page.partition("<h2>Expected error</h2>")
    lines = re.findall(r"<tr><td>(.*?)</td>", section.partition("</section>")[0])
    assert lines == ["&lt;b&gt;number&lt;/b&gt;", "letter",
                     "letter and &lt;b&gt;number&lt;/b&gt; (in groups of values)"]  # fmt: skip


def test_a_release_without_rows_or_pairs_has_a_page(codes):
    assert "no pairs" in release_page(facts(codes.take(slice(0, 0))))


def test_a_release_that_is_not_private_says_so_first(codes):
    privacy = dict(facts(codes).privacy)
    privacy |= {"private": False, "not_private_because": ["the reason"]}
    assert "NOT PRIVATE: the reason" in release_page(facts(codes, privacy=privacy))


@pytest.mark.parametrize(("epsilon", "warned"), [(8, False), (9, True)])
def test_an_epsilon_that_promises_nothing_is_called_so(codes, epsilon, warned):
    privacy = dict(facts(codes).privacy) | {"epsilon_delivered": epsilon}
    page = release_page(facts(codes, privacy=privacy))
    assert ("promises next to nothing" in page) is warned


def test_what_stands_out_is_judged_by_the_noise_of_the_columns(codes):
    page = release_page(facts(codes, columns=[ExpectedError((0,), 3, 10.0, 0.01)]))
    assert "well above 20 rows" in page
    assert "Mostly noise" not in page
    drowned = release_page(facts(codes, columns=[ExpectedError((0,), 3, 900.0, 0.9)]))
    assert "Mostly noise: in 1 of 1 columns (letter)" in drowned


def test_relations_are_counted_and_a_caution_where_there_are_none(codes):
    related = release_page(facts(codes))
    assert "1 of 1 pairs are significantly dependent" in related
    assert "No relations" not in related
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, size, 1_000) for size in SCHEMA.sizes]
    alone = release_page(facts(Codes.from_columns(columns, SCHEMA.sizes)))
    assert "0 of 1 pairs are significantly dependent" in alone
    assert "No relations" not in alone  # two attributes may well be independent
    letters = SCHEMA.attributes[0]
    three = Schema(tuple(replace(letters, name=name) for name in "abc"))
    columns = [rng.integers(0, 3, 1_000) for _ in "abc"]
    changed = {"schema": three, "shares": [None] * 3}
    alone = release_page(facts(Codes.from_columns(columns, three.sizes), **changed))
    assert "No relations: 3 of 3 columns" in alone


def test_what_is_not_promised_is_said(codes):
    assert "A person with several rows is protected less" in release_page(facts(codes))


def test_wide_tables_scroll_by_themselves(codes):
    page = release_page(facts(codes))
    assert page.count("<table") == page.count('<div class="wide" tabindex="0"><table') > 2
