"""What a new study of dp-subn or dp-ccbn says of its estimates: forecast from public facts alone.

A proposer writes the result into the settings of the study, so owners agree on plain values and
no later version can read them differently. A study without these settings is estimated as the
paper prints it, and so is profile `paper`.

**The split.** Phases 1 to 3 find a structure, phase 4 fills it. How much a structure can hold is
public: usefulness limits the cells of a table, by the part of epsilon that the tables get. While
tables hold few attributes there is little to choose, and budget for choosing is lost; once they
hold four, a better structure is worth more than larger tables. The tables get the least of

* 1/4, the printed split, if a table then holds four attributes of median size,
* 1/2, if it does so then,
* 7/10, if a table then holds most pairs of attributes, and
* 9/10 in any other case.

**No network.** In bits, a network must also hold each attribute together. If no table holds most
pairs of attributes in full, a network of bits is forecast to be worse than the columns by
themselves: the degree is 0, and all of the budget buys histograms of the attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from statistics import median_high

from common.methods.dp_subn.decisions import FamilyLimit, Settings, network_limit
from common.methods.network_model import Variables
from common.schema.codes import bit_count
from common.study.document import Study

_STRUCTURE = 3  # phases that find a structure, one part of the budget each
_PRINTED, _HALF, _MOST, _NEARLY_ALL = (
    Fraction(1, 4), Fraction(1, 2), Fraction(7, 10), Fraction(9, 10),
)  # fmt: skip
_WIDE = 4  # attributes of median size in a table


def forecast(study: Study) -> Mapping[str, str | int]:
    """Return the settings of a new study that its proposer leaves open."""
    if study.profile == "paper":
        return {}
    part = tables_part(study)
    parts = _STRUCTURE * part / (1 - part)
    found: dict[str, str | int] = {"budget": f"1:1:1:{parts}", "consistency": "on", "reuse": "on"}
    if study.encoding == "binary" and not _holds_pairs(study):
        found["degree"] = 0
    return found


def consistent(study: Study) -> Mapping[str, str | int]:
    """Return the only setting that dp-ccbn leaves to a forecast."""
    return {} if study.profile == "paper" else {"consistency": "on"}


def tables_part(study: Study) -> Fraction:
    """Return the part of the budget that the tables of the network get."""
    sizes = Variables.of(study).sizes
    enough = median_high(sizes) ** _WIDE
    for part in (_PRINTED, _HALF):
        if _limit(study, part).cells >= enough:
            return part
    limit = _limit(study, _MOST)
    pairs = list(combinations(range(len(sizes)), 2))
    held = sum(limit.fits(sizes, a, (b,)) for a, b in pairs)
    return _MOST if 2 * held >= len(pairs) else _NEARLY_ALL


def _holds_pairs(study: Study) -> bool:
    """Return whether a table holds all bits of most pairs of attributes."""
    bits = [bit_count(size) for size in study.schema.sizes]
    most = _limit(study, tables_part(study)).parents + 1
    pairs = list(combinations(bits, 2))
    return 2 * sum(a + b <= most for a, b in pairs) >= len(pairs)


def _limit(study: Study, part: Fraction) -> FamilyLimit:
    """Return the limit of the network's tables if they get this part of the budget."""
    settings = replace(Settings.of(study), degree=None)
    budget = study.method_promise.budget
    by = budget if settings.usefulness == "total" else budget * part
    return network_limit(Variables.of(study).sizes, study.rows, by, settings)
