"""subn+ on people and events: its steps, its budget, and what it refuses by name."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from common.errors import InputError
from common.methods.registry import methods, run_of
from common.methods.subn_plus import METHOD
from common.methods.subn_plus.linked.script import (
    MOST_GROUPS,
    NEXT,
    LinkedFacts,
    decide_budget,
    kinds_of,
)
from common.study.accounting import account
from common.study.dry_run import costs_without_rows
from tests.harness.linked import SCHEMA, linked_codes
from tests.harness.linked_runs import dealt_out, fitted, linked_study

LINKED = linked_codes(600)
DELTA = Fraction(1, 10**9)


def budget_at(**changes):
    return decide_budget(LinkedFacts.of(linked_study(dealt_out(LINKED), **changes)))


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 30])
def test_the_steps_cost_what_was_promised_and_no_more(epsilon, delta):
    outcome = fitted(LINKED, epsilon=epsilon, delta=delta)
    spent = account(outcome.study, outcome.steps).most_spent  # refuses steps that cost more
    budget = outcome.study.promise.budget
    assert budget * Fraction(999, 1000) < spent <= budget


def test_what_noise_would_hide_is_not_asked_for():
    names = {
        epsilon: [step.name for step in fitted(LINKED, epsilon=epsilon).steps]
        for epsilon in (Fraction(1, 10), 100)
    }
    assert names[Fraction(1, 10)] == ["margins", "margins of events"]
    assert names[100] == [
        "margins", "margins of events", "pairs", "pairs with events", "pairs of events",
        "next events", "totals",
    ]  # fmt: skip


def test_more_budget_buys_finer_groups_and_margins_get_what_is_left():
    few, many = budget_at(epsilon=6), budget_at(epsilon=500)
    assert 2 <= few.pair_groups < many.pair_groups <= MOST_GROUPS
    assert many.margins / 500 < few.margins / 6  # clear margins need less
    none = budget_at(epsilon=Fraction(1, 10))
    assert (none.margins, none.costs) == (Fraction(1, 10), {})


def test_all_margins_have_the_same_noise():
    steps = {step.name: step for step in fitted(LINKED, epsilon=100).steps}
    averaged = steps["margins of events"]
    assert averaged.law.scale == averaged.counted.unit * steps["margins"].law.scale


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


@pytest.mark.parametrize("name", [each.name for each in methods().values() if not each.linked])
def test_other_methods_refuse_linked_schemas_by_name(name):
    with pytest.raises(InputError, match=r"single tables, and the schema has \[events\]"):
        run_of(linked_study(dealt_out(LINKED), method=name, analyses=()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"rows_per_person": 2}, "rows_per_person"), ({"prior": "ab" * 32}, "prior")],
)
def test_what_linked_tables_do_not_have_is_refused_by_name(changes, words):
    with pytest.raises(InputError, match=words):
        run_of(linked_study(dealt_out(LINKED), **changes))


def test_a_dry_run_finds_what_will_be_charged():
    study = linked_study(dealt_out(LINKED), epsilon=100, delta=DELTA)
    costs = costs_without_rows(study, run_of(study))
    outcome = fitted(LINKED, epsilon=100, delta=DELTA)
    assert costs["p0"] == account(outcome.study, outcome.steps).spent("p0")


def test_the_promise_is_to_a_person_with_all_events():
    assert linked_study(dealt_out(LINKED)).promise.events == "visits"
