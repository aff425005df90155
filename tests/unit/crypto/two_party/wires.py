"""Numbers as wires in the open, and back."""

import numpy as np

from common.crypto.two_party.gates import to_bits


def wires(numbers, width):
    return np.split(to_bits(np.array(numbers), width), width)


def value(number):
    return [int(v) for v in sum(wire.astype(np.int64) << i for i, wire in enumerate(number))]
