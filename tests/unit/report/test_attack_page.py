"""The page of an attack: who may read it, and what it says first."""

import numpy as np
import pytest

from common.analysis.attacks import attack
from common.analysis.attacks_bounds import Guarantee
from common.report.attack_page import attack_page
from common.schema import Codes
from tests.harness.run_script import schema_of

SCHEMA = schema_of((6, 6, 6, 6, 6, 6))


def rows(seed, values=6):
    source = np.random.default_rng(seed)
    return Codes.from_columns([source.integers(0, values, 300) for _ in range(6)], SCHEMA.sizes)


@pytest.fixture(scope="module")
def leaking():
    return attack_page(attack(rows(1), rows(1), rows(2), SCHEMA, Guarantee(epsilon=1.0)))


def test_the_page_warns_who_may_read_it_before_anything_else(leaking):
    assert leaking.index("NOT FOR PUBLICATION") < leaking.index("In plain words")
    assert "without noise" in leaking


def test_a_leak_is_the_first_thing_said(leaking):
    assert leaking.index("MORE than the promise allows") < leaking.index("NOT FOR PUBLICATION")
    assert "300 of 300 synthetic rows equal a row of the study" in leaking
    assert "It cannot tell the files apart" in leaking


def test_an_honest_release_is_said_to_show_no_difference():
    page = attack_page(attack(rows(3), rows(1), rows(2), SCHEMA, Guarantee(epsilon=1.0)))
    assert "no difference found" in page
    assert "MORE than" not in page


def test_files_that_differ_by_themselves_are_warned_of():
    found = attack(rows(3), rows(1), rows(2, values=3), SCHEMA, Guarantee(epsilon=1.0))
    assert "even without the release" in attack_page(found)
