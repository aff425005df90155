"""One attribute of a table: its name, its kind, and the public list of what it may contain.

Codes are laid out the same way for every kind: first the listed values or the bins, in order, then
`other` (if declared), then `missing` (if declared). So an interval of an ordered attribute is an
interval of codes, and never contains the two special ones.

    >>> age = Attribute("age", "integer", Binning.equal_width(0, 80, 8, whole=True), missing=True)
    >>> age.size, age.labels[0], age.labels[8]
    (9, '0..10', '(missing)')
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError, LocalError
from common.schema.binning import Binning
from common.schema.codes import code_dtype
from common.schema.hierarchy import Hierarchy, Node, binary_tree, leaf
from common.schema.limits import MOST_ATTRIBUTE_NAME, check_name
from common.schema.words import number, word_of_number

BinnedKind = Literal["integer", "real", "date", "datetime"]
Kind = Literal["categorical", "ordinal", "integer", "real", "boolean", "date", "datetime"]
KINDS: tuple[str, ...] = get_args(Kind)
BINNED_KINDS: tuple[str, ...] = get_args(BinnedKind)

MAX_SIZE = 1 << 16
OTHER_LABEL = "(other)"
MISSING_LABEL = "(missing)"

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)  # datetimes here carry no zone

Values = tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Listed:
    """The values of an attribute, one code each: all strings or all integers."""

    values: Values

    def __post_init__(self) -> None:
        """Refuse mixed types and repeated values."""
        kinds = {type(value) for value in self.values}
        if not kinds <= {str} and not kinds <= {int} and not kinds <= {bool}:
            raise InputError("values: must be all strings or all integers")
        earlier: set[object] = set()
        for value in self.values:
            if value in earlier:
                raise InputError(f"values: {value!r} is listed twice")
            earlier.add(value)

    @property
    def count(self) -> int:
        return len(self.values)

    @cached_property
    def by_number(self) -> dict[int | float, int]:
        """The places of the texts that are numbers; `common.schema.words` has the rule."""
        places: dict[int | float, int] = {}
        for place, value in enumerate(self.values):
            read = number(value.encode()) if isinstance(value, str) else None
            if read is None or math.isnan(read):
                continue
            if read not in places or word_of_number(read) == value:
                places[read] = place
        return places


Domain = Listed | Binning
BOOLEANS = Listed((False, True))


@dataclass(frozen=True)
class Attribute:
    """An attribute and its public domain."""

    name: str  # the name of the column
    kind: Kind  # what the values are, see `Kind`
    # the listed values (categorical, ordinal, boolean) or the bins (all other kinds)
    domain: Domain
    missing: bool = False  # an empty cell has its own code; without it, an empty cell is refused
    other: bool = False  # a value outside the domain has its own code; without it, it is refused
    clip: bool = False  # a number outside the range counts as the nearest end of the range
    # the declared hierarchy over the codes of the values, None if there is none
    tree: Node | None = None
    forgiving: bool = False  # no cell is refused; see `forgiven`. Never declared, and in no digest.
    # texts that stand for an empty cell, however their number is written
    missing_codes: tuple[str, ...] = ()
    # how frequent each listed value is elsewhere, in public; () if not declared. Values that are
    # too rare for a count of their own are drawn by these frequencies.
    frequencies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse contradictions, domains of one value and domains too large to code."""
        if isinstance(self.domain, Binning) != (self.kind in BINNED_KINDS):
            raise LocalError(f"attribute {self.name!r}: a {self.kind} cannot have this domain")
        check_name(self.name, most=MOST_ATTRIBUTE_NAME)
        if self.clip and not isinstance(self.domain, Binning):
            raise InputError(f"clip: only numbers and dates have a range to clip to ({self.kind})")
        self._check_missing_codes()
        if len(self.frequencies) not in (0, self.domain.count):
            raise InputError(
                f"frequencies: expected {self.domain.count}, one of each value, not "
                f"{len(self.frequencies)}"
            )
        if self.clip and self.other:
            raise InputError("clip and other: choose one, both say what happens outside the range")
        if not 2 <= self.size <= MAX_SIZE:
            alone = "with one value there is nothing to learn, so leave the attribute out"
            raise InputError(
                f"a domain has 2 to {MAX_SIZE:,} values, not {self.size:,}: "
                f"{alone if self.size < 2 else 'use fewer'}"
            )
        specials = self._special_labels()
        if isinstance(self.domain, Listed) and not set(specials).isdisjoint(self.domain.values):
            raise InputError(f"values: {', '.join(sorted(specials))} names a special category here")
        if self.tree is not None and sorted(self.tree.codes()) != list(range(self.domain.count)):
            raise LocalError(f"attribute {self.name!r}: the tree must hold every value once")

    def _check_missing_codes(self) -> None:
        if self.missing_codes and not self.missing:
            raise LocalError(f"attribute {self.name!r}: codes for missing values, and none missing")
        listed = {str(value) for value in getattr(self.domain, "values", ())}
        both = [code for code in self.missing_codes if code in listed]
        if both:
            raise InputError(f"missing: {both[0]!r} is a value, too. List it once")

    @property
    def size(self) -> int:
        """The number of codes, special ones included."""
        return self.domain.count + self.other + self.missing

    @property
    def value_count(self) -> int:
        """The number of codes that are values or bins: they come first."""
        return self.domain.count

    def forgiven(self) -> Attribute:
        """Return an attribute with equal codes that refuses no cell.

        A number beyond the range counts as its nearest end, any other cell that would be refused as
        the first value. So an observer of what is done with the codes cannot tell whether every
        cell was of the domain.
        """
        return replace(self, forgiving=True)

    @property
    def clips(self) -> bool:
        """Whether a number outside the range counts as its nearest end."""
        binned = isinstance(self.domain, Binning)
        return self.clip or (self.forgiving and binned and not self.other)

    @property
    def other_code(self) -> int | None:
        """The code of every value outside the domain; None where they are refused."""
        if self.other:
            return self.domain.count
        return 0 if self.forgiving else None

    @property
    def missing_code(self) -> int | None:
        """The code of `missing`; None where it is not declared."""
        return self.domain.count + self.other if self.missing else None

    @property
    def empty_code(self) -> int | None:
        """The code that an empty cell gets; None where empty cells are refused.

        Numbers, dates and booleans cannot hold the label "(other)": a decoded `other` is an empty
        cell there, so where `missing` is not declared an empty cell is `other`.
        """
        if self.missing_code is not None:
            return self.missing_code
        return self.other_code if self.forgiving or not self.textual else None

    @property
    def textual(self) -> bool:
        listed = self.domain.values if isinstance(self.domain, Listed) else ()
        return bool(listed) and isinstance(listed[0], str)

    @property
    def ordered(self) -> bool:
        """Whether an interval of values means something."""
        return self.kind == "ordinal" or self.kind in BINNED_KINDS

    @property
    def code_type(self) -> type[np.uint8] | type[np.uint16]:
        return code_dtype(self.size)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What to show for each code."""
        return (*self._value_labels(), *self._special_labels())

    def _special_labels(self) -> list[str]:
        return [OTHER_LABEL] * self.other + [MISSING_LABEL] * self.missing

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The tree over all codes: as declared, else binary for bins, else flat.

        The special codes are children of the root, because no declared group holds them.
        """
        if self.tree is not None:
            tree = self.tree
        elif isinstance(self.domain, Binning) and self.domain.count > 1:
            tree = binary_tree(self.labels[: self.domain.count])
        else:
            return Hierarchy.flat(self.labels)
        specials = tuple(
            leaf(self.labels[code], code) for code in range(self.domain.count, self.size)
        )
        if tree.is_leaf:
            return Hierarchy(Node("", (tree, *specials)))
        return Hierarchy(Node(tree.label, (*tree.children, *specials)))

    def _value_labels(self) -> list[str]:
        if isinstance(self.domain, Listed):
            if self.kind == "boolean":
                return ["false", "true"]
            return [str(value) for value in self.domain.values]
        if self.kind == "real":
            return _real_labels(self.domain)
        spans = zip(self.domain.first.tolist(), self.domain.last.tolist(), strict=True)
        shown = [(str(from_number(self.kind, a)), str(from_number(self.kind, b))) for a, b in spans]
        return [a if a == b else f"{a}..{b}" for a, b in shown]


