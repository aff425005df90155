"""PrivBayes from rows to rows: budgets, independence from the data, and randomness."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import parley
from common.bayes.domain import View
from common.bayes.network import Network, Pair
from common.bayes.privbayes import mechanism as privbayes
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions
from common.bayes.privbayes.mechanism import PrivateSelect, fit_privbayes
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score
from common.errors import InputError, PolicyError
from common.privacy.accountant import Accountant
from common.privacy.randomness import OsRandomSource, SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, binary_tree

SIZES = (16, 3, 2, 5)
HIERARCHIES = [
    Hierarchy(binary_tree([str(i) for i in range(16)])),
    *(Hierarchy.flat([str(i) for i in range(size)]) for size in SIZES[1:]),
]


def rows_of(number=3000, seed=1, sizes=SIZES):
    generator = np.random.default_rng(seed)
    first = generator.integers(0, sizes[0], number)
    columns = [first]
    columns += [
        np.where(generator.random(number) < 0.7, first % s, generator.integers(0, s, number))
        for s in sizes[1:]
    ]
    return Codes.from_columns(columns, sizes)


def fit(codes, epsilon="1", seed=7, hierarchies=None, cap=None, **options):
    accountant = Accountant({"owner": cap})
    model = fit_privbayes(
        codes,
        epsilon=Fraction(epsilon),
        source=SeededRandomSource(seed),
        accountant=accountant,
        hierarchies=hierarchies,
        options=PrivBayesOptions(**options),
    )
    return model, accountant


VARIANTS = [
    {},
    {"hierarchies": HIERARCHIES},
    {"encoding": Encoding.VANILLA, "score": Score.MUTUAL_INFORMATION},
    {"encoding": Encoding.BINARY},
    {"encoding": Encoding.GRAY, "score": Score.INDEPENDENCE, "printed_sensitivity": True},
    {"constraints": Constraints(required=frozenset({(0, 2)}), max_parents=1)},
    {"network": Network((Pair(0), Pair(1), Pair(2, (View(0),)), Pair(3)))},
]


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("epsilon", ["1/1000", "1/3", "4"])
def test_the_ledger_adds_up_to_epsilon_exactly(options, epsilon):
    model, accountant = fit(rows_of(), epsilon, **options)
    assert accountant.spent("owner") == Fraction(epsilon)
    assert model.plan.network_epsilon + model.plan.table_epsilon == Fraction(epsilon)
    draws = model.plan.domain.width - 1 if model.plan.network is None else 0
    assert len(accountant.charges) == draws + 1
    assert model.private is False
    assert model.sample(100, SeededRandomSource(1)).sizes == SIZES


@pytest.mark.parametrize("options", VARIANTS)
def test_tiny_budgets_give_proper_models(options):
    model, _ = fit(rows_of(50), "1/100000", **options)
    for conditional in model.conditionals:
        assert np.isfinite(conditional).all()
        assert conditional.sum(axis=1) == pytest.approx(1)
    assert model.sample(50, SeededRandomSource(1)).rows == 50


def test_a_cap_below_the_cost_stops_the_fit_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(
        privbayes, "exponential_mechanism", lambda *_, **__: pytest.fail("drawn after a refusal")
    )
    with pytest.raises(PolicyError, match="nothing was drawn"):
        fit(rows_of(), "1", cap=Fraction(999, 1000))
    monkeypatch.undo()
    _, accountant = fit(rows_of(), "1", cap=Fraction(1))
    assert accountant.remaining("owner") == 0


def test_public_decisions_do_not_depend_on_the_rows(monkeypatch):
    """A neighbour with a new extreme and a new category changes no shape, count or budget."""
    offered = []

    def record(scores, **parameters):
        del parameters["source"]
        offered.append((len(scores), parameters))
        return len(scores) // 2

    monkeypatch.setattr(privbayes, "exponential_mechanism", record)
    rows = 800
    plain = [np.zeros(rows, dtype=int) for _ in SIZES]
    extreme = [np.r_[size - 1, column[1:]] for column, size in zip(plain, SIZES, strict=True)]
    for options in VARIANTS:
        seen = []
        for columns in (plain, extreme):
            offered.clear()
            model, accountant = fit(Codes.from_columns(columns, SIZES), **options)
            document = model.as_json()
            shapes = [(t["family"], len(t["counts"])) for t in document.pop("tables")]
            seen.append((document, shapes, list(offered), accountant.charges))
        assert seen[0] == seen[1]


def test_hierarchies_of_other_attributes_are_refused():
    with pytest.raises(InputError, match="domains of sizes"):
        fit(rows_of(), hierarchies=HIERARCHIES[::-1])


def test_two_fits_without_a_seed_differ():
    codes = rows_of(500)
    tables = []
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (to show that it is left alone)
    for _ in range(2):
        model = fit_privbayes(
            codes,
            epsilon=Fraction(1),
            source=OsRandomSource(),
            accountant=Accountant({"owner": None}),
            options=PrivBayesOptions(network=Network(tuple(Pair(i) for i in range(4)))),
        )
        assert model.private
        tables.append(np.concatenate([t.ravel() for t in model.tables.values()]))
    assert not np.array_equal(*tables)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_the_same_seed_gives_the_same_model():
    assert fit(rows_of(), seed=3)[0].as_json() == fit(rows_of(), seed=3)[0].as_json()
    assert fit(rows_of(), seed=3)[0].as_json() != fit(rows_of(), seed=4)[0].as_json()


def test_flat_hierarchies_are_the_vanilla_encoding_bit_for_bit():
    flat = [Hierarchy.flat([str(i) for i in range(size)]) for size in SIZES]
    one = fit(rows_of(), hierarchies=flat)[0].as_json()
    two = fit(rows_of(), hierarchies=flat, encoding=Encoding.VANILLA)[0].as_json()
    assert one.pop("encoding") != two.pop("encoding")
    assert one == two


def test_a_single_attribute_and_a_single_row_are_models_too():
    model, accountant = fit(Codes.from_columns([np.array([1, 2, 0])], [3]))
    assert model.sample(5, SeededRandomSource(0)).rows == 5
    assert accountant.spent("owner") == 1
    for options in ({}, {"score": Score.MUTUAL_INFORMATION}, {"score": Score.INDEPENDENCE}):
        single = Codes.from_columns([np.array([1])] * 3, [2] * 3)
        model, accountant = fit(single, epsilon="1000", **options)
        assert accountant.spent("owner") == 1000


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(2), Fraction(10**9)])
@pytest.mark.parametrize("shift", [0, -(10**6)])
def test_draws_follow_the_exponential_mechanism(epsilon, shift):
    values = np.array([0, 3, 5, 6], dtype=np.int64) + shift
    draws = 4000
    select = PrivateSelect(
        Accountant({"owner": None}),
        epsilon=epsilon * draws,
        draws=draws,
        source=SeededRandomSource(11),
    )
    drawn = np.bincount(
        [select(values, sensitivity=Fraction(3), score_error=Fraction(0)) for _ in range(draws)],
        minlength=4,
    )
    exponent = (values - values.max()) * float(epsilon) / 6
    law = np.exp(exponent) / np.exp(exponent).sum()
    if epsilon > 1000:
        assert drawn.tolist() == [0, 0, 0, draws]
    else:
        assert chisquare(drawn, law * draws).pvalue > 1e-6


def test_impossible_cells_of_tables_hold_no_noise():
    schema = Schema.from_toml(
        '[[attribute]]\nname = "a"\nkind = "boolean"\n'
        '[[attribute]]\nname = "b"\nkind = "categorical"\nvalues = ["x", "y", "z"]\n'
        '[[rule]]\nimpossible = "a = true and b = x"\n'
    )
    table = pd.DataFrame({"a": [False, True] * 20, "b": ["x", "y"] * 20})
    fitted = parley.PrivBayes(
        epsilon=0.1, seed=1, encoding="vanilla", network={"a": [], "b": ["a"]}
    ).fit(table, schema)
    (counts,) = (own for own in fitted.model.tables.values() if own.ndim == 2)
    assert counts[0, 1] == 0
    assert (counts != 0).sum() >= 4
    again = fitted.refit(fitted.sample_codes(40), SeededRandomSource(2)).model
    assert next(own for own in again.tables.values() if own.ndim == 2)[0, 1] == 0
