"""subn+: a few noisy sums, and one model fitted to all of them.

`common.methods.subn_plus.plans` says which sums are made. Each is one function here (`ASKS`) that
yields a step and keeps what was published; `measure` is the loop that asks.

    look          how often pairs agree in halves (`Agreements`), and the halves' own counts. If no
                  pair clearly depends, the margins get all that is left, and the look is fitted
    margins       tables over disjoint blocks of attributes (`common.methods.designs.blocks`)
    declared      tables that the study's analyses need (`declared`)
    views         NOCD's views of attributes in a few groups of values: every pair in exactly one
    crossed       a few large tables of groups, of columns of different blocks
    correlations  the contrasts of all pairs (`Contrasts`), and then of all triples
    pairs         the few that are seen to depend strongly (`dependence`), in full detail: edges of
                  trees (`trees`). If there are none, the margins once more
    forest        tables of the pairs that a forest may be made of, of a wide table
    later looks   how often the pairs that stand out agree: edges of trees (`sieve`)
    totals        how far numbers are from the middle of their bins (`totals`), last of all

The model is a mixture (`latent`) whose price of information the sums themselves choose
(`thinning`); a forest; or independent blocks, no worse than independent columns, because they have
better margins than histograms would give. docs/research/subn-notes.md has the figures behind each
constant.

Everything a step depends on is public: the study, and noisy sums. Decisions are made on integers
and fractions (and single float operations, which every machine rounds alike), so curator and
parties come to the same steps; the fit, which is floating point, decides nothing but the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

from common.bayes.form import Model
from common.methods.designs.nocd import Design, Pair
from common.methods.network_model import NetworkModel
from common.methods.subn_plus import plans
from common.methods.subn_plus.declared import DECLARED, ask_declared, plan_of
from common.methods.subn_plus.dependence import (
    MOST_IN_TREE,
    Departure,
    candidates,
    depends,
    standing_out,
    strong_forest,
)
from common.methods.subn_plus.facts import (
    PublicFacts,
    detail_noise,
    margin_noise,
    pair_groups,
)
from common.methods.subn_plus.joined import JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.methods.subn_plus.losses import Measurement, Moments
from common.methods.subn_plus.models import (
    blocks_model,
    both,
    forest_model,
    mixture_model,
)
from common.methods.subn_plus.plans import Ask, Plan
from common.methods.subn_plus.requests import (
    Contrasts,
    GroupedTables,
    even_groups,
)
from common.methods.subn_plus.sieve import edges_of, even_halves, forest_of, in_detail
from common.methods.subn_plus.sums import (
    ContrastSums,
    Groupings,
    Halves,
    Tables,
    agreements,
    every_value,
    look_at,
    margins_of,
    one_way,
    tables_of,
    weights_of,
)
from common.methods.subn_plus.totals import ask_totals, totals_fraction
from common.privacy import sensitivity
from common.privacy.noise_law import NoiseLaw
from common.study.requests import Counts
from common.study.script import Fit, NearFit, Script, added_up

FOREST_PAIR_CELLS = 1 << 20  # the model of a forest has a table of each pair's own values


@dataclass
class Known:
    """What the sums of a study have shown so far.

    Attributes:
        margins: tables of blocks, the last sum's; with them come `histograms`.
        views: tables of several attributes in groups, for the fit.
        moments: contrasts of pairs, of triples and of halves, for the fit.
        departures: how far pairs are from independence.
        pairs: tables of pairs in detail.
        declared: tables that analyses need, with the departures of their pairs in `declared_pairs`.
        independent: whether no pair is seen to depend: margins get all that is left.
        halves: how often pairs agree in halves, by all looks at them.
    """

    facts: PublicFacts
    plan: Plan
    margins: Tables | None = None
    histograms: Sequence[Counts] = ()
    tables: list[Measurement] = field(default_factory=list)
    views: list[Measurement] = field(default_factory=list)
    moments: list[Moments] = field(default_factory=list)
    departures: dict[Pair, Departure] = field(default_factory=dict)
    pairs: list[Measurement] = field(default_factory=list)
    declared: list[Measurement] = field(default_factory=list)
    declared_pairs: dict[Pair, Departure] = field(default_factory=dict)
    independent: bool = False
    halves: Halves | None = None

    @property
    def may_be_sieved(self) -> bool:
        """Whether contrasts are asked of so many columns that a sieve may show more."""
        return self.plan.name == "contrasts" and len(self.facts.cut) > plans.MOST_VIEWED


def measure(facts: PublicFacts) -> Script[Fit]:
    """Ask for one sum after the other, as the best plan has them; return the fit to all."""
    totals = totals_fraction(facts) * facts.budget
    if totals:
        facts = replace(facts, promise=replace(facts.promise, left=facts.budget - totals))
    known = Known(facts, plan_of(facts))
    left = facts.budget
    waiting: Sequence[Ask] = known.plan.asks
    while left:
        if known.independent:
            waiting = _after_nothing(known, left, waiting)
        ask, *waiting = waiting
        yield from ASKS[ask.what](known, ask)
        left -= ask.cost
    if totals:
        yield from ask_totals(facts, totals, known.histograms)
    return NearFit(partial(_model, known))


def _after_nothing(known: Known, left: Fraction, waiting: Sequence[Ask]) -> Sequence[Ask]:
    """Return what is asked where no pair depends: margins get all that declared tables leave.

    One look at the pairs of many columns may miss those that a second one shows.
    """
    if waiting and waiting[0].what == DECLARED:
        return waiting
    declared = [ask for ask in waiting if ask.what == DECLARED]
    left -= sum((ask.cost for ask in declared), Fraction(0))
    if known.may_be_sieved:
        known.independent, known.plan = False, replace(known.plan, name="sieve")
        known.moments.clear()
        return (*plans.sieved(known.facts, left, list(plans.SIEVE)[1:]), *declared)
    return (Ask(plans.AGAIN, left), *declared)


def _model(known: Known, near: Model | None) -> LatentModel | JoinedModel | NetworkModel:
    """Fit the model that what is known allows."""
    facts, plan = known.facts, known.plan
    alone = plan.name == "margins" or (known.independent and not known.moments)
    if alone and not known.declared:
        return blocks_model(facts, known.tables)
    if plan.name == "forest":
        tables = [*known.tables, *known.declared, *known.pairs]
        return forest_model(facts, tables, known.departures | known.declared_pairs)
    clear = plan.name in ("contrasts", "sieve") and not known.independent
    exact = clear or plan.pair_noise <= plans.PAIRS_AS_EXACT
    tables = [*known.tables, *known.views]
    return mixture_model(
        facts, tables, known.pairs, known.moments, declared=known.declared, exact=exact, near=near
    )


def _ask_margins(known: Known, ask: Ask) -> Script[None]:
    """Ask for margins in one sum or in two: of small tables, and of large ones at more each."""
    facts = known.facts
    blocks = GroupedTables(known.plan.blocks or facts.alone, every_value(facts))
    _learn_margins(known, (yield from margins_of(facts, ask.name, ask.cost, blocks)))


def _ask_first_margins(known: Known, ask: Ask) -> Script[None]:
    """Ask for margins in one small sum: they say where halves are cut."""
    facts = known.facts
    request = GroupedTables(known.plan.blocks, every_value(facts))
    _learn_margins(known, (yield from tables_of(facts, ask.name, ask.cost, request)))
    if facts.norm == 1:  # a sum at a fraction of the cost tells next to nothing beside the next
        known.tables.clear()


def _learn_margins(known: Known, margins: Tables) -> None:
    again = margins.measurements(known.facts)
    if known.tables:
        again = [both(*looks) for looks in zip(known.tables, again, strict=True)]
    else:
        known.margins, known.histograms = margins, one_way(margins)
    known.tables = again


def _ask_declared(known: Known, ask: Ask) -> Script[None]:
    """Ask for the tables that the study's analyses need."""
    known.declared, known.declared_pairs = yield from ask_declared(
        known.facts, ask, known.histograms
    )


