"""Privelet from rows to a release, in one call.

release = privelet(
    schema.encode(table), schema, epsilon=1, source=OsRandomSource(), accountant=accountant
)
release.count("age in 20..39").value
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from common.errors import InputError
from common.privacy.accountant import Accountant, laplace_charge
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import RandomSource
from common.privacy.sampling.discrete_laplace import discrete_laplace
from common.schema import Codes, Schema
from common.wavelet.decisions import Method, Plan, Rule, axes_of, make_plan
from common.wavelet.mechanism import noisy_cells
from common.wavelet.noisy_matrix import RangeRelease


def plan_privelet(
    schema: Schema,
    epsilon: str | Decimal | Fraction | int | float,
    *,
    method: Method = "privelet+",
    untransformed: Rule | Sequence[str] = "exact",
) -> Plan:
    """What `privelet` would do, from public facts alone; see there."""
    rule: Rule | list[int]
    if untransformed == "exact" or untransformed == "bound":
        rule = untransformed
    elif isinstance(untransformed, str):
        raise InputError(f"unknown rule {untransformed!r}; name attributes in a list, or a rule")
    else:
        rule = [schema.position(name) for name in untransformed]
    plan = make_plan(axes_of(schema), parse_epsilon(epsilon), method, rule)
    plan.check_size(schema.names)
    return plan


def privelet(
    codes: Codes,
    schema: Schema,
    *,
    epsilon: str | Decimal | Fraction | int | float,
    source: RandomSource,
    accountant: Accountant,
    party: str = "owner",
    method: Method = "privelet+",
    untransformed: Rule | Sequence[str] = "exact",
) -> RangeRelease:
    """Noisy counts of every cell, epsilon-differentially private for a replaced row.

    Args:
        codes: the rows, encoded by `schema`.
        schema: the public domain.
        epsilon: the budget; all of it is spent, exactly.
        source: the noise's random bits.
        accountant: charged before the first draw; it may refuse.
        party: the name the accountant knows the owner of the rows by.
        method: "basic" (noise on every cell), "privelet" (every attribute transformed),
            "privelet+" (small attributes left alone), "privelet*" (and noisy coefficients shrunk).
        untransformed: for the last two, which attributes are left alone: those for which the
            worst query's variance is then smaller ("exact", or "bound" by the paper's bound), or
            the names given.

    Raises:
        InputError: a domain too large, or an epsilon too small for exact arithmetic.
        PolicyError: the owner's budget does not allow it. Nothing was charged or drawn.
    """
    plan = plan_privelet(schema, epsilon, method=method, untransformed=untransformed)
    plan.check_rows(codes)
    accountant.charge(
        laplace_charge(
            "range counts",
            scale=plan.scale,
            # Of the weighted coefficients: a replaced row changes two cells by one each.
            sensitivities={party: 2 * plan.sensitivity},
            mechanism=f"discrete Laplace on wavelet coefficients ({method})",
        )
    )
    cells = noisy_cells(codes, plan, discrete_laplace, source)
    return RangeRelease(schema, plan, cells, codes.rows, source.private)
