"""Events on the report: their numbers are those of the synthetic tables."""

import re

import pandas as pd
import pytest

from common.report.events_section import events_section
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA, frames

PEOPLE, EVENTS = frames(400)
LINKED = encode_linked(SCHEMA, PEOPLE, EVENTS, person="id")
COUNTED = EVENTS.sort_values(["id", "day"]).groupby("id").head(4)


def test_numbers_columns_and_transitions_are_told():
    (section,) = events_section(SCHEMA, LINKED)
    assert section.title == "Visits"
    assert "One promise holds for a person and all of her visits" in section.html
    assert f"{len(COUNTED):,} synthetic visits of 400 people" in section.html
    following = COUNTED.groupby("id").diagnosis.shift(-1)
    share = pd.crosstab(COUNTED.diagnosis, following, normalize="index")
    drawn = dict(re.findall(r"<title>(\w, \w): (\d\.\d+)</title>", section.html))
    for one in "abcd":
        for other in "abcd":
            assert float(drawn[f"{one}, {other}"]) == pytest.approx(
                share.loc[one, other], abs=0.0006
            )


def test_a_single_table_or_no_people_have_no_such_section():
    assert events_section(SCHEMA.people, LINKED) == []
    assert events_section(SCHEMA, LINKED.take(slice(0, 0))) == []
    assert events_section(SCHEMA, LINKED.with_number) == []