def _ask_look(known: Known, ask: Ask) -> Script[None]:
    """Look at every pair in halves, and at the halves themselves."""
    agreed = yield from agreements(known.facts, ask.cost, known.histograms, alone=True)
    weights = agreed.request.weights(agreed.agreed, known.facts.rows)
    known.departures = agreed.departures(known.facts, weights)
    known.independent = nothing_depends(known, agreed.law)
    known.halves = agreed
    known.moments.append(agreed.moments(known.facts))


def nothing_depends(known: Known, law: NoiseLaw) -> bool:
    """Return whether margins get the rest: no pair is seen to depend, or few of many columns.

    What the look showed is fitted then, at the price that it chooses: weak dependence is not lost.
    Where the tables of pairs have little noise, they cost less than they show. Of many columns, the
    few pairs that depend are seen better by looks of their own than by contrasts of all pairs.
    """
    if known.plan.pair_noise <= plans.CLEAR_PAIRS:
        return False
    facts, clear = known.facts, sum(off.clear for off in known.departures.values())
    few = known.may_be_sieved and margin_noise(facts, facts.alone) > plans.CLEAR_MARGINS
    if few and clear <= plans.FEW_CLEAR * len(facts.cut):
        return True
    return not depends(known.departures, known.facts.rows, law)


