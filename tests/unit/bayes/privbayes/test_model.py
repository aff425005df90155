"""Models: JSON, sampling of any size, and codes that stand for no value."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions, make_plan
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.sampling import Sampler
from common.errors import InputError, LocalError
from common.marginals import count
from common.privacy.randomness import SeededRandomSource

DOMAIN = Domain(((np.arange(4), np.arange(4) // 2), (np.arange(3),)))
NETWORK = Network((Pair(0), Pair(1, (View(0, 1),))))
CONDITIONALS = (
    np.array([[0.1, 0.2, 0.3, 0.4]]),
    np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]),
)


def model(**options):
    plan = make_plan(
        DOMAIN,
        rows=1000,
        epsilon=Fraction(1),
        options=PrivBayesOptions(network=NETWORK, **options),
    )
    tables = {
        (View(0),): np.array([100, 200, 300, 400]),
        (View(1), View(0, 1)): np.array([[150, -5], [150, 175], [3, 525]]),
    }
    return PrivBayesModel(plan, NETWORK, tables, consistency=True, private=False)


def bit_model(sizes, tables, encoding=Encoding.BINARY):
    """Independent bits with these noisy counts."""
    plan = make_plan(
        Domain.flat(sizes),
        rows=100,
        epsilon=Fraction(1, 10**6),
        options=PrivBayesOptions(encoding=encoding),
    )
    network = Network(tuple(Pair(i) for i in range(plan.domain.width)))
    counts = {(View(i),): np.array(t) for i, t in enumerate(tables)}
    return PrivBayesModel(plan, network, counts, consistency=False, private=False)


def test_samples_follow_the_conditionals():
    rows = 200_000
    drawn = Sampler(NETWORK, DOMAIN, CONDITIONALS).sample(rows, SeededRandomSource(1))
    joint = count(drawn, [(0, 1)])[0]
    law = CONDITIONALS[0][0][:, None] * CONDITIONALS[1][[0, 0, 1, 1]]
    assert (joint[law == 0] == 0).all()
    assert chisquare(joint[law > 0], law[law > 0] * rows).pvalue > 1e-6


def test_a_wrong_law_would_be_noticed():
    rows = 200_000
    drawn = Sampler(NETWORK, DOMAIN, CONDITIONALS).sample(rows, SeededRandomSource(1))
    one_way = count(drawn, [(0,)])[0]
    assert chisquare(one_way, np.array([0.105, 0.195, 0.3, 0.4]) * rows).pvalue < 1e-9


def test_any_number_of_rows_comes_in_blocks(monkeypatch):
    monkeypatch.setattr("common.bayes.sampling._BLOCK_ROWS", 4)
    for rows in (0, 1, 8, 10):
        drawn = Sampler(NETWORK, DOMAIN, CONDITIONALS).sample(rows, SeededRandomSource(2))
        assert (drawn.rows, drawn.sizes) == (rows, DOMAIN.sizes)
    with pytest.raises(InputError, match="0 or more"):
        Sampler(NETWORK, DOMAIN, CONDITIONALS).sample(-1, SeededRandomSource(2))
    with pytest.raises(LocalError, match="shape"):
        Sampler(NETWORK, DOMAIN, CONDITIONALS[::-1]).sample(1, SeededRandomSource(2))


@pytest.mark.parametrize("printed", [False, True])
def test_models_survive_json(printed):
    first = replace(model(), plan=replace(model().plan, printed_sensitivity=printed))
    again = PrivBayesModel.from_json(json.loads(json.dumps(first.as_json())))
    assert again.as_json() == first.as_json()
    assert again.plan.printed_sensitivity is printed  # a refit needs it
    left = first.sample(500, SeededRandomSource(3))
    right = again.sample(500, SeededRandomSource(3))
    assert all(np.array_equal(a, b) for a, b in zip(left.columns, right.columns, strict=True))


def test_the_model_knows_its_noise():
    assert model().noise_scale == 4  # two tables, sensitivity 2 each, epsilon 1
    assert model().as_json()["noise_scale"] == "4"


@pytest.mark.parametrize("damage", ["format", "network", "tables", "variable_sizes"])
def test_damaged_models_are_refused(damage):
    document = model().as_json()
    document[damage] = "nonsense" if damage == "format" else [{"no": 1}]
    with pytest.raises(InputError):
        PrivBayesModel.from_json(document)


@pytest.mark.parametrize("encoding", [Encoding.BINARY, Encoding.GRAY])
def test_codes_that_stand_for_no_value_never_come_out(encoding):
    bits = [[1, 1]] * 5
    drawn = bit_model([5, 3], bits, encoding).sample(20_000, SeededRandomSource(4))
    assert drawn.rows == 20_000
    assert drawn.sizes == (5, 3)
    # Rejected rows are drawn again, so what is left is uniform.
    assert chisquare(count(drawn, [(0,)])[0]).pvalue > 1e-6
    assert chisquare(count(drawn, [(1,)])[0]).pvalue > 1e-6


def test_a_model_of_impossible_codes_still_gives_rows():
    """All bits one: 7 of 0..4 and 3 of 0..2. After 50 redraws the values become uniform."""
    drawn = bit_model([5, 3, 2], [[-3, 9]] * 6).sample(3000, SeededRandomSource(5))
    assert drawn.rows == 3000
    assert chisquare(count(drawn, [(0,)])[0]).pvalue > 1e-6
    assert count(drawn, [(2,)])[0].tolist() == [0, 3000]  # a possible value is kept


def test_consistency_can_be_switched_off():
    on, off = model(), model()
    off = PrivBayesModel(off.plan, off.network, off.tables, consistency=False, private=False)
    assert off.conditionals[1][0] == pytest.approx([150 / 303, 150 / 303, 3 / 303])
    assert on.conditionals[1][0] != pytest.approx(off.conditionals[1][0])
