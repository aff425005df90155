"""What subn+ asks of people and events: the division of the budget, and the promise."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from common.methods.subn_plus import METHOD
from common.methods.subn_plus.linked.plans import (
    BOTH,
    EVENTS,
    MARGIN_FRACTIONS,
    MOST_GROUPS,
    NEXT,
    PEOPLE,
    Division,
    LinkedFacts,
    best_division,
    decide_budget,
    kinds_of,
)
from common.methods.subn_plus.prospects import OF_SUBN, others_seen
from common.study.analyses import read_analyses
from parley.simulation.population import linked_schema
from tests.harness.linked import SCHEMA, linked_codes
from tests.harness.linked_runs import dealt_out, linked_study

LINKED = linked_codes(600)
DELTA = Fraction(1, 10**9)


def budget_at(**changes):
    return decide_budget(LinkedFacts.of(linked_study(dealt_out(LINKED), **changes)))


def test_more_budget_buys_finer_groups_and_margins_get_what_is_left():
    few, many = budget_at(epsilon=6), budget_at(epsilon=500)
    assert 2 <= few.pair_groups < many.pair_groups <= MOST_GROUPS
    none = budget_at(epsilon=Fraction(1, 10))
    assert (none.margins, none.costs) == (Fraction(1, 10), {})


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
def test_costs_of_kinds_have_the_least_noise(delta):
    """Against all other divisions of the same budget, in steps of a twentieth."""
    facts = LinkedFacts.of(linked_study(dealt_out(LINKED), epsilon=100, delta=delta))
    tables = kinds_of(facts)
    costs = decide_budget(facts).costs
    power = 1.0 if delta == 0 else 0.5

    def noise(shares):
        return sum((tables[kind] / float(share)) ** power for kind, share in shares.items())

    whole = sum(costs.values())
    least = noise(costs)
    for parts in product(range(1, 18), repeat=len(tables)):
        if sum(parts) == 20:
            other = [whole * Fraction(part, 20) for part in parts]
            assert least <= noise(dict(zip(tables, other, strict=True))) * 1.000001


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 2), 3, 20, 100])
def test_no_other_division_is_forecast_to_have_less_error(epsilon, delta):
    facts = LinkedFacts.of(linked_study(dealt_out(LINKED), epsilon=epsilon, delta=delta))
    best = best_division(facts)
    assert best.error <= Division(facts, (), Fraction(1)).error
    for kinds in ((PEOPLE,), (EVENTS,), (EVENTS, NEXT), (PEOPLE, BOTH, EVENTS, NEXT)):
        for share in MARGIN_FRACTIONS:
            assert not Division(facts, kinds, share).error < best.error
    if set(best.kinds) - {PEOPLE}:
        assert EVENTS in best.kinds


def test_what_is_asked_for_grows_with_the_budget():
    facts = [LinkedFacts.of(linked_study(dealt_out(LINKED), epsilon=own)) for own in (1, 10, 100)]
    found = [set(best_division(own).kinds) for own in facts]
    assert found[0] < found[2] == {PEOPLE, BOTH, EVENTS, NEXT}
    assert len(found[0]) <= len(found[1]) <= len(found[2])


def test_a_delta_is_kept_where_events_make_the_tables_many():
    """A study of few columns of people, and many of events, has many tables."""
    entries = SCHEMA.events.attributes
    many = tuple(replace(entries[0], name=f"kind {number}") for number in range(12))
    schema = replace(SCHEMA, events=replace(SCHEMA.events, attributes=many))
    study = linked_study(dealt_out(LINKED), schema=schema, epsilon=1, delta=DELTA)
    assert METHOD.clearest(study).delta == DELTA
    few = linked_study(dealt_out(LINKED), epsilon=1, delta=DELTA)
    assert METHOD.clearest(few).delta == 0  # few tables are clearer without


def test_one_event_has_no_next():
    schema = replace(SCHEMA, events=replace(SCHEMA.events, most=1))
    tables = {name: replace_most(table) for name, table in dealt_out(linked_codes(300)).items()}
    study = linked_study(tables, schema=schema, epsilon=100)
    assert NEXT not in decide_budget(LinkedFacts.of(study)).costs


def replace_most(linked):
    first = linked.starts[linked.numbers > 0]
    numbers = (linked.numbers > 0).astype("int64")
    return type(linked)(linked.columns, linked.sizes, linked.events.take(first), numbers, 1)


def test_beside_analyses_a_delta_is_kept_where_it_shows_more_kinds_of_pairs():
    schema = linked_schema()
    asked = ['share = "diagnosis = Pregnancy", by = "sex"', 'mean = "nights", by = "department"']
    analyses = read_analyses(asked, schema)
    study = linked_study(dealt_out(LINKED), schema=schema, delta=DELTA, analyses=analyses)
    study = replace(study, members=tuple(replace(m, rows=6_000) for m in study.members))
    pure = replace(study, delta=Fraction(0))
    assert OF_SUBN.widest(pure) < OF_SUBN.widest(study)
    assert others_seen(pure) < others_seen(study)
    assert METHOD.clearest(study).delta == DELTA
    alone = replace(study, others=Fraction(0))
    assert METHOD.clearest(alone).delta == 0
