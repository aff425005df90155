"""Averaged tables: as a naive count in fractions, and moved by a person no further than proved."""

from fractions import Fraction
from itertools import combinations, pairwise, product
from math import lcm

import numpy as np
import pytest

from common.errors import LocalError
from common.methods.subn_plus.linked.requests import AveragedTables, NextTables, unit_of, weight
from common.schema.codes import Codes
from common.schema.linked import LinkedCodes
from common.study.requests import RowsInMemory
from tests.harness.linked import linked_codes

LINKED = linked_codes(50)
SIZES = (2, 6, 5, 4, 3)  # sex, age, number, diagnosis, ward
GROUPS = ((0, 1), (0, 0, 1, 1, 2, 2), (0, 1, 1, 2, 2), (0, 1, 2, 2), (0, 1, 1))
PEOPLE, MOST = 3, 4


def people_with_events(linked):
    """Yield each person's codes, her number of events among them, and her events' codes."""
    start = 0
    for at, number in enumerate(linked.numbers.tolist()):
        own = [int(column[at]) for column in linked.columns]
        events = [
            [int(column[place]) for column in linked.events.columns]
            for place in range(start, start + number)
        ]
        yield [*own, number], events
        start += number


def naive_averages(linked, own, groups):
    shape = [max(groups[v]) + 1 for v in own]
    table = np.full(shape, Fraction(0), dtype=object)
    for person, events in people_with_events(linked):
        if max(own) < PEOPLE:
            table[tuple(groups[v][person[v]] for v in own)] += 1
            continue
        for event in events:
            row = person + event
            table[tuple(groups[v][row[v]] for v in own)] += Fraction(1, len(events))
    return table


def naive_next(linked, own, after, groups):
    table = np.full((max(groups[own]) + 1, max(groups[after]) + 1), Fraction(0), dtype=object)
    for _, events in people_with_events(linked):
        for one, other in pairwise(events):
            table[groups[own][one[own]], groups[after][other[after]]] += Fraction(
                1, len(events) - 1
            )
    return table


@pytest.mark.parametrize("groups", [GROUPS, tuple(tuple(range(size)) for size in SIZES)])
def test_averages_are_those_of_a_naive_count(groups):
    sets = (*((v,) for v in range(5)), *combinations(range(5), 2))
    request = AveragedTables(sets, groups, PEOPLE, MOST)
    tables = request.split(request.answer(RowsInMemory(LINKED)))
    assert request.unit == lcm(1, 2, 3, 4)
    for own in sets:
        exact = naive_averages(LINKED, own, groups)
        assert (tables[own] == request.unit * exact).all()
    assert request.cells == sum(table.size for table in tables.values())


def test_consecutive_events_are_those_of_a_naive_count():
    request = NextTables(GROUPS[PEOPLE:], MOST)
    tables = request.split(request.answer(RowsInMemory(LINKED)))
    assert request.unit == lcm(1, 2, 3)
    for own, after in request.sets:
        exact = naive_next(LINKED, own, after, GROUPS[PEOPLE:])
        assert (tables[own, after] == request.unit * exact).all()


def test_above_eight_events_weights_are_rounded_down_and_the_fit_is_told():
    assert [unit_of(most) for most in (1, 2, 5, 8, 9, 64)] == [1, 2, 60, 840, 840, 840]
    for number in range(1, 65):
        assert weight(number, unit=840) == number * (840 // number) / 840 <= 1
    assert weight(0, unit=840) == 0
    assert weight(8, unit=840) == 1


def histories(most, values):
    """Every history of one event attribute, none included."""
    for number in range(most + 1):
        yield from product(range(values), repeat=number)


def one_person(history, most, values, attributes=2):
    """A person with a history; a second attribute of events mirrors the first."""
    column = np.array(history, dtype=np.int64)
    columns = [column, values - 1 - column][:attributes]
    events = Codes.from_columns(columns, [values] * attributes)
    person = Codes.from_columns([np.array([len(history) % 2])], [2])
    numbers = np.array([len(history)])
    return LinkedCodes(person.columns, person.sizes, events, numbers, most)


@pytest.mark.parametrize(("most", "values"), [(1, 3), (2, 3), (3, 2), (4, 2), (9, 1)])
def test_a_replaced_person_moves_averages_by_their_bound_and_no_further(most, values):
    # Other people cancel: only the person who leaves and the person who enters count.
    every = tuple(tuple(range(size)) for size in (2, most + 1, values, values))
    sets = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (2, 3))
    requests = [AveragedTables(sets, every, 2, most)]
    requests += [NextTables(every[2:], most)] if most > 1 else []
    for request in requests:
        answers = np.array(
            [
                request.answer(RowsInMemory(one_person(own, most, values)))
                for own in histories(most, values)
            ]
        )
        moved = answers[:, None, :] - answers[None, :, :]
        bound = request.sensitivity
        assert np.abs(moved).sum(axis=2).max() <= bound.l1
        assert (moved**2).sum(axis=2).max() <= bound.l2_squared
        assert answers.max() <= request.limit(1)
    alone = AveragedTables(((2,),), every, 2, most)
    if values > 1:  # attained
        pair = [alone.answer(RowsInMemory(one_person(own, most, values))) for own in [(0,), (1,)]]
        assert np.abs(pair[0] - pair[1]).sum() == alone.sensitivity.l1
        assert ((pair[0] - pair[1]) ** 2).sum() == alone.sensitivity.l2_squared


def test_counting_every_event_instead_would_pass_the_bound():
    request = AveragedTables(((2,),), ((0, 1), (0, 1, 2, 3, 4), (0, 1)), 2, 4)
    counted = [np.bincount(own, minlength=2) * request.unit for own in [(0,) * 4, (1,) * 4]]
    assert np.abs(counted[0] - counted[1]).sum() > request.sensitivity.l1


def test_requests_that_differ_have_other_bytes():
    sets = ((0,), (3,))
    requests = [
        AveragedTables(sets, GROUPS, PEOPLE, MOST),
        AveragedTables(sets[:1], GROUPS, PEOPLE, MOST),
        AveragedTables(sets, (*GROUPS[:4], (0, 0, 1)), PEOPLE, MOST),
        AveragedTables(sets, GROUPS, PEOPLE, MOST + 1),
        AveragedTables(sets, GROUPS, PEOPLE - 1, MOST),
        NextTables(GROUPS, MOST),
        NextTables(GROUPS[1:], MOST),
        NextTables(GROUPS, MOST + 1),
    ]
    assert len({request.canonical for request in requests}) == len(requests)


def test_rows_without_events_are_refused():
    alone = RowsInMemory(Codes(LINKED.columns, LINKED.sizes))
    for request in (AveragedTables(((3,),), GROUPS, PEOPLE, MOST), NextTables(GROUPS[3:], MOST)):
        with pytest.raises(LocalError, match="no events"):
            request.answer(alone)


def test_only_links_between_peoples_attributes_are_told():
    request = AveragedTables(((0, 1), (0, 3), (2, 4)), GROUPS, PEOPLE, MOST)
    assert request.links == ((0, 1), (0,), ())  # one for every table, which an owner is told of
    assert NextTables(GROUPS[3:], MOST).links == ((),) * 4
