import json

import numpy as np
import pytest
from scipy.special import wrightomega

from common.methods.subn_plus.joined import (
    Joined,
    JoinedModel,
    joint_margin,
    wright_omega,
)
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Measurement
from common.privacy.randomness import SeededRandomSource

SIZES = (2, 3, 4, 2)
JOINED = Joined.of([(3, 1)], SIZES)


def some_mixture(seed: int = 0) -> LatentModel:
    rng = np.random.default_rng(seed)
    return LatentModel(
        rng.dirichlet(np.ones(5)),
        tuple(rng.dirichlet(np.ones(size), 5) for size in (6, 2, 4)),
    )


def test_every_attribute_is_in_one_column():
    assert JOINED.sets == ((3, 1), (0,), (2,))
    assert [JOINED.shape(column) for column in range(3)] == [(2, 3), (2,), (4,)]


def test_samples_are_attributes_again():
    model = JoinedModel(JOINED, some_mixture())
    drawn = model.sample(20_000, SeededRandomSource(1))
    assert (drawn.rows, drawn.sizes) == (20_000, SIZES)
    pair = np.zeros((2, 3))
    np.add.at(pair, (drawn.columns[3], drawn.columns[1]), 1 / 20_000)
    np.testing.assert_allclose(pair.ravel(), model.mixture.marginal((0,)), atol=0.002)
    plain = json.loads(json.dumps(model.as_json()))
    assert plain["attributes"] == [[3, 1], [0], [2]]
    assert len(plain["columns"][0][0]) == 6


def noisy_pair(joint: np.ndarray, scale: float, rows: int) -> Measurement:
    noise = np.random.default_rng(4).laplace(0, scale, joint.shape)
    return Measurement((0, 1), (None, None), rows * joint + noise, max(2 * scale**2, 1e-6))


def distance(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


@pytest.mark.parametrize("scale", [1e-3, 10.0, 1e3, 1e6])
def test_a_joint_margin_meets_its_margins_whatever_the_noise(scale):
    joint = np.random.default_rng(1).dirichlet(np.full(40, 0.2)).reshape(8, 5)
    first, second = joint.sum(1), joint.sum(0)
    found = joint_margin(noisy_pair(joint, scale, 10_000), first, second, rows=10_000, price=10.0)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(0), second, atol=1e-9)
    np.testing.assert_allclose(found.sum(1), first, atol=0.02)


def test_a_precise_table_is_met_and_a_worthless_one_is_independence():
    joint = np.random.default_rng(1).dirichlet(np.full(40, 0.2)).reshape(8, 5)
    first, second = joint.sum(1), joint.sum(0)
    precise, worthless = (
        joint_margin(noisy_pair(joint, scale, 10_000), first, second, rows=10_000, price=10.0)
        for scale in (1e-3, 1e6)
    )
    assert distance(precise, joint) < 0.005
    assert distance(worthless, np.outer(first, second)) < 0.01


def test_the_margins_and_the_price_take_most_noise_off_a_sparse_table():
    joint = np.eye(16) / 16
    table = noisy_pair(joint, 40.0, 10_000)
    even = np.full(16, 1 / 16)
    raw = distance(np.maximum(table.counts, 0) / 10_000, joint)
    assert distance(joint_margin(table, even, even, rows=10_000, price=10.0), joint) < raw / 3


def test_margins_are_met_where_a_pair_nearly_determines_itself_and_its_table_disagrees():
    first, second = np.array([0.53, 0.47]), np.array([0.447, 0.553])
    counts = np.array([[-3000.0, 159_000], [140_000, 1000]])  # its second column is .53 of the rows
    table = Measurement((0, 1), (None, None), counts, 3000.0**2)
    joint = joint_margin(table, first, second, rows=300_000, price=10.0)
    assert joint.sum(axis=1) == pytest.approx(first, abs=1e-5)
    assert joint.sum(axis=0) == pytest.approx(second, abs=1e-5)


def test_wrights_omega_solves_its_equation_and_is_scipys():
    numbers = np.concatenate([np.linspace(-700, 60, 5001), np.geomspace(1e-8, 1e12, 2001)])
    roots = wright_omega(numbers)
    np.testing.assert_allclose(roots, wrightomega(numbers), rtol=1e-14)
