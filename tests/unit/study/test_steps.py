"""Steps: every field that matters is in the digest, costs follow the noise, sizes are bounded."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from common.errors import InputError
from common.exchanges.choice import choice_step
from common.exchanges.sums import sum_step
from common.exchanges.two_party import joint_choice_step
from common.privacy import sensitivity
from common.privacy.noise_law import DiscreteLaplace
from common.schema.limits import MOST_STEP_CELLS
from common.study.requests import TableRequest
from common.study.steps import step_digest

REQUEST = TableRequest(((0, 1), (1, 2)), (2, 3, 4))
STEP = sum_step(
    name="pairs",
    phase="tables",
    parties=("north", "south"),
    request=REQUEST,
    sensitivity=sensitivity.histograms(2),
    law=DiscreteLaplace(Fraction(8)),
)


class Payload:
    """A choice of no substance."""

    canonical = b"choice"


TURN: dict[str, Any] = {
    "name": "turn",
    "phase": "structure",
    "party": "north",
    "choice": Payload(),
    "epsilon": Fraction(1, 2),
    "mechanism": "exponential mechanism",
}
CHOICE = choice_step(**TURN)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "others"},
        {"parties": ("south", "north")},
        {"parties": ("north",)},
        {"request": replace(REQUEST, sets=((0, 1), (0, 2)))},
        {"sensitivity": sensitivity.histograms(3)},
        {"law": DiscreteLaplace(Fraction(9))},
    ],
)
def test_what_matters_about_a_sum_is_in_its_digest(change):
    assert step_digest(b"h", 3, replace(STEP, **change)) != step_digest(b"h", 3, STEP)


def test_the_phase_is_for_people_and_history_and_number_are_in_the_digest():
    digest = step_digest(b"h", 3, STEP)
    assert step_digest(b"h", 3, replace(STEP, phase="else")) == digest
    assert len({digest, step_digest(b"g", 3, STEP), step_digest(b"h", 4, STEP)}) == 3


def test_a_sum_costs_every_party_that_contributes_and_a_choice_the_one_that_chooses():
    # A replaced row moves four counts by one each: 4 / 8.
    assert STEP.costs == {"north": Fraction(1, 2), "south": Fraction(1, 2)}
    assert (STEP.cells, STEP.links, STEP.owners_with("north")) == (18, ((0, 1), (1, 2)), 2)
    assert CHOICE.costs == {"north": Fraction(1, 2)}
    assert CHOICE.owners_with("north") == 0  # its rows are added up with none


def test_a_joint_choice_costs_both_and_is_no_choice_of_one():
    joint = joint_choice_step(**TURN, partner="south")
    assert joint.costs == {"north": Fraction(1, 2), "south": Fraction(1, 2)}
    assert joint.owners_with("south") == 2
    other = joint_choice_step(**TURN, partner="east")
    canonical = {CHOICE.canonical, joint.canonical, other.canonical}
    assert len(canonical) == 3


def test_a_step_that_no_message_can_carry_is_refused_by_name():
    def asking(cells):
        step = replace(STEP, request=TableRequest(((0,),), (cells,)))
        step.exchange.check_size(step)

    asking(MOST_STEP_CELLS)
    with pytest.raises(InputError, match=r"step 'pairs': it asks for [\d,]+ integers at once"):
        asking(MOST_STEP_CELLS + 1)
