"""The language of models: an outcome and its terms, like "income ~ age + sex"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from common.errors import InputError
from common.schema.domains import Domains

_PLUS = re.compile(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)")  # outside of backticks


@dataclass(frozen=True, slots=True)
class Formula:
    """A model of one column by others."""

    outcome: str
    terms: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.outcome, *self.terms)


def parse_formula(text: str, schema: Domains) -> Formula:
    """Read a formula; names with other signs are in backticks.

    Raises:
        InputError: it is none, a column is not in the schema, or one is there twice.
    """
    left, tilde, right = text.partition("~")
    formula = Formula(bare_name(left), tuple(map(bare_name, _PLUS.split(right))))
    if not tilde or not all(formula.columns):
        raise InputError(f"model {text!r}: write it like 'income ~ age + sex'")
    for name in formula.columns:
        schema.position(name)
    if len(set(formula.columns)) < len(formula.columns):
        raise InputError(f"model {text!r}: a column is there twice. Name it once")
    return formula


def bare_name(text: str) -> str:
    return text.strip().strip("`")
