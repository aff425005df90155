"""Proposing bins that people ask about: steps of 1, 2 or 5, growing bins, months and years.

A question can only begin and end where bins do. The ends of a column's data are hardly ever such
places (a range of 0..99 in 16 equal bins is cut at 6, 13, 19, ...), so proposed ranges are widened
to round ones, which also keeps the exact ends of the data out of the proposal.

Bins are chosen by the numbers of a column, so they are for a draft that its owner reviews; the
notes tell the owner what to review.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.schema.binning import DEFAULT_BINS, Binning, Numbers

_DAY_S = 86_400
_COMMON = 0.05  # the quantile of the positive numbers at which growing bins begin
_EPOCH = dt.date(1970, 1, 1)
_MONTHS = (1, 3, 6, 12, 24, 60, 120)  # in a bin
_DIGITS = ("1", "1 3", "1 2 5", "1 1.5 2 3 5 7", "1 1.2 1.5 2 2.5 3 4 5 6 8")  # of growing bins
_MOST_IN_A_BIN = 0.5  # of the rows, before bins are made to grow
_HEAP = 0.1  # of the rows with the very same number
_MOST_DECIMALS = 4  # further ones are those of a measurement or a computation
_FEW = 0.001  # of the rows in a bin; noise outweighs them


def propose_bins(numbers: Numbers, notes: list[str], *, whole: bool) -> Binning:
    """Cut the range of a column; let bins grow where equal ones leave most rows in one bin."""
    low, high = numbers.min().item(), numbers.max().item()
    decimals = None if whole else _decimals(numbers)
    binning = _with_decimals(round_numbers(low, high, whole=whole), decimals)
    full = _fullest(binning, numbers)
    if full > _MOST_IN_A_BIN:
        growing = _growing_bins(numbers, 0 if whole else decimals)
        if growing is not None and _fullest(growing, numbers) < full:
            binning = _with_decimals(growing, decimals)
            notes.append("most numbers are small: the bins grow, as equal ones would hide them")
        else:
            notes.append(
                f"{full:.0%} of the rows are in one of {binning.count} equal bins, and what is "
                "inside of it is lost; list edges that cut it"
            )
    _note_tail(binning, numbers, notes)
    notes.append(read_off(f"{binning.low}..{binning.high}"))
    _note_heap(binning, numbers, notes)
    return binning


def read_off(span: str) -> str:
    return f"the range {span} was read off the data, if rounded; write the public one"


def _note_tail(binning: Binning, numbers: Numbers, notes: list[str]) -> None:
    """Note bins at the upper end that hold hardly any rows."""
    counts = np.bincount(binning.assign(numbers)[0], minlength=binning.count)
    above = counts[::-1].cumsum()[::-1]
    nearly_empty = np.flatnonzero(above < _FEW * len(numbers))
    if len(nearly_empty) >= max(2, binning.count // 3):
        start = binning.first[nearly_empty[0]]
        notes.append(
            f"fewer than {_FEW:.1%} of the rows are at {start:.10g} or more, in "
            f"{len(nearly_empty)} of {binning.count} bins that noise will fill; end the range "
            "earlier, with clip = true"
        )


def _note_heap(binning: Binning, numbers: Numbers, notes: list[str]) -> None:
    """Note a number that many rows have and that drawing evenly in its bin would spread out."""
    values, counts = np.unique(numbers, return_counts=True)
    heap = values[[counts.argmax()]]
    place = int(binning.assign(heap)[0][0])
    if counts.max() <= _HEAP * len(numbers) or _single(binning)[place]:
        return
    remedy = (
        f"if the number is public (a full week, no debt), heaps = [{heap[0]:.10g}] gives it a bin"
        if binning.whole or binning.decimals is not None
        else "empty these cells (missing = true), or say it in a column of its own"
    )
    notes.append(
        f"more than a tenth are exactly {heap[0]:.10g}, in the bin {binning.first[place]:.10g}.."
        f"{binning.last[place]:.10g}, of which a release knows the mean at most; {remedy}"
    )


def _fullest(binning: Binning, numbers: Numbers) -> float:
    """Return the largest proportion of the numbers in a bin that holds different ones."""
    counts = np.bincount(binning.assign(numbers)[0], minlength=binning.count)
    return float(counts[~_single(binning)].max(initial=0)) / len(numbers)


def _single(binning: Binning) -> NDArray[np.bool_]:
    """Tell which bins hold one number only."""
    known = binning.whole or binning.decimals is not None
    return binning.steps == 1 if known else np.zeros(binning.count, np.bool_)


def _decimals(numbers: Numbers) -> int | None:
    """Count the decimals of the numbers; None if they are measured, not counted in cents."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.array_equal(np.round(numbers, decimals), numbers):
            return decimals
    return None


def _with_decimals(binning: Binning, decimals: int | None) -> Binning:
    """Return the bins with these decimals, where they have room for them."""
    if decimals is not None:
        with contextlib.suppress(InputError):
            return binning.with_decimals(decimals)
    return binning


def round_numbers(low: float, high: float, *, whole: bool) -> Binning:
    """Make about 16 bins around a range, in steps of 1, 2 or 5 times a power of ten."""
    start, end = Fraction(str(low)), Fraction(str(high))
    if start == end:
        return Binning.equal_width(low, high, None, whole=whole)
    step = min(_steps(end - start, whole=whole), key=lambda step: _misfit(_bins(start, end, step)))
    bins = _bins(start, end, step)
    first = math.floor(start / step) * step
    last = first + bins * step
    if whole:  # a bin of 5 is 0..4: the next one starts at 5
        return Binning.equal_width(int(first), int(last) - 1, bins, whole=True)
    return Binning.equal_width(float(first), float(last), bins, whole=False)