def to_number(kind: str, value: Any) -> float:  # noqa: ANN401  (whatever a TOML file may hold)
    """Return a bound or an edge as a number: days for dates, seconds for datetimes."""
    if kind == "integer" and type(value) is int:
        return value
    if kind == "real" and type(value) in (int, float):
        return float(value)
    if kind == "date" and type(value) is dt.date:
        return (value - _EPOCH_DAY).days
    if kind == "datetime" and isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            raise InputError(f"{value} has a time zone. Write it without one")
        if value.microsecond:
            raise InputError(f"{value} has a fraction of a second. Write whole seconds")
        since = value - _EPOCH
        return since.days * 86_400 + since.seconds
    expected = {"integer": "a whole number", "real": "a number", "date": "a date (2024-01-31)"}
    raise InputError(f"{value!r} is not {expected.get(kind, 'a datetime (2024-01-31T12:00:00)')}")


def from_number(kind: str, number: float) -> int | float | dt.date | dt.datetime:
    """Return the bound or edge that `to_number` turned into this number."""
    if kind == "date":
        return _EPOCH_DAY + dt.timedelta(days=number)
    if kind == "datetime":
        return _EPOCH + dt.timedelta(seconds=number)
    return number


def _real_labels(domain: Binning) -> list[str]:
    """Name bins as intervals, with the fewest digits that tell every edge from the next."""
    for digits in range(4, 18):
        edges = [f"{edge:.{digits}g}" for edge in domain.edges]
        if len(set(edges)) == len(set(domain.edges)):
            break
    last = domain.count - 1
    labels = []
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        opening = "(" if domain.equal and k > 0 else "["
        closing = "]" if domain.equal or k == last else ")"
        labels.append(f"{opening}{low}, {high}{closing}")
    if domain.decimals is not None:
        single = np.flatnonzero(domain.steps == 1)
        for place, number in zip(single, domain.centre(single), strict=True):
            labels[place] = np.format_float_positional(number, trim="-")
    return labels


