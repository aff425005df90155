"""Which group is divided next: the choice, on one owner's rows or on those of both.

A candidate is a group that can be divided. Its score adds up, over the children that the group is
divided into, either the rows of the child's most frequent class (`max`), or minus the rows times
the Gini impurity of the child, n - sum of n_c^2 / n (`gini`), in eighths of a row, rounded.

One replaced row moves a score by at most
- max: 1. The row leaves a class of one child, whose largest class shrinks by 0 or 1, and enters a
  class of the same or another child, whose largest class grows by 0 or 1.
- gini: 2 before rounding: one row more in a child raises its impurity by 0 to 2, whichever its
  class. In eighths that is 16, and rounding up adds less than 1 for each of the two children that
  can change. So 17.

*In turn* an owner chooses on its own rows by the exponential mechanism.

*Together* each owner draws discrete Laplace noise of scale 2 s / epsilon for every candidate, with
s as above, and the candidate whose score on all rows plus both noises is the largest is chosen, the
first of equals. Only its number leaves the two-party computation. It costs each owner epsilon, also
against the other owner and the curator together: let them know everything but one owner's rows and
noise. Given its noise at the other candidates, candidate i wins if its noise at i is at least some
integer t. One replaced row moves every score by at most s, so t by at most 2 s, and

    P(noise >= t + 2 s) >= exp(-2 s / scale) P(noise >= t) = exp(-epsilon) P(noise >= t):

discrete Laplace noise is log-concave, so this ratio falls with t, and for t >= 1 it is
exp(-2 s / scale). Averaged over the rest, no candidate's chance changes by more than exp(epsilon)
[DworkRoth14, Claim 3.9: report noisy max].

[DworkRoth14] Dwork, Roth: The algorithmic foundations of differential privacy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.two_party.gates import (
    Bits,
    Gates,
    Number,
    Wire,
    added,
    constants,
    divided,
    folded,
    multiplied,
    selected,
    taken,
    to_bits,
    widened,
)
from common.errors import LocalError, RemoteProtocolError
from common.methods.distdiffgen.cuts import Cuts, Division
from common.privacy.exponential import exponential_mechanism
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import RandomSource, below
from common.study.requests import Attributes, Counts, PartyRows

SCORES = ("max", "gini")
_FRACTION_BITS = 3  # of an impurity
SENSITIVITY = {"max": 1, "gini": (2 << _FRACTION_BITS) + 1}


@dataclass(frozen=True, kw_only=True)
class DivisionChoice:
    """One division, chosen by one party on its own rows."""

    cuts: Cuts
    score: str
    most_cells: int
    epsilon: Fraction

    @cached_property
    def candidates(self) -> list[Division]:
        return self.cuts.divisions(self.most_cells)

    @cached_property
    def children(self) -> list[list[int]]:
        """The places of each candidate's children among those of all candidates."""
        numbers = [len(self.cuts.groups[a][place].children) for a, place in self.candidates]
        ends = np.cumsum(numbers).tolist()
        return [list(range(end - size, end)) for end, size in zip(ends, numbers, strict=True)]

    def by_class(self, data: PartyRows) -> Counts:
        """Count the rows of every class in all candidates' children; shape (children, classes)."""
        attributes = sorted({attribute for attribute, _ in self.candidates})
        counted = data.count([(attribute, self.cuts.target) for attribute in attributes])
        tables = dict(zip(attributes, counted, strict=True))
        return np.array(
            [
                tables[a][child.codes()].sum(axis=0)
                for a, place in self.candidates
                for child in self.cuts.groups[a][place].children
            ]
        )

    def scores(self, by_class: Counts) -> NDArray[np.int64]:
        by_leaf = by_class.max(axis=1) if self.score == "max" else -impurities(by_class)
        starts = [places[0] for places in self.children]
        return np.asarray(np.add.reduceat(by_leaf, starts), dtype=np.int64)

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Choose by the exponential mechanism; the division is published."""
        index = exponential_mechanism(
            self.scores(self.by_class(data)),
            sensitivity=SENSITIVITY[self.score],
            epsilon=self.epsilon,
            source=source,
        )
        return _encode(self.candidates[index])

    def without_rows(self, source: RandomSource) -> bytes:
        return _encode(self.candidates[below(len(self.candidates), source)])

    def check(self, payload: bytes) -> None:
        self.division(payload)

    def division(self, payload: bytes) -> Division:
        """Return the division in a payload; RemoteProtocolError if it was not offered."""
        for candidate in self.candidates:
            if _encode(candidate) == payload:
                return candidate
        raise RemoteProtocolError("the division was not among the candidates")

    def links(self, payload: bytes) -> Sequence[Attributes]:
        return [(self.division(payload)[0], self.cuts.target)]

    @property
    def canonical(self) -> bytes:
        return frame(
            (
                type(self).__name__,
                self.score,
                self.most_cells,
                self.cuts.target,
                self.cuts.canonical,
                frame(self.epsilon.as_integer_ratio()),
            )
        )


def impurities(by_class: Counts) -> NDArray[np.int64]:
    """Return rows times Gini impurity of every child, in eighths of a row, rounded up; exact."""
    rows = by_class.sum(axis=1)
    squares = (by_class**2).sum(axis=1)
    pure = (squares << _FRACTION_BITS) // np.maximum(rows, 1)
    return np.asarray((rows << _FRACTION_BITS) - pure, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class JointDivision(DivisionChoice):
    """One division, chosen by two parties on their rows together; it is its own circuit.

    Attributes:
        rows: of the two parties; public.
    """

    rows: tuple[int, int]

    @property
    def law(self) -> DiscreteLaplace:
        """Of each party's noise in a score."""
        return DiscreteLaplace(2 * SENSITIVITY[self.score] / self.epsilon)

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Choose on the rows of both as the computation does, in the open."""
        noisy = self.scores(self.by_class(data)) + self._noise(source) + self._noise(source)
        return _encode(self.candidates[int(np.argmax(noisy))])

    def inputs(self, data: PartyRows, source: RandomSource) -> Bits:
        """Return one party's counts and noise, as the circuit takes them."""
        noise = self._noise(source) + self._bound
        counts = to_bits(self.by_class(data), self._count_bits)
        return np.concatenate([counts, to_bits(noise, self._noise_bits)])

    def outcome(self, bits: Bits) -> bytes:
        """Return what is published of the circuit's result, the number of a candidate."""
        index = sum(int(bit) << place for place, bit in enumerate(bits))
        if index >= len(self.candidates):
            raise RemoteProtocolError(
                "a two-party computation chose a division that does not exist"
            )
        return _encode(self.candidates[index])

    @property
    def input_bits(self) -> tuple[int, int]:
        counts = len(self._classes) * self.cuts.shape[self.cuts.target] * self._count_bits
        return (counts + len(self.candidates) * self._noise_bits,) * 2

    @property
    def output_bits(self) -> int:
        return max(1, (len(self.candidates) - 1).bit_length())

    def outputs(self, gates: Gates, first: Wire, second: Wire) -> Wire:
        """Add up both parties' counts, score, add both noises, return the number of the largest."""
        (one, noise), (other, more) = self._split(first), self._split(second)
        width = max(self.rows).bit_length() + 1
        counts, _ = added(gates, widened(gates, one, width), widened(gates, other, width))
        plus = partial(_sum, gates)
        wide = self._score_bits
        if self.score == "max":
            largest = folded(counts, self._classes, partial(_larger, gates))
            score = folded(widened(gates, largest, wide), self.children, plus)
        else:
            impure = widened(gates, self._impurity(gates, counts), wide)
            most = np.full(len(self.candidates), sum(self.rows) << _FRACTION_BITS)
            whole = constants(gates, most, wide)
            score, _ = taken(gates, whole, folded(impure, self.children, plus))
        for draw in (noise, more):
            score = plus(score, widened(gates, draw, wide))
        numbers = constants(gates, np.arange(len(self.candidates)), self.output_bits)
        larger = partial(_larger, gates, width=wide)
        every = [range(len(self.candidates))]
        winner = folded([*score, *numbers], every, larger)
        return np.concatenate(winner[wide:])

    def _impurity(self, gates: Gates, counts: Number) -> Number:
        plus = partial(_sum, gates)
        rows = folded(counts, self._classes, plus)
        squares = folded(multiplied(gates, counts, counts), self._classes, plus)
        zeros = [gates.constant(np.zeros(len(rows[0]), np.bool_))] * _FRACTION_BITS
        some = rows[0]
        for wire in rows[1:]:
            some = some ^ wire ^ gates.both(some, wire)
        divisor = [rows[0] ^ gates.flipped(some), *rows[1:]]  # 1 where there are no rows
        pure = divided(gates, [*zeros, *squares], divisor)
        return taken(gates, [*zeros, *rows], pure)[0]

    def _split(self, wires: Wire) -> tuple[Number, Number]:
        noise = len(self.candidates) * self._noise_bits
        counts = np.split(wires[:-noise], self._count_bits)
        return counts, np.split(wires[-noise:], self._noise_bits)

    def _noise(self, source: RandomSource) -> NDArray[np.int64]:
        noise = self.law.draw(len(self.candidates), source)
        if int(np.abs(noise).max()) > self._bound:
            raise LocalError("a noise draw passed its 2^-128 bound: give this step up")
        return noise

    @cached_property
    def _classes(self) -> list[range]:
        """The places of each child's counts."""
        classes = self.cuts.shape[self.cuts.target]
        children = sum(map(len, self.children))
        return [range(child * classes, (child + 1) * classes) for child in range(children)]

    @cached_property
    def _bound(self) -> int:
        return self.law.bound(2 * len(self.candidates))

    @property
    def _count_bits(self) -> int:
        return max(self.rows).bit_length()

    @property
    def _noise_bits(self) -> int:
        return (2 * self._bound).bit_length()

    @property
    def _score_bits(self) -> int:
        """Of the largest score with the largest noise of both, which is never negative."""
        return ((sum(self.rows) << _FRACTION_BITS) + 4 * self._bound).bit_length()

    @property
    def canonical(self) -> bytes:
        return frame((super().canonical, *self.rows))


def _sum(gates: Gates, one: Number, other: Number) -> Number:
    return added(gates, one, other)[0]


def _larger(gates: Gates, one: Number, other: Number, width: int | None = None) -> Number:
    """Return the larger of two numbers, the first of equals; `width` first bits are compared."""
    _, less = taken(gates, one[:width], other[:width])
    return selected(gates, less, other, one)


def _encode(division: Division) -> bytes:
    return json.dumps(division, separators=(",", ":")).encode()
