"""subn+ on people and events: its steps, and what it refuses by name."""

from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.methods.registry import methods, run_of
from common.schema import Codes
from common.schema.linked import LinkedCodes
from common.study.accounting import account
from common.study.dry_run import costs_without_rows
from tests.harness.linked import linked_codes
from tests.harness.linked_runs import dealt_out, fitted, linked_study

LINKED = linked_codes(600)
DELTA = Fraction(1, 10**9)


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
    margins = ["margins", "number of events", "margins of events"]
    assert names[Fraction(1, 10)] == margins
    assert names[100] == [
        *margins, "pairs", "pairs with the number", "pairs with events", "pairs of events",
        "next events", "totals",
    ]  # fmt: skip


def test_all_margins_have_the_same_noise():
    steps = {step.name: step for step in fitted(LINKED, epsilon=100).steps}
    for name in ("number of events", "margins of events"):
        assert steps[name].law.scale == steps[name].counted.unit * steps["margins"].law.scale


def test_events_of_people_with_many_weigh_as_much_as_they_are():
    """Averages of people are no averages of events, where many events are other events."""
    codes = linked_codes(4000)
    often = codes.numbers[codes.of_person] > 2
    kinds = np.where(often, 0, 1 + codes.events.columns[0] % 2)
    columns = (kinds.astype(codes.events.columns[0].dtype), *codes.events.columns[1:])
    events = Codes(columns, codes.events.sizes)
    codes = LinkedCodes(codes.columns, codes.sizes, events, codes.numbers, codes.most)
    for method, epsilon in (("floor", 20), ("subn+", 200)):
        drawn = fitted(codes, method=method, epsilon=epsilon).sample(codes)
        assert abs((drawn.events.columns[0] == 0).mean() - often.mean()) < 0.05
    averaged = (codes.numbers > 2).sum() / (codes.numbers > 0).sum()
    assert often.mean() - averaged > 0.1  # with power


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
