"""subn+ with one thing taken away or replaced, for `benchmarks.subn_phases`.

A variant replaces named constants and functions of `common.subn` while it is at work; the product
has no switches for that. What a variant does to the privacy of a release is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from common.methods import registry as methods
from common.methods.designs.nocd import Design, optimal_design, pairs_design, printed_design
from common.methods.designs.projective import best_design
from common.methods.network_model import NetworkModel
from common.methods.subn_plus import budget as plus_budget
from common.methods.subn_plus import dependence, latent
from common.methods.subn_plus import script as subn_plus
from common.methods.subn_plus.budget import Budget, PublicFacts, decide_budget
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.script import SubnPlusPlan
from common.methods.subn_plus.table_loss import Floats, Measurement
from common.privacy.randomness import RandomSource, uniforms
from common.study.steps import Attributes, Counts

Column = tuple[str, str]  # a table and an epsilon
Replaced = tuple[ModuleType, str, Any]

GROUPED: tuple[Column, ...] = tuple(product(("adult", "br2000"), ("0.2", "0.8")))
BITS: tuple[Column, ...] = tuple(product(("nltcs", "acs"), ("0.2", "0.8")))
SMALL: tuple[Column, ...] = tuple(product(("adult", "br2000"), ("0.05", "0.1")))
SMALL_BITS: tuple[Column, ...] = tuple(product(("nltcs", "acs"), ("0.05", "0.1")))
LARGE: tuple[Column, ...] = (("adult", "1.6"), ("br2000", "1.6"), ("nltcs", "1.6"))
VIEWED = (*GROUPED[1:], *BITS)  # Adult at 0.2 has halves, not views
EVERYWHERE = (*GROUPED, *BITS, *SMALL, *SMALL_BITS, *LARGE)
WHOLE = "all of it"


@dataclass(frozen=True)
class Variant:
    """One row of the tables.

    Attributes:
        label: what was taken away or replaced.
        where: the columns that it can change.
        replaced: module, name, and what stands there instead.
        constant: whether it is a constant's other value, not an ingredient.
    """

    label: str
    where: tuple[Column, ...]
    replaced: tuple[Replaced, ...] = ()
    constant: bool = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """subn+ is this variant inside."""
        with ExitStack() as stack:
            for module, name, value in self.replaced:
                stack.enter_context(mock.patch.object(module, name, value))
            yield


class FittedTo(SubnPlusPlan):
    """Only the tables of some sums enter the model."""

    fitted: tuple[str, ...] = ()

    def __init__(self, facts: PublicFacts) -> None:
        super().__init__(facts)
        self._kept: list[Measurement] = []

    def advance(self, result: Counts | bytes) -> None:
        """Remember which tables this sum brought."""
        step, before = self.step(), len(self._measurements)
        super().advance(result)
        if step is not None and step.name in self.fitted:
            self._kept += self._measurements[before:]

    def model(self) -> LatentModel | JoinedModel | NetworkModel:
        """The model without the other sums."""
        self._measurements = self._kept
        self._pairs = self._pairs if "pairs" in self.fitted else []
        return super().model()


class WithoutViews(FittedTo):
    """The views choose pairs, and are thrown away, as dp-subn throws away what it chose by."""

    fitted = ("margins", "margins again", "pairs")


class ViewsOnly(FittedTo):
    """The margins make the groups and are thrown away."""

    fitted = ("correlations",)


class PairsAdded(SubnPlusPlan):
    """Pairs in full detail are tables like all others; no columns are joined."""

    def model(self) -> LatentModel | JoinedModel | NetworkModel:
        """The mixture of single attributes."""
        self._measurements, self._pairs = [*self._measurements, *self._pairs], []
        return super().model()


def margins_only(facts: PublicFacts) -> Budget:
    """Nothing is asked about dependence."""
    return Budget(blocks=decide_budget(facts).blocks, margins=facts.epsilon)


def after_a_structure(facts: PublicFacts) -> Budget:
    """A quarter of epsilon has bought a structure to start from, of which nothing is used."""
    return decide_budget(replace(facts, epsilon=facts.epsilon * 3 / 4))


def views_of_halves(facts: PublicFacts, *, margins: Fraction, pairs: Fraction) -> Budget:
    """Views where agreements would be counted; margins and pairs get these shares of epsilon."""
    budget = decide_budget(facts)
    if not budget.groups or budget.design is not None:
        return budget
    halves = tuple(min(size, 2) for size in facts.sizes)
    return replace(
        budget,
        design=best_design(halves, cell_limit=plus_budget.VIEW_CELLS),
        margins=facts.epsilon * margins,
        correlations=facts.epsilon * (1 - margins - pairs),
        pairs=facts.epsilon * pairs,
    )


def other_views(facts: PublicFacts, *, made: Callable[..., Design]) -> Budget:
    """Other views of the same groups, at the same epsilon."""
    budget = decide_budget(facts)
    if budget.design is None:
        return budget
    sizes = budget.design.sizes
    return replace(budget, design=made(sizes, cell_limit=plus_budget.VIEW_CELLS))


def other_shares(facts: PublicFacts, *, margins: Fraction, pairs: Fraction) -> Budget:
    """The margins' share plus `margins` and the pairs' times `pairs`, in the same groups."""
    budget = decide_budget(facts)
    more = facts.epsilon * margins
    return replace(
        budget,
        margins=budget.margins + more,
        pairs=budget.pairs * pairs,
        correlations=budget.correlations - more - budget.pairs * (pairs - 1),
    )


def histograms(sizes: Sequence[int], cell_limit: int) -> tuple[Attributes, ...]:
    """Every attribute is a block."""
    del cell_limit
    return tuple((attribute,) for attribute in range(len(sizes)))


def as_printed(sizes: tuple[int, ...], *, cell_limit: int) -> Design:
    """The paper's Algorithm 2, which knows no domains."""
    del cell_limit
    return Design(printed_design(len(sizes)).views, sizes)


