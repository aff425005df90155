"""Cutting a public range into bins, and drawing numbers from a bin.

Equal bins follow the papers' figure (and `pandas.cut`): a value on an inner edge belongs to the bin
below it, so the bins of 0..80 in steps of ten are 0..10, 11..20, ..., 71..80 and both ends of the
range are inside. Listed edges follow what a reader of `edges = [0, 18, 65, 120]` expects (and
`numpy.histogram`): every edge starts a bin, 0..17, 18..64, 65..120, and the last closes the last.

Whole-number kinds (integer, date as days, datetime as seconds since 1970) are cut exactly, by
integer arithmetic, and no bin is empty. Real edges are correctly rounded, so that two machines
agree on every value. Real numbers are drawn as whole numbers of steps. The steps are of the
declared decimals, so that an amount in cents stays one and a bin from 0 to 0.01 holds exactly 0;
else of decimals that divide the narrowest bin into a thousand parts or more. Further decimals would
be invented, too, and only make a table hard to read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.codes import PLACES, CodeColumn, code_dtype

Numbers = NDArray[Any]  # int64 for whole-number bins, float64 for real ones

DEFAULT_BINS = 16
MAX_BINS = 1 << 16
_LARGEST = 1 << 53  # whole numbers up to here survive a detour through double precision
_TABLE_LIMIT = 1 << 20  # ranges up to this many whole numbers are looked up instead of searched
_STEEPEST = 1.9  # of at most 2, at which the density would be 0 at one end
_STEPS_A_BIN = 1_000
_MOST_STEPS = 1e15  # powers of ten up to here are doubles
MAX_DECIMALS = 15
_BLOCK = 1 << 15  # rows per block: what a block touches stays in the cache


@dataclass(frozen=True)
class Binning:
    """A public range cut into bins 0..count-1."""

    # the ends of the range and every inner edge, increasing; all integers or all floats
    edges: tuple[int, ...] | tuple[float, ...]
    equal: bool  # whether the bins are equally wide (the edge rule differs, see the module)
    # of the real numbers that are drawn; None for as many as the bins need
    decimals: int | None = None
    # Numbers that are bins of their own, in order, and the bins that they were cut out of.
    heaps: tuple[int, ...] | tuple[float, ...] = ()
    around: Binning | None = None

    @classmethod
    def equal_width(cls, low: float, high: float, bins: int | None, *, whole: bool) -> Binning:
        """Make bins of one width; by default 16, or one per whole number if there are fewer."""
        _check_ends(low, high, whole=whole)
        available = int(high) - int(low) + 1 if whole else MAX_BINS
        bins = min(DEFAULT_BINS, available) if bins is None else bins
        if bins < 1:
            raise InputError(f"bins = {bins}: at least 1 is needed")
        if bins > available:
            raise InputError(f"bins = {bins}: the range has only {available:,} values")
        if bins > MAX_BINS:
            raise InputError(f"bins: a domain has at most {MAX_BINS:,}, not {bins:,}: use fewer")
        # By the decimals written: -1.4 is a cut of -1.6..2.8, whose doubles are a little off.
        start, end = Fraction(str(low)), Fraction(str(high))
        width = end - start
        exact = [start + width * k / bins for k in range(bins + 1)]
        if whole:
            # An inner edge belongs to the bin below, so the bin above starts at the next integer.
            inner = [edge.numerator // edge.denominator + 1 for edge in exact[1:-1]]
            return cls((int(low), *inner, int(high)), equal=True)
        edges = tuple(float(edge) for edge in exact)
        if any(after <= before for before, after in itertools.pairwise(edges)):
            raise InputError(f"bins = {bins}: too many to tell apart in a range this narrow")
        return cls(edges, equal=True)

    @classmethod
    def from_edges(cls, edges: Sequence[float], *, whole: bool) -> Binning:
        """Make bins that start at the listed edges; the last edge closes the last bin."""
        if len(edges) < 2:
            raise InputError("edges: at least 2 are needed, the start and the end of the range")
        if any(after <= before for before, after in itertools.pairwise(edges)):
            raise InputError("edges: must be strictly increasing")
        if len(edges) - 1 > MAX_BINS:
            raise InputError(f"edges: more than {MAX_BINS:,} bins")
        _check_ends(edges[0], edges[-1], whole=whole)
        if whole:
            return cls(tuple(int(edge) for edge in edges), equal=False)
        return cls(tuple(float(edge) for edge in edges), equal=False)

    def with_decimals(self, decimals: int) -> Binning:
        """Return these bins of real numbers, with numbers drawn in so many decimals."""
        if self.whole:
            raise InputError("decimals: only real numbers have them")
        if not 0 <= decimals <= MAX_DECIMALS:
            raise InputError(f"decimals = {decimals}: 0 to {MAX_DECIMALS} are possible")
        result = replace(self, decimals=decimals)
        if result.per_unit == 0:
            raise InputError(f"decimals = {decimals}: more than numbers this large can have")
        for place in np.flatnonzero(result.steps < 1)[:1]:
            raise InputError(
                f"decimals = {decimals}: no such number is in the bin from {self.edges[place]} to "
                f"{self.edges[place + 1]}. Allow more decimals or make the bin wider"
            )
        return result

    def with_heaps(self, heaps: Sequence[float]) -> Binning:
        """Return these bins with a bin of its own for each of some numbers."""
        if not heaps or any(after <= before for before, after in itertools.pairwise(heaps)):
            raise InputError("heaps: list numbers in increasing order, such as [0, 40]")
        if not self.low <= heaps[0] <= heaps[-1] <= self.high:
            raise InputError(f"heaps: {list(heaps)} leave the range {self.low}..{self.high}")
        if not self.whole and self.decimals is None:
            raise InputError("heaps: real numbers need decimals, too, such as decimals = 2")
        steps = [Fraction(str(heap)) * int(self.per_unit) for heap in heaps]
        if any(step.denominator > 1 for step in steps):
            raise InputError(f"heaps: {list(heaps)} have more than {self.decimals} decimals")
        (first, *firsts), last = self._steps[0].tolist(), int(self._steps[1][-1])
        cuts = {*firsts, *(int(step) + behind for step in steps for behind in (0, 1))}
        inner = sorted(cut for cut in cuts if first < cut <= last)
        if len(inner) >= MAX_BINS:
            raise InputError(f"heaps: more than {MAX_BINS:,} bins")
        kind = int if self.whole else float
        edges = (self.low, *(cut / int(self.per_unit) for cut in inner), self.high)
        return replace(
            self,
            edges=tuple(map(kind, edges)),
            equal=False,
            heaps=tuple(map(kind, heaps)),
            around=self,
        )

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    @property
    def whole(self) -> bool:
        return isinstance(self.edges[0], int)

    @property
    def low(self) -> float:
        return self.edges[0]

    @property
    def high(self) -> float:
        return self.edges[-1]

    @cached_property
    def first(self) -> NDArray[Any]:
        """The smallest number of each bin."""
        if self.whole:
            return np.array(self.edges[:-1], dtype=np.int64)
        starts = np.array(self.edges[:-1], dtype=np.float64)
        if self.equal:
            starts[1:] = np.nextafter(starts[1:], np.inf)
        return starts

    @cached_property
    def last(self) -> NDArray[Any]:
        """The largest number of each bin."""
        if self.whole:
            starts = np.array(self.edges, dtype=np.int64)
            return np.append(starts[1:-1] - 1, starts[-1])
        ends = np.array(self.edges[1:], dtype=np.float64)
        if not self.equal:
            ends[:-1] = np.nextafter(ends[:-1], -np.inf)
        return ends

    def assign(self, numbers: Numbers) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return the bin of every number, and which are outside the range (None if none is).

        A number outside gets the bin nearest to it. The numbers are int64 for whole-number bins,
        float64 without NaN otherwise.
        """
        if len(numbers) == 0:
            return np.empty(0, dtype=code_dtype(self.count)), None
        outside = None
        if numbers.min() < self.low or numbers.max() > self.high:
            outside = (numbers < self.low) | (numbers > self.high)
            numbers = np.clip(numbers, self.low, self.high)
        if self.whole and self.high - self.low < _TABLE_LIMIT:
            return self._table.take(numbers - int(self.low)), outside
        bins = np.empty(len(numbers), dtype=code_dtype(self.count))
        for start in range(0, len(numbers), _BLOCK):
            block = slice(start, start + _BLOCK)
            bins[block] = self._search(numbers[block])
        return bins, outside

    def places(self, numbers: Numbers, bins: NDArray[np.integer[Any]]) -> CodeColumn:
        """Return where each number is in its bin, from 0 at its smallest number to 254.

        Two operations in double precision, each correctly rounded: every machine has the same.
        """
        single = self.spans == 0  # such a bin has its middle only
        starts, spans = self.first - single, self.spans + 2 * single
        within = np.empty(len(numbers), dtype=np.uint8)
        for start in range(0, len(numbers), _BLOCK):
            block, codes = numbers[start : start + _BLOCK], bins[start : start + _BLOCK]
            inside = np.clip(block, self.low, self.high) - starts.take(codes)
            within[start : start + _BLOCK] = np.rint(inside / spans.take(codes) * (PLACES - 1))
        return within

    @cached_property
    def spans(self) -> NDArray[np.float64]:
        """How far the largest number of each bin is from its smallest; 0 if it holds one only."""
        spans = np.asarray(self.last - self.first, dtype=np.float64)
        return spans if self.decimals is None else np.where(self.steps == 1, 0.0, spans)

    @cached_property
    def _table(self) -> NDArray[np.unsignedinteger[Any]]:
        """The bin of every whole number of a short range."""
        widths = self.last - self.first + 1
        return np.repeat(np.arange(self.count, dtype=code_dtype(self.count)), widths)

    def _search(self, numbers: Numbers) -> NDArray[np.intp]:
        """Return the bins of a block of numbers inside the range."""
        if not self.equal:
            return np.searchsorted(self.first, numbers, side="right") - 1
        # Equal bins: the quotient is at most one bin off, and one comparison each way against
        # the published ends makes it exact. Three times as fast as a search.
        guess = ((numbers - self.low) * (self.count / (self.high - self.low))).astype(np.intp)
        np.minimum(guess, self.count - 1, out=guess)
        guess -= numbers < self.first.take(guess)
        guess += numbers > self.last.take(guess)
        return guess

    def draw(self, bins: NDArray[np.integer[Any]], uniforms: NDArray[np.float64]) -> Numbers:
        """Draw a number inside each bin, equally likely over the bin, from uniforms in [0, 1)."""
        drawn: Numbers
        if self.per_unit == 0:
            low, high = self.first[bins], self.last[bins]
            drawn = np.clip(low + uniforms * (high - low), low, high)
            return drawn
        first, last = (ends[bins] for ends in self._steps)
        # The product may round up to the width itself, hence the minimum.
        steps = np.minimum(first + (uniforms * (last - first + 1)).astype(np.int64), last)
        drawn = steps if self.whole else steps / self.per_unit
        return drawn

    def slopes(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of the density inside every bin, in its own density and width.

        The density in a bin is a straight line. Its slope is the smaller of the slopes to the bins
        on either side, and 0 where they differ in sign: a peak stays a peak, and an end is flat.
        """
        widths = np.asarray(self.last - self.first, dtype=np.float64) + self.whole
        widths[widths == 0] = 1 / self.per_unit  # the end of the range as a bin of its own
        density = counts / widths
        # Between the middles of two bins, in units of a bin's own density and width.
        steps = np.diff(density) / ((widths[1:] + widths[:-1]) / 2)
        before, after = np.append(0.0, steps), np.append(steps, 0.0)
        agree = before * after > 0
        flatter = np.where(np.abs(before) < np.abs(after), before, after)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(agree & (density > 0), flatter * widths / density, 0.0)
        return np.clip(slope, -_STEEPEST, _STEEPEST)

    def parts(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where in its bin `draw` puts a number: 0 its smallest, 1 its largest.

        The places in [0, 1) are rows of one bin after the other.
        """
        if self.per_unit == 0:
            return places
        steps = self.steps[:, None].astype(np.float64)
        return np.minimum(np.floor(places * steps), steps - 1) / np.maximum(steps - 1, 1)

    @cached_property
    def per_unit(self) -> float:
        """How many of the smallest steps of drawn numbers make one; 0 if they have none."""
        if self.whole:
            return 1.0
        if self.decimals is None:
            narrowest = np.diff(self.edges).min()
            steps = 10.0 ** max(0, math.ceil(-math.log10(narrowest / _STEPS_A_BIN)))
        else:
            steps = 10.0**self.decimals
        # Exact up to here, so that a step prints as the decimal it is.
        exact = max(abs(self.low), abs(self.high)) * steps < _LARGEST / 2
        return steps if exact and steps <= _MOST_STEPS else 0.0

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """How many different numbers are drawn from each bin."""
        first, last = self._steps
        return last - first + 1

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The smallest and the largest number of each bin that is drawn, in steps."""
        if self.whole:
            return self.first, self.last
        # By the decimals written, or 0.3 would be a little less than three steps of 0.1.
        edges = [Fraction(str(edge)) * int(self.per_unit) for edge in self.edges]
        if self.equal:  # an edge belongs to the bin below it
            last = [math.floor(edge) for edge in edges[1:]]
            first = [math.ceil(edges[0]), *(step + 1 for step in last[:-1])]
        else:
            first = [math.ceil(edge) for edge in edges[:-1]]
            last = [*(step - 1 for step in first[1:]), math.floor(edges[-1])]
        return np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)

    def centre(self, bins: NDArray[np.integer[Any]]) -> Numbers:
        """Return the middle of each bin (of an even number of steps, the lower middle)."""
        middles: Numbers
        if self.whole or self.decimals is not None:
            first, last = self._steps
            middles = first + (last - first) // 2
            middles = middles if self.whole else middles / self.per_unit
        else:
            edges = np.array(self.edges)
            middles = np.clip((edges[:-1] + edges[1:]) / 2, self.first, self.last)
        chosen: Numbers = middles[bins]
        return chosen


def sloped(slopes: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places in [0, 1) whose density is 1 + slope (t - 1/2), from uniforms."""
    flat = 1 - slopes / 2
    places = 2 * uniforms / (flat + np.sqrt(flat * flat + 2 * slopes * uniforms))
    return np.where(slopes == 0, uniforms, np.minimum(places, 1 - 2.0**-53))


def _check_ends(low: float, high: float, *, whole: bool) -> None:
    """Refuse ends that are not finite, not in order, or beyond what doubles count exactly."""
    if whole and max(abs(low), abs(high)) > _LARGEST:
        raise InputError(f"the range {low}..{high} passes 2^53, the largest supported")
    if not math.isfinite(high - low):
        raise InputError(f"the range {low}..{high} is not finite")
    if low > high or (low == high and not whole):
        raise InputError(f"the range {low}..{high} is empty: min must be below max")