def _ask_views(known: Known, ask: Ask) -> Script[None]:
    """Ask for views of even groups: the finest that can be seen, now that margins are known."""
    facts, design = known.facts, known.plan.design
    if not known.histograms:
        views = yield from tables_of(facts, ask.name, ask.cost, _viewed(design, every_value(facts)))
        known.histograms = one_way(views)
    else:

        def widths(most: int) -> tuple[int, ...]:
            return tuple(
                max(group_of) + 1 for group_of in _evenly(known.histograms, facts.rows, most)
            )

        finest = plans.finest_design(facts, ask.cost, widths) or (ask.groups, design)
        groups = _evenly(known.histograms, facts.rows, finest[0])
        views = yield from tables_of(facts, ask.name, ask.cost, _viewed(finest[1], groups))
        known.departures = views.departures(facts, known.histograms)
    known.views += views.measurements(facts)


def _ask_crossed(known: Known, ask: Ask) -> Script[None]:
    """Ask for large tables across the blocks; margins say where groups are cut."""
    facts, groups = known.facts, _evenly(known.histograms, known.facts.rows, ask.groups)
    request = _viewed(known.plan.design, groups)
    tables = yield from tables_of(facts, ask.name, ask.cost, request)
    known.views += tables.measurements(facts)


def _viewed(design: Design | None, groups: Groupings) -> GroupedTables:
    return GroupedTables(design.views if design else (), groups)


def _ask_contrasts(known: Known, ask: Ask, *, order: int) -> Script[None]:
    """Ask for the contrasts of all pairs, or of all triples."""
    facts = known.facts
    groups = _evenly(known.histograms, facts.rows, ask.groups)
    request = Contrasts(tuple(combinations(facts.cut, order)), groups)
    moved = sensitivity.contrasts([request.sizes[a] for a in facts.cut], order)
    step = facts.sum_of(request, name=ask.name, cost=ask.cost, moved=moved)
    answer, law = yield from added_up(step)
    contrasts = ContrastSums(request, request.split(answer), law)
    if order == 2:
        known.departures = contrasts.departures(facts, known.histograms)
        known.moments.insert(0, contrasts.moments(facts))
    else:
        known.moments.append(contrasts.moments(facts))


def _ask_details(known: Known, ask: Ask) -> Script[None]:
    """Ask for the strong pairs; if there are none, for the margins once more."""
    facts = known.facts

    def noise(cells: int, tables: int) -> float:
        return detail_noise(facts, ask.cost, cells, tables=tables)

    # Views lose what they show of several attributes of a tree; contrasts lose a pair.
    most = 2 if known.views or known.declared else MOST_IN_TREE
    undeclared = {
        pair: departure
        for pair, departure in known.departures.items()
        if pair not in known.declared_pairs
    }
    pairs = strong_forest(
        undeclared, facts.sizes, rows=facts.rows, noise=noise, most=most, ordered=facts.ordered
    )
    if not pairs:
        yield from _ask_margins(known, replace(ask, what=plans.AGAIN))
        return
    request = GroupedTables(pairs, every_value(facts))
    detail = yield from tables_of(facts, ask.name, ask.cost, request)
    known.pairs = detail.measurements(facts)


def _ask_halves(known: Known, ask: Ask) -> Script[None]:
    """Ask how often halves agree; the margins are known."""
    facts = known.facts
    agreed = yield from agreements(facts, ask.cost, known.histograms)
    weights = weights_of(known.histograms, agreed.request.halves, facts.rows)
    known.departures = agreed.departures(facts, weights)
    if known.plan.name == "forest":
        known.independent = not depends(known.departures, facts.rows, agreed.law)
    else:
        known.moments.append(agreed.moments(facts))


