"""The page of an evaluation: who may read it, and its verdicts."""

import re
from dataclasses import replace

import numpy as np
import pytest

from common.analysis.distances import KINDS, NEXT, SAME, evaluate_linked
from common.analysis.evaluation import evaluate
from common.report.evaluation_page import evaluation_page
from common.schema import Codes
from common.schema.linked import encode_linked
from tests.harness import linked
from tests.harness.run_script import schema_of

SCHEMA = schema_of((2, 3))


def rows(first):
    count = len(first)
    return Codes.from_columns([np.asarray(first), np.arange(count) % 3], SCHEMA.sizes)


def page_of(share):
    """The page of a table whose first column is off by a share of the rows."""
    real = np.arange(300) % 2
    off = np.where(np.arange(300) < 300 * share, 1, real)
    return evaluation_page(evaluate(rows(real), rows(off), SCHEMA))


def test_the_page_warns_who_may_read_it_before_anything_else():
    page = page_of(0)
    assert page.index("NOT FOR PUBLICATION") < page.index("Distances of counts")
    assert "without noise" in page


@pytest.mark.parametrize(
    ("share", "verdict"), [(0, "Very close"), (0.14, "Close"), (0.3, "Fair"), (1, "Poor")]
)
def test_the_verdict_is_that_of_the_average_distance(share, verdict):
    """Half of the changed rows move, in one of two columns."""
    summary = re.search(r'<div class="cards">.*?</div></div>', page_of(share)).group()
    first = re.search(r"off by ([0-9.]+)%</strong><p>(\w+ ?\w*)", summary)
    assert float(first[1]) == pytest.approx(100 * share / 4, abs=0.2)
    assert first[2].startswith(verdict)


def test_a_table_without_numbers_says_so():
    assert "There are no columns of numbers to compare." in page_of(0)


def test_people_and_their_events_have_a_section_of_their_own():
    people, events = linked.frames(60)
    tables = ((people, events), (people, events.drop_duplicates("id")))
    pair = [encode_linked(linked.SCHEMA, *own, person="id") for own in tables]
    of_people = evaluate(*pair, linked.SCHEMA.people)
    page = evaluation_page(replace(of_people, linked=evaluate_linked(*pair, linked.SCHEMA)))
    assert "People and their visits" in page
    assert all((f"{kind}: {KINDS[kind]}" in page) is (kind not in (NEXT, SAME)) for kind in KINDS)
    assert "Nothing to compare: next event, same column next." in page
    assert "Number of visits of a person" in page
    assert "People and their" not in evaluation_page(of_people)