def direct_pairs(sizes: tuple[int, ...], *, cell_limit: int) -> Design:
    """Every pair is a view."""
    del cell_limit
    return pairs_design(sizes)


def equal_runs(counts: Counts, rows: int, groups: int) -> tuple[int, ...]:
    """Groups of as many values each, whatever the margins say."""
    del rows
    return tuple(value * min(groups, len(counts)) // len(counts) for value in range(len(counts)))


def no_pairs(*_: object, **__: object) -> tuple[()]:
    """No pair is strong: the margins are counted once more."""
    return ()


def one_mixture(
    sizes: Sequence[int],
    margins: Sequence[Floats],
    rows: int,
    blocks: Sequence[Measurement],
    *,
    penalty: float,
) -> LatentModel:
    """All blocks in one mixture."""
    del sizes
    return latent.fit(margins, rows, blocks, penalty=penalty)


def one_by_one(weights: Floats, count: int, source: RandomSource) -> NDArray[np.intp]:
    """`count` indices drawn independently."""
    edges = np.cumsum(weights)
    drawn: NDArray[np.intp] = np.searchsorted(edges, uniforms(count, source) * edges[-1])
    return drawn.clip(max=len(weights) - 1)


def _plan(kind: type[SubnPlusPlan]) -> tuple[Replaced, ...]:
    return ((methods, "SubnPlusPlan", kind),)


def _budget(decided: Callable[[PublicFacts], Budget]) -> tuple[Replaced, ...]:
    return ((subn_plus, "decide_budget", decided),)


def _halves(margins: str, pairs: str) -> tuple[Replaced, ...]:
    return _budget(partial(views_of_halves, margins=Fraction(margins), pairs=Fraction(pairs)))


def _design(made: Callable[..., Design]) -> tuple[Replaced, ...]:
    return _budget(partial(other_views, made=made))


def _shares(margins: Fraction = Fraction(0), pairs: Fraction = Fraction(1)) -> tuple[Replaced, ...]:
    return _budget(partial(other_shares, margins=margins, pairs=pairs))


def _limits(**values: object) -> tuple[Replaced, ...]:
    return tuple((plus_budget, name, value) for name, value in values.items())


def _price(times: float) -> tuple[Replaced, ...]:
    return ((subn_plus, "PENALTY_PER_GROUP", subn_plus.PENALTY_PER_GROUP * times),)


def _classes(number: int) -> tuple[Replaced, ...]:
    return ((subn_plus, "fit", partial(latent.fit, components=number)),)


INGREDIENTS = (
    Variant(WHOLE, EVERYWHERE),
    Variant("margins only", (*GROUPED, *BITS, *SMALL_BITS), _budget(margins_only)),
    Variant("histograms, not blocks", (*GROUPED, *SMALL), _limits(disjoint_blocks=histograms)),
    Variant("one mixture for all blocks", SMALL, ((subn_plus, "independent_blocks", one_mixture),)),
    Variant("groups of equal length", GROUPED, ((subn_plus, "balanced_groups", equal_runs),)),
    Variant("views of halves, not agreements", GROUPED[:1], _halves("7/10", "2/25")),
    Variant("the same, at the shares with views", GROUPED[:1], _halves("3/5", "3/50")),
    # Elsewhere these two find the designs that are used.
    Variant("NOCD with prime powers", GROUPED[2:], _design(optimal_design)),
    Variant("NOCD with primes", VIEWED[:5], _design(partial(optimal_design, orders="primes"))),
    Variant("NOCD as printed", VIEWED, _design(as_printed)),
    Variant("every pair a view", VIEWED, _design(direct_pairs)),
    Variant("no pairs in full detail", GROUPED, ((subn_plus, "strong_pairs", no_pairs),)),
    Variant("pairs added, not joined", GROUPED, _plan(PairsAdded)),
    Variant("views thrown away", GROUPED, _plan(WithoutViews)),
    Variant("fitted to views only", GROUPED, _plan(ViewsOnly)),
    Variant("a quarter for a structure", (*GROUPED, *BITS), _budget(after_a_structure)),
    Variant("no price on information", (*GROUPED, *BITS, *SMALL_BITS), _price(0)),
    Variant("rows drawn one by one", (*GROUPED, *BITS), ((latent, "systematic", one_by_one),)),
)

CONSTANTS = tuple(
    replace(variant, constant=True)
    for variant in (
        Variant("price x 1/3", (*GROUPED, *BITS, *SMALL_BITS), _price(1 / 3)),
        Variant("price x 3", (*GROUPED, *BITS, *SMALL_BITS), _price(3)),
        Variant("groups up to .08", GROUPED, _limits(GROUPS_BELOW=0.08)),
        Variant("groups up to .35", GROUPED, _limits(GROUPS_BELOW=0.35)),
        Variant("4 groups at most", LARGE[:2], _limits(MOST_GROUPS=4)),
        Variant("8 groups at most", LARGE[:2], _limits(MOST_GROUPS=8)),
        Variant("share of margins - 1/10", GROUPED, _shares(margins=Fraction(-1, 10))),
        Variant("share of margins + 1/10", GROUPED, _shares(margins=Fraction(1, 10))),
        Variant("share of pairs x 1/2", GROUPED, _shares(pairs=Fraction(1, 2))),
        Variant("share of pairs x 2", GROUPED, _shares(pairs=Fraction(2))),
        Variant("pairs from .15 on", GROUPED, ((dependence, "LEAST_DISTANCE", Fraction(3, 20)),)),
        Variant("pairs from .6 on", GROUPED, ((dependence, "LEAST_DISTANCE", Fraction(3, 5)),)),
        Variant("price of a pair 1", GROUPED, ((subn_plus, "PAIR_PRICE", 1.0),)),
        Variant("price of a pair 100", GROUPED, ((subn_plus, "PAIR_PRICE", 100.0),)),
        Variant("32 classes", (*GROUPED[1::2], *BITS, LARGE[2]), _classes(32)),
        Variant("128 classes", (*GROUPED[1::2], *BITS, LARGE[2]), _classes(128)),
        Variant("halves up to .1", (SMALL[1], SMALL[3]), _limits(HALVES_BELOW=0.1)),
        Variant("price of a block x 1/4", SMALL, ((subn_plus, "BLOCK_PENALTY", 5.0),)),
        Variant("price of a block x 4", SMALL, ((subn_plus, "BLOCK_PENALTY", 80.0),)),
    )
)
VARIANTS = {variant.label: variant for variant in (*INGREDIENTS, *CONSTANTS)}
