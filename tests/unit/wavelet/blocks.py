"""Small matrices through the package's own transforms."""

from fractions import Fraction
from functools import cache

import numpy as np

from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, Node, leaf
from common.wavelet import privelet
from common.wavelet.axis import Axis, HaarAxis
from common.wavelet.decisions import make_plan
from common.wavelet.mechanism import noisy_cells, transform
from common.wavelet.noisy_matrix import NoiseMoments
from common.wavelet.nominal import ArrayTree, NominalAxis
from tests.harness.schemas import schema

FIG3 = ((0, 1, 2), (3, 4, 5))
MIXED = ((0, (1, 2)), 3, (4, 5, (6, 7, 8)))  # leaves at three depths


def hierarchy(nested):
    """A hierarchy written down: a leaf is its code, a group the sequence of its children."""
    return Hierarchy(_node(nested))


def _node(nested):
    if isinstance(nested, int):
        return leaf(str(nested), nested)
    return Node(str(nested), tuple(map(_node, nested)))


def nominal(nested):
    return NominalAxis(ArrayTree.of(hierarchy(nested)))


def haar(size):
    return HaarAxis(size)


def alone(size):
    return Axis(size)


def cell_index(axes):
    return np.ix_([0], *(np.arange(axis.coefficients)[axis.cells][: axis.size] for axis in axes))


def integer_coefficients(cells, axes):
    """c~ of a matrix whose axes are in leaf order."""
    block = np.zeros((1, *(axis.coefficients for axis in axes)), dtype=np.int64)
    block[cell_index(axes)] = cells
    transform(block, tuple(axes))
    return block[0]


def weighted_coefficients(cells, axes):
    """U = W * C."""
    result = integer_coefficients(cells, axes).astype(np.float64)
    for number, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[number] = -1
        result /= axis.multipliers.reshape(shape)
    return result


def rows_of(counts):
    """Codes with the given counts."""
    counts = np.asarray(counts)
    rows = np.argwhere(np.ones(counts.shape)).repeat(counts.ravel(), axis=0)
    return Codes.from_columns(list(rows.T), counts.shape)


def no_noise(scale, count, source):
    return np.zeros(count, dtype=np.int64)


def noisy(axes, method, untransformed="exact", seed=0, epsilon=1, counts=None):
    plan = make_plan(axes, Fraction(epsilon), method, untransformed)
    shape = tuple(axis.size for axis in axes)
    counts = np.arange(np.prod(shape)).reshape(shape) % 5 if counts is None else counts
    return noisy_cells(rows_of(counts), plan, discrete_laplace, SeededRandomSource(seed))


def query_variance(plan, ranges, *, padding=False):
    reaches = [
        plan.axes[i].reach(*(np.array([end]) for end in ranges[i]), padding=padding)
        for i in plan.order
    ]
    return NoiseMoments(plan).variances(reaches)[0], reaches


REPEATS = 40_000


@cache
def errors_of_a_query(scale_factor, seed):
    """Errors of the query [1, 7) x group 1, of variance 1026, in independent sub-matrices."""
    axes = (alone(REPEATS), haar(8), nominal(FIG3))
    plan = make_plan(axes, Fraction(1), "privelet+", [0])
    assert plan.scale == 24

    def sampler(scale, count, source):
        return discrete_laplace(scale * scale_factor, count, source)

    cells = noisy_cells(
        rows_of(np.zeros((REPEATS, 8, 6), int)), plan, sampler, SeededRandomSource(seed)
    )
    return cells[:, 0:3, 1:7].sum(axis=(1, 2))


SCHEMA = schema(
    'name = "age", kind = "integer", min = 0, max = 199, bins = 200',
    'name = "sex", kind = "categorical", values = ["Female", "Male"]',
    'name = "country", kind = "categorical", values = ["France", "USA", "Spain", "Canada"], '
    'missing = true, hierarchy = { Europe = ["France", "Spain"], America = ["USA", "Canada"] }',
)
ROWS = 20_000


def made_up_codes():
    rng = np.random.default_rng(0)
    age = np.minimum(rng.gamma(4, 15, ROWS), 199).astype(int)
    return Codes.from_columns(
        [age, rng.integers(0, 2, ROWS), rng.integers(0, 5, ROWS)], SCHEMA.sizes
    )


CODES = made_up_codes()


def accountant_of(cap=None):
    return Accountant({"owner": cap})


def release_of(codes, method="privelet+", seed=1, epsilon=1):
    return privelet_of(codes, epsilon, SeededRandomSource(seed), method=method)


def privelet_of(codes, epsilon, source, accountant=None, **options):
    return privelet(
        codes,
        SCHEMA,
        epsilon=epsilon,
        source=source,
        accountant=accountant or accountant_of(),
        **options,
    )
