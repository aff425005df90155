"""Acceptance criteria: what a study's owners agree that its model must be good for.

    criteria_epsilon = "0.05"          # a part of epsilon, for all criteria together

    [[criterion]]
    mean = "income"                    # the mean of a column of numbers
    within = "3 %"                     # of the mean of the owners' rows; or a number: "500"

    [[criterion]]
    share = "age >= 65 and smoker = true"
    within = "0.01"                    # of all rows; or a part of the share: "10 %"

Studies of 0.2 could also name a `distance`; their text is read, and they are not run any more.
How they are measured and decided is in `common.methods.criteria`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, cast

from common.errors import InputError, located
from common.privacy.budget import parse_epsilon, shown
from common.schema import Schema
from common.schema.attribute import numbers_of
from common.schema.conditions import cells_of, parse
from common.schema.limits import MOST_NAME, check_most
from common.schema.toml import toml_lines

Kind = Literal["mean", "share", "distance"]
MOST_CRITERIA = 32
PAIRS = ("mean", "most", "all")
_KEYS = {"mean": {"mean", "within"}, "share": {"share", "within"}, "distance": {"distance"}}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion."""

    kind: Kind
    about: str  # the attribute of a mean, the condition of a share, the pairs of a distance
    limit: Fraction  # the most that the model may be off
    relative: bool = False  # whether the limit is a part of what was measured

    @property
    def words(self) -> str:
        limit = f"{float(100 * self.limit):g} %" if self.relative else f"{float(self.limit):g}"
        if self.kind != "distance":
            return f"{self.kind} of {self.about} within {limit}"
        which = "the mean over pairs" if self.about == "mean" else f"{self.about} pairs"
        return f"two-way distance of {which} at most {limit}"

    @property
    def plain(self) -> list[object]:
        """The criterion for the study's digest."""
        return [self.kind, self.about, str(self.limit), self.relative]

    def to_toml(self) -> list[str]:
        limit = f"{100 * self.limit} %" if self.relative else str(self.limit)
        entries = {self.kind: self.about, "within": limit}
        if self.kind == "distance":
            entries = {"distance": limit, "pairs": self.about}
        return ["", *toml_lines(entries, header="[[criterion]]")]

    def check(self, schema: Schema) -> None:
        """Refuse a criterion that is not about this schema."""
        if (
            self.kind == "mean"
            and numbers_of(schema.attributes[schema.position(self.about)]) is None
        ):
            raise InputError(f"mean: {self.about!r} is no column of numbers")
        if self.kind == "share":
            cells_of(parse(self.about, schema).root, schema.sizes)


def read_criteria(tables: object) -> tuple[Criterion, ...]:
    """Read the criteria of a study; InputError names the criterion and what is wrong with it."""
    if not isinstance(tables, Sequence) or not all(isinstance(table, Mapping) for table in tables):
        raise InputError("criterion: write [[criterion]] tables, with double brackets")
    check_most("criteria of a study", len(tables), most=MOST_CRITERIA)
    criteria = []
    for number, table in enumerate(tables, start=1):
        with located(f"criterion {number}"):
            criteria.append(_criterion(table))
    return tuple(criteria)


def check_criteria(
    criteria: Sequence[Criterion], schema: Schema, *, part: Fraction, epsilon: Fraction
) -> None:
    """Refuse criteria that are not about a schema, or whose part of epsilon is none or all of it.

    Profile `paper` has an epsilon of 0 for them: it spends its epsilon as printed.
    """
    if bool(criteria) != (part > 0):
        raise InputError(
            "criteria_epsilon: say what the criteria may cost, such as 0.05, and name a "
            "[[criterion]]; or leave both out"
        )
    if criteria and not epsilon:
        raise InputError('criterion: profile = "paper" has none. Use profile = "sound"')
    if criteria and part >= epsilon:
        raise InputError(
            f"criteria_epsilon: {shown(part):g} leaves nothing of epsilon {shown(epsilon):g} for "
            "the model. Choose about a tenth of it"
        )
    for number, criterion in enumerate(criteria, start=1):
        with located(f"criterion {number}"):
            criterion.check(schema)


def _criterion(table: Mapping[str, Any]) -> Criterion:
    kind = next((kind for kind, keys in _KEYS.items() if keys == set(table) - {"pairs"}), None)
    if kind is None or ("pairs" in table and kind != "distance"):
        raise InputError(
            "expected mean and within, or share and within, not " + (", ".join(table) or "nothing")
        )
    if kind == "distance":
        limit, relative = _limit(kind, table["distance"])
        about = table.get("pairs", "mean")
        if about not in PAIRS or relative or limit > 1:
            raise InputError(
                f"distance: expected a number up to 1, and pairs one of {', '.join(PAIRS)}"
            )
        return Criterion("distance", about, limit)
    about = table[kind]
    if not isinstance(about, str) or not about.strip():
        raise InputError(f"{kind}: expected a text, not {about!r:.100}")
    check_most(f"{kind}: characters", len(about), most=8 * MOST_NAME)
    return Criterion(cast(Kind, kind), about, *_limit("within", table["within"]))


def _limit(key: str, written: object) -> tuple[Fraction, bool]:
    text = str(written).strip() if type(written) in (str, int, float, Decimal) else ""
    relative = text.endswith("%")
    try:
        check_most(f"{key}: characters", len(text), most=MOST_NAME)
        limit = parse_epsilon(text.removesuffix("%").strip())  # above zero, and no end of digits
    except InputError:
        raise InputError(
            f"{key}: expected a number above 0, or a percentage, not {written!r:.100}"
        ) from None
    return (limit / 100, True) if relative else (limit, False)
