"""Small matrices through the package's own transforms."""

import numpy as np

from common.schema.codes import Codes
from common.wavelet.axes import HaarAxis, NominalAxis, UntransformedAxis
from common.wavelet.mechanism import transform
from common.wavelet.tree import Tree

FIG3 = ((0, 1, 2), (3, 4, 5))
MIXED = ((0, (1, 2)), 3, (4, 5, (6, 7, 8)))  # leaves at three depths


def nominal(nested, size=None):
    flat = str(nested).replace("(", " ").replace(")", " ").replace(",", " ")
    return NominalAxis(Tree.from_nested(nested, size or len(flat.split())))


def haar(size):
    return HaarAxis(size)


def alone(size):
    return UntransformedAxis(size)


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