def _ask_even(known: Known, ask: Ask) -> Script[None]:
    """Ask how often halves agree, of columns that could be seen to depend."""
    facts = known.facts
    request = even_halves(facts, ask.cost, known.histograms)
    if not request.pairs:
        yield from _ask_no_more(known, ask)
        return
    known.halves = yield from look_at(facts, ask.name, ask.cost, request)
    weights = weights_of(known.histograms, request.halves, facts.rows)
    known.departures = known.halves.departures(facts, weights)


def _ask_no_more(known: Known, ask: Ask) -> Script[None]:
    """Ask for margins once more: there is no pair to look at."""
    known.independent = True
    yield from _ask_margins(known, replace(ask, what=plans.AGAIN))


def _ask_chosen(known: Known, ask: Ask) -> Script[None]:
    """Look again at the pairs that stand out."""
    facts, looks = known.facts, known.halves
    chosen = standing_out(known.departures, plans.LOOKED_AT[ask.what] * len(facts.cut))
    if not chosen or looks is None:
        yield from _ask_no_more(known, ask)
        return
    request = replace(looks.request, alone=False, chosen=chosen)
    later = yield from look_at(facts, ask.name, ask.cost, request)
    known.halves = looks.again(later)
    weights = weights_of(known.histograms, request.halves, facts.rows)
    known.departures = known.halves.departures(facts, weights, chosen)


def _ask_sieved(known: Known, ask: Ask) -> Script[None]:
    """Make a forest of what is left, strong pairs in detail; the fewer, the more for margins."""
    facts, looks = known.facts, known.halves
    undeclared = {
        pair: off for pair, off in known.departures.items() if pair not in known.declared_pairs
    }
    forest, strong = forest_of(undeclared, facts.rows)
    fraction = in_detail(facts, strong)
    if fraction < 1:
        yield from _ask_margins(known, Ask(plans.AGAIN, ask.cost * (1 - fraction)))
    if not forest or looks is None:
        known.independent = not known.declared_pairs
        return
    known.moments = [looks.moments(facts)]
    tables = replace(ask, cost=ask.cost * fraction)
    known.pairs = yield from edges_of(facts, tables, looks, known.histograms, undeclared)


def _ask_forest(known: Known, ask: Ask) -> Script[None]:
    """Ask for tables of the pairs that a forest may be made of, but for those in blocks."""
    facts, sizes = known.facts, known.facts.sizes
    inside = known.margins.departures(facts, known.histograms) if known.margins else {}
    inside |= known.declared_pairs
    pairs = tuple(
        (a, b)
        for a, b in candidates(known.departures)
        if (a, b) not in inside and sizes[a] * sizes[b] <= FOREST_PAIR_CELLS
    )
    known.departures = inside
    if not pairs:
        yield from _ask_margins(known, Ask("margins once more", ask.cost))
        return
    most = pair_groups(facts, ask.cost, len(pairs))
    request = GroupedTables(pairs, _evenly(known.histograms, facts.rows, most))
    detail = yield from tables_of(facts, ask.name, ask.cost, request)
    known.departures = detail.departures(facts, known.histograms) | inside
    known.pairs = detail.measurements(facts)


ASKS: Mapping[str, Callable[[Known, Ask], Script[None]]] = {
    plans.FIRST: _ask_first_margins,
    plans.LOOK: _ask_look,
    plans.MARGINS: _ask_margins,
    plans.AGAIN: _ask_margins,
    DECLARED: _ask_declared,
    plans.VIEWS: _ask_views,
    plans.PAIRS: partial(_ask_contrasts, order=2),
    plans.TRIPLES: partial(_ask_contrasts, order=3),
    plans.DETAILS: _ask_details,
    plans.HALVES: _ask_halves,
    plans.CROSSED: _ask_crossed,
    plans.FOREST: _ask_forest,
    plans.EVEN: _ask_even,
    plans.CHOSEN: _ask_chosen,
    plans.LAST: _ask_chosen,
    plans.SIEVED: _ask_sieved,
}


def _evenly(histograms: Sequence[Counts], rows: int, most: int) -> Groupings:
    return tuple(even_groups(histogram, rows, groups=most) for histogram in histograms)