def _growing_bins(numbers: Numbers, decimals: int | None) -> Binning | None:
    """Make bins that grow from zero, upwards and, where numbers are negative, downwards.

    Below zero they are powers of ten. None if no number is above zero, or the range cannot be cut.
    """
    low, high = numbers.min().item(), numbers.max().item()
    if high <= 0:
        return None
    common = np.quantile(numbers[numbers > 0], _COMMON).item()
    with contextlib.suppress(InputError):
        above = growing_numbers(max(low, 0), high, common=common, decimals=decimals)
        if low >= 0:
            return above
        rare = np.quantile(-numbers[numbers < 0], _COMMON).item()
        rungs = _ladder(Fraction(str(rare)), Fraction(str(-low)), ["1"], decimals)
        below = [-(int(rung) if decimals == 0 else float(rung)) for rung in reversed(rungs)]
        return Binning.from_edges([*below, *above.edges], whole=decimals == 0)
    return None


def growing_numbers(low: float, high: float, *, common: float, decimals: int | None) -> Binning:
    """Make about 16 bins that grow with the numbers: for money, and all that is mostly small.

    They go from `low`, at least 0, to `high`; most of the positive numbers exceed `common`. Zero is
    a bin of its own where the decimals are known (0 if all are whole), so that none stays none.
    """
    whole = decimals == 0
    start, first, end = (Fraction(str(number)) for number in (low, common, high))
    ladders = [_ladder(first, end, digits.split(), decimals) for digits in _DIGITS]
    rungs = min(ladders, key=lambda rungs: _misfit(len(rungs)))
    bottom = _ladder(start, start, ["1", "2", "5"], decimals)[0] if start > 0 else Fraction(0)
    head = [bottom, Fraction(1, 10**decimals)] if decimals is not None and start == 0 else [bottom]
    edges = [*head, *(rung for rung in rungs if rung > head[-1])]
    return Binning.from_edges([int(e) if whole else float(e) for e in edges], whole=whole)


def _ladder(
    first: Fraction, end: Fraction, digits: Sequence[str], decimals: int | None
) -> list[Fraction]:
    """Return digits times powers of ten, from the last up to `first` to the first above `end`."""
    exponents = range(math.floor(math.log10(first)) - 1, math.ceil(math.log10(end)) + 2)
    rungs = [
        Fraction(digit) * Fraction(10) ** exponent for exponent in exponents for digit in digits
    ]
    if decimals is not None:
        rungs = [rung for rung in rungs if (rung * 10**decimals).denominator == 1]
    below = sum(rung <= first for rung in rungs)
    above = sum(rung <= end for rung in rungs)
    return rungs[max(0, below - 1) : above + 1]


def _steps(span: Fraction, *, whole: bool) -> Iterator[Fraction]:
    about = math.floor(math.log10(span / DEFAULT_BINS))
    for exponent in range(about - 1, about + 3):
        for digit in (1, 2, 5):
            step = digit * Fraction(10) ** exponent
            if step >= 1 or not whole:
                yield step


def _bins(start: Fraction, end: Fraction, step: Fraction) -> int:
    """Count the bins that cover start..end; where the end is a multiple, the next is wanted."""
    return math.floor(end / step) - math.floor(start / step) + 1


def _misfit(bins: int) -> float:
    return abs(math.log(bins / DEFAULT_BINS))


def round_dates(seconds: NDArray[np.int64], *, by_day: bool) -> Binning:
    """Cut a range of seconds since 1970 by months, quarters or years; a few weeks by days."""
    first_s, last_s = int(seconds.min()), int(seconds.max())
    first, last = (_EPOCH + dt.timedelta(days=s // _DAY_S) for s in (first_s, last_s))
    starts, end = min(
        (_calendar(first, last, months) for months in _MONTHS), key=lambda cut: _misfit(len(cut[0]))
    )
    if len(starts) < DEFAULT_BINS // 2 and (last - first).days < 366:
        unit = _DAY_S if by_day else 1
        return Binning.equal_width(first_s // unit, last_s // unit, None, whole=True)
    days = [(day - _EPOCH).days for day in (*starts, end)]
    if by_day:
        return Binning.from_edges(days, whole=True)
    edges = [day * _DAY_S for day in days]
    return Binning.from_edges([*edges[:-1], edges[-1] + _DAY_S - 1], whole=True)


def _calendar(first: dt.date, last: dt.date, months: int) -> tuple[list[dt.date], dt.date]:
    """Return the first day of every bin of so many months that touches a range, and the last."""
    begin, stop = ((day.year * 12 + day.month - 1) // months for day in (first, last))
    starts = [_first_day(number * months) for number in range(begin, stop + 1)]
    after = (stop + 1) * months
    if after >= (dt.MAXYEAR + 1) * 12:
        return starts, dt.date.max
    return starts, _first_day(after) - dt.timedelta(days=1)


def _first_day(month: int) -> dt.date:
    """Return the first day of a month, numbered from the year 0, which calendars do not have."""
    year, month = divmod(month, 12)
    return dt.date(year, month + 1, 1) if year >= dt.MINYEAR else dt.date.min