def numbers_of(attribute: Attribute) -> NDArray[np.float64] | None:
    """Return the number of every value, of a bin its centre; None if values are not numbers."""
    domain = attribute.domain
    if isinstance(domain, Binning) and attribute.kind in ("integer", "real"):
        return np.asarray(domain.centre(np.arange(domain.count)), dtype=np.float64)
    return _listed_numbers(attribute)


def middles_of(attribute: Attribute) -> NDArray[np.float64] | None:
    """Return the number of every value, of a bin the middle between its first and last number."""
    domain = attribute.domain
    if isinstance(domain, Binning) and attribute.kind in ("integer", "real"):
        return np.asarray(domain.first + domain.spans / 2, dtype=np.float64)
    return _listed_numbers(attribute)


def spans_of(attribute: Attribute) -> NDArray[np.float64]:
    """Return how far apart the numbers of each value are; 0 for all but bins."""
    domain = attribute.domain
    return domain.spans if isinstance(domain, Binning) else np.zeros(domain.count)


def _listed_numbers(attribute: Attribute) -> NDArray[np.float64] | None:
    domain = attribute.domain
    if not isinstance(domain, Listed) or attribute.textual or attribute.kind == "boolean":
        return None
    return np.array(domain.values, dtype=np.float64)


class Domains(Protocol):
    """Attributes in order, and what follows from them."""

    @property
    def attributes(self) -> tuple[Attribute, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def sizes(self) -> tuple[int, ...]: ...

    def position(self, name: str) -> int:
        """Return the position of an attribute; InputError if no attribute has the name."""
