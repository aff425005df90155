"""Bins that people ask about: steps of 1, 2 or 5, bins that grow, and calendar months or years.

A question can only begin and end where bins do. The ends of a column's data are hardly ever such
places (a range of 0..99 in 16 equal bins is cut at 6, 13, 19, ...), so proposed ranges are widened
to round ones, which also keeps the exact ends of the data out of the proposal.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from common.errors import InputError
from common.schema.binning import DEFAULT_BINS, Binning, Numbers

_DAY_S = 86_400
_COMMON = 0.05  # the quantile of the positive numbers at which growing bins begin
_EPOCH = dt.date(1970, 1, 1)
_MONTHS = (1, 3, 6, 12, 24, 60, 120)  # in a bin
_DIGITS = ("1", "1 3", "1 2 5", "1 1.5 2 3 5 7", "1 1.2 1.5 2 2.5 3 4 5 6 8")  # of growing bins


def round_numbers(low: float, high: float, *, whole: bool) -> Binning:
    """About 16 bins around a range, in steps of 1, 2 or 5 times a power of ten."""
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


def growing_bins(numbers: Numbers, decimals: int | None) -> Binning | None:
    """Bins that grow from zero, upwards and, where numbers are negative, downwards.

    None if no number is above zero, or the range cannot be cut.
    """
    low, high = numbers.min().item(), numbers.max().item()
    if high <= 0:
        return None
    common = np.quantile(numbers[numbers > 0], _COMMON).item()
    with contextlib.suppress(InputError):
        if low >= 0:
            return growing_numbers(low, common, high, decimals)
        rare = np.quantile(-numbers[numbers < 0], _COMMON).item()
        return growing_both_ways(low, rare, common, high, decimals)
    return None


def growing_numbers(low: float, common: float, high: float, decimals: int | None) -> Binning:
    """About 16 bins that grow with the numbers: for money, and whatever else is mostly small.

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


def growing_both_ways(
    low: float, rare: float, common: float, high: float, decimals: int | None
) -> Binning:
    """Growing bins for numbers some of which are negative: powers of ten below zero.

    Most of the negative numbers are beyond `-rare`.
    """
    above = growing_numbers(0, common, high, decimals)
    rungs = _ladder(Fraction(str(rare)), Fraction(str(-low)), ["1"], decimals)
    below = [-(int(rung) if decimals == 0 else float(rung)) for rung in reversed(rungs)]
    return Binning.from_edges([*below, *above.edges], whole=decimals == 0)


def _ladder(
    first: Fraction, end: Fraction, digits: Sequence[str], decimals: int | None
) -> list[Fraction]:
    """The digits times powers of ten, from the last one up to `first` to the first above `end`."""
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
    """How many bins cover start..end; the next multiple is wanted even where the end is one."""
    return math.floor(end / step) - math.floor(start / step) + 1


def _misfit(bins: int) -> float:
    return abs(math.log(bins / DEFAULT_BINS))


def round_dates(first_s: int, last_s: int, *, by_day: bool) -> Binning:
    """Months, quarters or years around a range of seconds since 1970; days within a few weeks."""
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
    seconds = [day * _DAY_S for day in days]
    return Binning.from_edges([*seconds[:-1], seconds[-1] + _DAY_S - 1], whole=True)


def _calendar(first: dt.date, last: dt.date, months: int) -> tuple[list[dt.date], dt.date]:
    """The first day of every bin of so many months that first..last touches, and the last day."""
    begin, stop = ((day.year * 12 + day.month - 1) // months for day in (first, last))
    starts = [_first_day(number * months) for number in range(begin, stop + 1)]
    after = (stop + 1) * months
    if after >= (dt.MAXYEAR + 1) * 12:
        return starts, dt.date.max
    return starts, _first_day(after) - dt.timedelta(days=1)


def _first_day(month: int) -> dt.date:
    """Of a month, numbered from the year 0, which calendars do not have."""
    year, month = divmod(month, 12)
    return dt.date(year, month + 1, 1) if year >= dt.MINYEAR else dt.date.min
