"""What may be shown of a step: its costs, and the pairs of attributes that it counts together."""

from fractions import Fraction
from itertools import combinations

from common.exchanges.choice import choice_step
from common.exchanges.sums import sum_step
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.sensitivity import Sensitivity
from common.study.requests import TableRequest
from curator.steps import published_links, step_record
from tests.harness.run_script import random_tables, study_of


def test_links_are_pairs_of_attributes_that_are_counted_together(stage):
    def record(sets, study=stage.study):
        step = sum_step(
            name="s", phase="p", parties=("north",), request=TableRequest(sets, (2, 3)),
            sensitivity=Sensitivity.moving(2), law=DiscreteLaplace(Fraction(4)),
        )  # fmt: skip
        return step_record(study, 0, step, at="now")

    assert record(((0,), (1,))).links == ()
    assert record(((1, 0), (0,))).links == ((0, 1),)
    assert record(((0,),)).costs == {"north": Fraction(1, 2)}


def step_of(sets, sizes):
    return sum_step(
        name="s",
        phase="p",
        parties=("p0",),
        request=TableRequest(tuple(sets), sizes),
        sensitivity=Sensitivity.moving(2),
        law=DiscreteLaplace(Fraction(4)),
    )


def test_a_table_of_three_links_each_pair_and_too_many_pairs_show_nothing():
    sizes = (2,) * 6
    study = study_of(random_tables(sizes, [9]))
    three = step_record(study, 2, step_of([(4, 0, 2)], sizes), at="noon")
    assert three.links == ((0, 2), (0, 4), (2, 4))
    assert (three.number, three.name, three.phase, three.opened_at) == (2, "s", "p", "noon")
    every = list(combinations(range(6), 2))
    assert len(step_record(study, 0, step_of(every[:11], sizes), at="").links) == 11
    assert step_record(study, 0, step_of(every[:12], sizes), at="").links == ()  # 12 of 15


def test_links_of_bits_are_those_of_the_attributes_that_they_belong_to():
    study = study_of(random_tables((4, 3, 2, 2, 2), [9]), encoding="binary")
    bits = (2,) * 7
    record = step_record(study, 0, step_of([(0, 1), (1, 2), (3, 6)], bits), at="")
    assert record.links == ((0, 1), (1, 4))


def test_a_choice_links_what_it_puts_together_once_it_is_published():
    study = study_of(random_tables((2, 2, 2, 2), [9]))

    class Chosen:
        def links(self, payload):
            return [tuple(payload)]

    step = choice_step(
        name="c", phase="p", party="p0", choice=Chosen(), epsilon=Fraction(1), mechanism="m"
    )
    assert published_links(study, step, bytes([3, 1])) == ((1, 3),)
    assert published_links(study, step_of([(0, 1)], (2,) * 4), bytes(4)) == ()
