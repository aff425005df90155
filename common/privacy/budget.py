"""Privacy budgets as exact fractions: nothing is lost or gained in splitting and adding up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

from common.errors import InputError, LocalError

Written = str | Decimal | Fraction | int | float
_LARGEST = Fraction(10**9)  # far beyond any use, and still a number that floats can carry
LARGEST_DELTA = Fraction(1, 1000)
_LARGEST_DENOMINATOR = 10**9  # of a part of a budget
_MOST_PLACES = 100  # before or behind the point: a short text must not become gigabytes of digits


def parse_epsilon(value: Written, key: str = "") -> Fraction:
    """Return the positive, finite budget that was written: 0.1, "0.1" and "1/10" are all 1/10.

    A float stands for its shortest decimal, the one a person typed; NumPy's scalars are floats too.
    A refusal, an InputError, begins with the key, where a caller does not put it there.
    """
    named = f"{key}: {value!r}" if key else repr(value)
    epsilon = _exact(value, f"{named} is not a number. Write it like 0.5, 1e-2 or 1/3")
    if epsilon is not None and epsilon <= 0:
        raise InputError(f"{named} must be above zero")
    if epsilon is None or not 1 / _LARGEST <= epsilon <= _LARGEST:
        raise InputError(f"{named} is meant for no table: choose it between 0.01 and 10")
    return epsilon


def _exact(value: Written, refusal: str) -> Fraction | None:
    """Return the number, or None if its exponent is out of every sensible range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, float):
            value = repr(float(value))
        if isinstance(value, str) and "/" not in value:
            value = Decimal(value.strip())
        if isinstance(value, Decimal) and value.is_finite():
            places = value.as_tuple().exponent
            if max(abs(int(places)), abs(value.adjusted())) > _MOST_PLACES:
                return None
        return Fraction(value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError, InvalidOperation) as error:
        raise InputError(refusal) from error


def parse_fraction(value: Written) -> Fraction:
    """Return the part of a whole that was written, exactly: 0 up to below 1."""
    part = _exact(value, f"{value!r} is not a number. Write it like 0.2, 1/5 or 0")
    if part is None or not 0 <= part < 1 or part.denominator > _LARGEST_DENOMINATOR:
        raise InputError(f"{value!r} is no part of a whole. Write 0 up to below 1, like 0.2")
    return part


def parse_delta(value: Written) -> Fraction:
    """Return the delta that was written, exactly; 0 for pure epsilon."""
    delta = _exact(value, f"{value!r} is not a number. Write it like 1e-9, or 0")
    if delta is None:
        raise InputError(f"{value!r} is meant for no table: choose 0, or about 1e-9")
    check_delta(delta)
    return delta


def check_delta(delta: Fraction) -> None:
    """Refuse, with InputError, a delta that is no probability or that promises nothing."""
    if delta < 0:
        raise InputError(f"{delta} must not be negative. Write 0 for pure epsilon")
    if delta > LARGEST_DELTA:
        raise InputError(
            f"{shown(delta):g} is above {shown(LARGEST_DELTA):g}: a promise that may fail so "
            "often protects no one. Choose about 1e-9, in any case far below 1 / rows"
        )


def rounded(value: Fraction, digits: int, *, up: bool) -> Fraction:
    """Round a value that is not negative to so many significant decimal digits, up or down."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def root_from_below(value: Fraction, bits: int) -> Fraction:
    """Return the square root, less by at most 2^-bits; exact where value is a square."""
    top, bottom = value.as_integer_ratio()
    return Fraction(math.isqrt(top * bottom << 2 * bits), bottom << bits)


def split(total: Fraction, weights: Sequence[Fraction | int]) -> list[Fraction]:
    """Return parts of `total` in proportion to `weights`; they add up to `total` exactly."""
    exact = [Fraction(weight) for weight in weights]
    whole = sum(exact, Fraction(0))
    if whole <= 0 or min(exact) < 0:
        raise LocalError(f"cannot split a budget by the weights {list(weights)}")
    return [total * weight / whole for weight in exact]


def shown(value: Fraction) -> float:
    """Return a budget to print: itself where a short decimal has it, and never less.

    3/10 is shown as 0.3, as it was typed; 1/3 as the next double above it.
    """
    nearest = float(value)
    return nearest if Fraction(repr(nearest)) >= value else math.nextafter(nearest, math.inf)
