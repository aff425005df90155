"""Rows of every model given a condition, against all rows of the model one by one."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from common.bayes.domain import View
from common.bayes.network import Network
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions
from common.bayes.privbayes.mechanism import fit_privbayes
from common.errors import InputError
from common.methods import conditional
from common.methods.conditional import ConditionalModel, within
from common.methods.distdiffgen.cuts import Cuts, LeafModel
from common.methods.independent import StackedModels
from common.methods.network_model import NetworkModel, Variables
from common.methods.subn_plus.descent import SpreadModel
from common.methods.subn_plus.joined import Joined, JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.attribute import Attribute, Listed
from common.schema.codes import Codes
from common.schema.conditions import CellWeights
from common.schema.hierarchy import Node, leaf
from common.schema.rules import Possible, read_rules

SIZES = (2, 3, 5, 2)
SEED = 4  # of each model by itself: a test does not depend on those before it
ROWS = Codes.from_columns(
    [np.random.default_rng(SEED).integers(0, size, 400) for size in SIZES], SIZES
)


def mixture(sizes):
    rng = np.random.default_rng(SEED)
    return LatentModel(
        rng.dirichlet(np.ones(3)), tuple(rng.dirichlet(np.ones(size), 3) for size in sizes)
    )


def network(*, in_bits):
    variables = Variables(SIZES, in_bits=in_bits)
    net = Network.from_parents({a: tuple(range(a))[-2:] for a in range(len(variables.sizes))})
    rng = np.random.default_rng(SEED)
    tables = {
        tuple(View(v.attribute) for v in pair.family): rng.integers(
            -3, 40, [variables.sizes[v.attribute] for v in pair.family]
        )
        for pair in net.pairs
    }
    return NetworkModel(variables, net, tables)


def privbayes(encoding):
    accountant = Accountant({"owner": Fraction(5)})
    return fit_privbayes(
        ROWS, epsilon=Fraction(5), source=SeededRandomSource(2), accountant=accountant,
        options=PrivBayesOptions(encoding=encoding), hierarchies=None,
    )  # fmt: skip


NO_RULES = Possible((), {})


def given(model, condition):
    return ConditionalModel(model, NO_RULES).given(condition)


MODELS = {
    "mixture": lambda: mixture(SIZES),
    "joined": lambda: JoinedModel(Joined.of([(3, 1)], SIZES), mixture((6, 2, 5))),
    "network": lambda: network(in_bits=False),
    "network of bits": lambda: network(in_bits=True),
    "privbayes": lambda: privbayes(Encoding.VANILLA),
    "privbayes of Gray bits": lambda: privbayes(Encoding.GRAY),
    "spread": lambda: SpreadModel(mixture((2, 3, 2, 2)), SIZES, {2: (0, 1, 0, 0, 1)}),
    "spread and joined": lambda: SpreadModel(
        JoinedModel(Joined.of([(2, 1)], (2, 2, 3, 2)), mixture((6, 2, 2))),
        SIZES,
        {2: (0, 1, 1, 2, 0), 1: (0, 0, 1)},
    ),
    "leaves": lambda: LeafModel(
        Cuts(
            tuple(
                tuple(
                    leaf("", own[0]) if len(own) == 1 else Node("", tuple(leaf("", c) for c in own))
                    for own in cut
                )
                for cut in ([[0], [1]], [[0], [1, 2]], [[0, 3], [1, 4], [2]], [[0, 1]])
            ),
            0,
        ),
        SIZES,
        np.random.default_rng(SEED).integers(-3, 40, (2, 2, 3)),
    ),
    "stacked": lambda: StackedModels((privbayes(Encoding.VANILLA), privbayes(Encoding.BINARY))),
}


def distribution(model):
    """The probability of every row, by the model's own parts and nothing of `weighting`."""
    table = np.zeros(SIZES)
    if isinstance(model, StackedModels):
        return sum(distribution(own) for own in model.models) / len(model.models)
    (form,) = model.form()
    net = form.net
    for values in itertools.product(*map(range, net.domain.sizes)):
        chance = 1.0
        for pair, own in zip(net.network.pairs, net.conditionals, strict=True):
            at = 0
            for view in pair.parents:
                group = net.domain.levels[view.attribute][view.level][values[view.attribute]]
                at = at * net.domain.size(view) + group
            chance *= own[at, values[pair.child]]
        row = []
        for variables, reading in zip(form.variables, form.readings, strict=True):
            shape = [net.domain.sizes[v] for v in variables]
            row.append(reading[np.ravel_multi_index([values[v] for v in variables], shape)])
        if min(row) >= 0:
            table[tuple(row)] += chance
    return table / table.sum()


