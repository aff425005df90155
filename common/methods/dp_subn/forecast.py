"""What a new study of dp-subn or dp-ccbn says of its estimates: forecast from public facts alone.

A proposer writes the result into the settings of the study, so owners agree on plain values and
no later version can read them differently. A study without these settings is estimated as the
paper prints it, and so is profile `paper`.

**The look.** Phase 1 counts the agreement of halves (`common.methods.dp_subn.look`). How weak a
dependence that sum can show is public, and so is what blocks of attributes save of the noise that
histograms have. The look gets the least part of the budget at which it shows a dependence of
.08, as the root of the mean square over pairs: at least 1/12, at most three quarters of what
blocks save. So columns that turn out to be independent are no worse than histograms of all of the
budget.

**The split.** Phases 2 and 3 improve a structure, phase 4 fills it. How much a structure can hold
is public: usefulness limits the cells of a table, by the part of epsilon that the tables get. While
tables hold few attributes there is little to choose, and budget for choosing is lost; once they
hold four, a better structure is worth more than larger tables. With one part each for the other
phases, the tables get the least of

* one, the printed split, if a table of 1/4 of the budget holds four attributes of median size,
* 3, if one of 1/2 does so,
* 7, if one of 7/10 holds most pairs of attributes, and
* 27 in any other case.

Where owners are more than the choices of phase 2, that phase gets at most 1/40: not every owner
pays for it, so it buys nothing where there is no network.

**No network.** If even its most would show nothing below a dependence of a fifth, there is no look
and no network: the degree is 0, and all of the budget buys margins. In bits there is no look,
because bits of one attribute depend on each other in any case; but a network of bits must hold each
attribute together. If no table holds most pairs of attributes in full, it is forecast to be worse
than the columns by themselves, and the degree is 0. Attributes of many values, which single columns
would see in cells, have no look either, and nor has a study that names other `views`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb, lcm, sqrt
from statistics import median_high

from common.methods.designs.blocks import margin_error
from common.methods.dp_subn.decisions import HALVES, FamilyLimit, SubnSettings, network_limit
from common.methods.dp_subn.look import FIRST_MARGINS, facts_of
from common.methods.network_model import Variables
from common.methods.subn_plus.descent import has_many_values
from common.methods.subn_plus.facts import PublicFacts, margin_blocks, margin_noise
from common.privacy import sensitivity
from common.schema.codes import bit_count
from common.study.document import Study

_STRUCTURE = 3  # phases that find a structure, one part of the budget each
_PRINTED, _HALF, _MOST, _NEARLY_ALL = (
    Fraction(1, 4), Fraction(1, 2), Fraction(7, 10), Fraction(9, 10),
)  # fmt: skip
_WIDE = 4  # attributes of median size in a table
_LOOKS = 60  # the look's part is a multiple of one in so many
_LEAST_LOOK = 5  # of them
_OF_SAVED = 0.75  # the rest of what blocks save pays for looks that take chance for dependence
_SHOWS = 0.08  # a dependence that a look is to show
_SHOWS_NOTHING_BELOW = 0.2
_TOGETHER = 2  # deviations of a pair, over the fourth root of their number: see `depends`
_FEW_CHOOSE = Fraction(1, 40)


def forecast(study: Study) -> Mapping[str, str | int]:
    """Return the settings of a new study that its proposer leaves open."""
    if study.profile == "paper":
        return {}
    on = {"consistency": "on", "reuse": "on"}
    part = tables_part(study)
    parts = _STRUCTURE * part / (1 - part)
    fraction = look_part(study)
    if fraction is None:
        no_network = study.encoding == "binary" and not _holds_pairs(study)
        return {**on, "budget": f"1:1:1:{parts}"} | ({"degree": 0} if no_network else {})
    if not fraction:
        return {**on, "degree": 0}
    return {**on, "budget": _with_look(study, fraction, parts), "views": HALVES}


def consistent(study: Study) -> Mapping[str, str | int]:
    """Return the only setting that dp-ccbn leaves to a forecast."""
    return {} if study.profile == "paper" else {"consistency": "on"}


def look_part(study: Study) -> Fraction | None:
    """Return the look's part of the budget: 0 if it would show nothing, None if there is none."""
    facts = facts_of(study)
    many = any(has_many_values(attribute, facts) for attribute in study.schema.attributes)
    other = dict(study.settings).get("views", HALVES) != HALVES
    if study.encoding == "binary" or many or other:
        return None
    if len(facts.sizes) < 2:
        return Fraction(0)
    most = max(_LEAST_LOOK, int(_OF_SAVED * saved(facts) * _LOOKS))
    looks = [Fraction(part, _LOOKS) for part in range(_LEAST_LOOK, most + 1)]
    if shown(facts, looks[-1]) > _SHOWS_NOTHING_BELOW:
        return Fraction(0)
    return next((part for part in looks if shown(facts, part) <= _SHOWS), looks[-1])


def shown(facts: PublicFacts, part: Fraction) -> float:
    """Forecast the least dependence that a look shows: the root of the mean square over pairs."""
    width, cost = len(facts.sizes), facts.budget * part * (1 - FIRST_MARGINS)
    deviation = facts.deviation(cost, sensitivity.agreements(width + 1)) / facts.rows
    return _TOGETHER * deviation / sqrt(sqrt(comb(width, 2)))


def saved(facts: PublicFacts) -> float:
    """Forecast what blocks save of the noise in margins that histograms have."""
    width = len(facts.sizes)
    absolute = facts.absolute(facts.budget, sensitivity.histograms(width))
    error = margin_error(facts.sizes, [(a,) for a in range(width)]) / width
    alone = absolute * error / (2 * width * facts.rows)
    return 1 - margin_noise(facts, margin_blocks(facts)) / alone


def _with_look(study: Study, fraction: Fraction, parts: Fraction) -> str:
    """Return a budget in whole parts: the look's, and the rest."""
    update = choice = (1 - fraction) / (2 + parts)
    if len(study.members) > len(study.schema.sizes) - 1:
        choice = min(choice, _FEW_CHOOSE)
    phases = (fraction, choice, update, 1 - fraction - choice - update)
    unit = lcm(*(phase.denominator for phase in phases))
    return ":".join(str(int(phase * unit)) for phase in phases)


def tables_part(study: Study) -> Fraction:
    """Return the part of the budget that the tables of the network get."""
    sizes = Variables.of(study).sizes
    enough = median_high(sizes) ** _WIDE
    for part in (_PRINTED, _HALF):
        if _limit(study, part).cells >= enough:
            return part
    limit = _limit(study, _MOST)
    pairs = list(combinations(range(len(sizes)), 2))
    fitting = sum(limit.fits(sizes, a, (b,)) for a, b in pairs)
    return _MOST if 2 * fitting >= len(pairs) else _NEARLY_ALL


def _holds_pairs(study: Study) -> bool:
    """Return whether a table holds all bits of most pairs of attributes."""
    bits = [bit_count(size) for size in study.schema.sizes]
    most = _limit(study, tables_part(study)).parents + 1
    pairs = list(combinations(bits, 2))
    return 2 * sum(a + b <= most for a, b in pairs) >= len(pairs)


def _limit(study: Study, part: Fraction) -> FamilyLimit:
    """Return the limit of the network's tables if they get this part of the budget."""
    settings = replace(SubnSettings.of(study), degree=None)
    budget = study.method_promise.budget
    by = budget if settings.usefulness == "total" else budget * part
    return network_limit(Variables.of(study).sizes, study.rows, by, settings)
