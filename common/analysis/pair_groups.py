"""Every pair of columns in one of three groups, by what a release tells of it.

Where the published sums tell intervals by themselves, the groups are those of
`common.analysis.conclusions`: told well, told roughly, not measured. Elsewhere they are the
verdicts of `common.analysis.diagnostics`. The report, its heat map and `parley describe` show the
same groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.analysis.conclusions import WELL, Conclusions
from common.analysis.diagnostics import Diagnostics, Pair, PairFacts, PairVerdict


@dataclass(frozen=True, slots=True)
class PairGroup:
    """Pairs that may be used alike; the best group comes first."""

    name: str
    meaning: str
    pairs: Mapping[Pair, PairFacts]
    within: Mapping[Pair, float]  # half the width of the interval of a correlation, where known

    def why(self, pair: Pair) -> str:
        """Say how exactly a pair is known, and what of."""
        reason = self.pairs[pair].reason
        if pair not in self.within:
            return reason
        return f"a correlation within +-{self.within[pair]:.2f}; {reason}"


_BY_VERDICT = {
    PairVerdict.SAFE: "A released sum contains the pair's table, by all values or by at least "
    "eight groups of each column, and the rows follow it. Proportions of values within a group "
    "follow from the model.",
    PairVerdict.CARE: "The pair was counted in few groups or with much noise, or the rows do not "
    "follow its table, or they show no relation. The relation in the rows may be wrong.",
    PairVerdict.ABSENT: "The two columns were never counted together. Their relation in the rows "
    "follows from other pairs, or from nothing.",
}
_BY_WIDTH = {
    "told well": "A published sum tells the pair: the size of a relation is known, within the "
    "interval that `parley estimate` prints.",
    "told roughly": "A published sum tells the pair in few groups or with much noise: a relation "
    "may be smaller or larger than the rows show, and an interval is wide.",
    "not measured": "The two columns were never counted together. An interval is the whole range "
    "that the columns alone allow.",
}


def pair_groups(diagnostics: Diagnostics, concluded: Conclusions | None) -> list[PairGroup]:
    """Return the three groups; empty ones, too."""
    if concluded is None:
        of = {pair: facts.verdict.value for pair, facts in diagnostics.pairs.items()}
        meanings, within = {str(key): words for key, words in _BY_VERDICT.items()}, {}
    else:
        known = {precision.name: precision.within for precision in concluded.pairs}
        names = {pair: " and ".join(facts.names) for pair, facts in diagnostics.pairs.items()}
        within = {pair: known[name] for pair, name in names.items() if name in known}
        meanings, of = _BY_WIDTH, dict.fromkeys(diagnostics.pairs, "not measured")
        of |= {p: "told well" if wide <= WELL else "told roughly" for p, wide in within.items()}
    return [
        PairGroup(
            name,
            meaning,
            {pair: facts for pair, facts in diagnostics.pairs.items() if of[pair] == name},
            {pair: wide for pair, wide in within.items() if of[pair] == name},
        )
        for name, meaning in meanings.items()
    ]
