"""The name and the terms of a later study, and of a rehearsal."""

import datetime as dt
from dataclasses import replace

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from curator.revision import next_name, rehearsed, revised
from tests.harness.small_study import make_study


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("health 2026", "health 2027"), ("2026, north", "2027, north"), ("health", "health 2031"),
        ("survey 120261", "survey 120261 2031"),
    ],
)  # fmt: skip
def test_the_year_in_a_name(earlier, later):
    assert next_name(earlier, 2031) == later


ROWS = {"north": 30, "east": 40}
IDENTITIES = {name: Identity.generate(SeededRandomSource(name)) for name in ROWS}
LAST_DAY = dt.date(2026, 6, 30)
LATER = dt.date(2027, 6, 30)


@pytest.mark.parametrize(
    ("today", "given", "expires"),
    [
        (LAST_DAY, None, LAST_DAY), (LAST_DAY + dt.timedelta(days=1), None, None),
        (LAST_DAY, LATER, LATER), (LATER, LATER, LATER),
    ],
)  # fmt: skip
def test_a_last_day_that_is_over_is_left_out(today, given, expires):
    earlier = replace(make_study(IDENTITIES, ROWS), expires=LAST_DAY)
    assert revised(earlier, name="next", today=today, expires=given).expires == expires


def test_a_rehearsal_is_the_study_but_for_its_name_and_its_mark():
    study = make_study(IDENTITIES, ROWS)
    again = rehearsed(study)
    assert (again.name, again.rehearsal) == (f"rehearsal of {study.name}", True)
    assert replace(again, name=study.name, rehearsal=False).digest == study.digest
    with pytest.raises(InputError, match="it is a rehearsal"):
        revised(again, name="next", today=LATER)
    assert len(rehearsed(replace(study, name="n" * 100)).name) == 100