CONDITION = [
    CellWeights((1,), np.array([0.0, 1.0, 1.0])),
    CellWeights((3, 0), np.array([[1.0, 0.0], [1.0, 1.0]])),
]


def shares(codes):
    found = np.zeros(SIZES)
    np.add.at(found, tuple(codes.columns), 1 / codes.rows)
    return found


def distance(one, other):
    return np.abs(one - other).sum() / 2


@pytest.mark.parametrize("name", MODELS)
def test_rows_given_a_condition_have_the_conditional_distribution(name):
    model = MODELS[name]()
    plain = distribution(model)
    assert distance(shares(model.sample(30_000, SeededRandomSource(3))), plain) < 0.03
    wanted = plain.copy()
    wanted[:, 0] = 0.0
    wanted[1, :, :, 0] = 0.0
    wanted /= wanted.sum()
    found = shares(given(model, CONDITION)(30_000, SeededRandomSource(3)))
    assert not found[wanted == 0].any()
    assert distance(found, wanted) < 0.03
    assert distance(found, plain) > 0.1


@pytest.mark.parametrize("name", MODELS)
def test_a_condition_without_mass_is_refused(name):
    nothing = [CellWeights((0,), np.array([1.0, 0.0])), CellWeights((0,), np.array([0.0, 1.0]))]
    with pytest.raises(InputError, match="no row of this model satisfies it"):
        given(MODELS[name](), nothing)(5, SeededRandomSource(1))


def test_where_tables_are_too_large_rows_are_kept_or_a_rare_condition_refused(monkeypatch):
    monkeypatch.setattr("common.bayes.weighting.MOST_CELLS", 1)
    monkeypatch.setattr(conditional, "_MOST_TRIES", 3)
    model = MODELS["network"]()
    wanted = distribution(model)
    wanted[:, 0] = 0.0
    found = given(model, CONDITION[:1])(20_000, SeededRandomSource(1))
    assert distance(shares(found), wanted / wanted.sum()) < 0.03
    nothing = [CellWeights((0,), np.zeros(2))]
    with pytest.raises(InputError, match="too few to draw"):
        given(model, nothing)(5, SeededRandomSource(1))


def test_no_rows_are_drawn_when_none_are_asked_for():
    for make in MODELS.values():
        assert given(make(), CONDITION)(0, SeededRandomSource(1)).rows == 0


RULES = Possible.of(
    read_rules(
        [
            {"when": "a = 1 and c = 0", "then": "b = 0"},
            {"impossible": "a = 1 and c >= 4 and d = 1"},
        ]
    ),
    Schema(
        tuple(
            Attribute(name, "ordinal", Listed(tuple(range(size))))
            for name, size in zip("abcd", SIZES, strict=True)
        )
    ),
)


def nearest_allowed(plain):
    """The least divergence from `plain` without impossible cells and with its margins, slowly."""
    made = plain.copy()
    made[1, 1:, 0] = 0.0
    made[1, :, 4:, 1] = 0.0
    for _ in range(500):
        for axis in range(4):
            others = tuple(other for other in range(4) if other != axis)
            share = plain.sum(axis=others) / np.maximum(made.sum(axis=others), 1e-300)
            made *= share.reshape([-1 if other == axis else 1 for other in range(4)])
    return made


@pytest.mark.parametrize("name", ["mixture", "joined", "network", "network of bits"])
def test_rules_are_kept_and_so_are_margins(name):
    """Rules that the margins allow: the projection is that of the whole table."""
    model = MODELS[name]()
    form = within(model.form()[0], RULES)
    wanted = nearest_allowed(distribution(model))
    margins = [form.marginal(a) for a in range(4)]
    drawn = ConditionalModel(model, RULES).sample(40_000, SeededRandomSource(5))
    assert RULES.holds(drawn).all()
    assert distance(shares(drawn), wanted) < 0.03
    for a, margin in enumerate(margins):
        others = tuple(b for b in range(4) if b != a)
        np.testing.assert_allclose(margin, distribution(model).sum(axis=others), atol=2e-3)


def test_rules_that_contradict_the_model_still_hold():
    columns = tuple(np.full((1, size), 1e-12) for size in SIZES)
    for column in columns:
        column[:, -1] = 1.0
    model = LatentModel(np.ones(1), columns)  # nearly all mass on an impossible row
    assert RULES.holds(ConditionalModel(model, RULES).sample(100, SeededRandomSource(1))).all()
    zeros = tuple(np.where(column < 1, 0.0, 1.0) for column in columns)
    model = LatentModel(np.ones(1), zeros)
    assert RULES.holds(ConditionalModel(model, RULES).sample(100, SeededRandomSource(1))).all()
