"""Phase 2: the parties choose a first network, each a few attributes, on its own rows [Su16, VI-A].

The first party puts a random root. Every further attribute is chosen with its
parents by the exponential mechanism, whose score is the mutual information in the chooser's table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from common.bayes.privbayes.scores import Score, Scoring, mutual_information, scored_by_shape
from common.crypto.framing import frame
from common.errors import RemoteProtocolError
from common.exchanges.choice import choice_step
from common.marginals import BinarySubsets
from common.methods.dp_subn.decisions import FamilyLimit, candidate_families
from common.methods.network_model import Structure, Variables
from common.privacy.exponential import exponential_mechanism
from common.privacy.randomness import RandomSource, below
from common.study.requests import Attributes, PartyRows
from common.study.script import Script, chosen

_LONGEST_PAIR = 192  # characters of one pair: a child and at most sixteen parents


def turns_of_attributes(*, attributes: int, parties: int) -> list[int]:
    """Return for how many attributes each party chooses parents.

    All but the root need a choice: each party makes floor((d-1)/K), the last what is left. (The
    paper divides d by K and does not say whether the root counts; so every party has a choice to
    make as long as there are choices enough.) With more parties than choices the first make one
    each: spread out, every choice has a party's whole budget of the phase, where the formula
    would leave all of them to the last.
    """
    choices = attributes - 1
    if parties > choices:
        return [1] * choices + [0] * (parties - choices)
    even = choices // parties
    return [even] * (parties - 1) + [choices - even * (parties - 1)]


def printed_turns(*, attributes: int, parties: int) -> list[int]:
    """Return how many attributes each party takes, the root among them [Su16, VI-A, as printed].

    Every party takes floor(d/K), the last what is left: with K > d that is all of them.
    """
    even = attributes // parties
    return [even] * (parties - 1) + [attributes - even * (parties - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChoice:
    """One party's turn: `take` attributes get their parents.

    Each of the draws costs an equal part of `epsilon`, so the turn costs at most `epsilon`. If
    nothing is placed yet the turn begins with a root, drawn uniformly: it depends on no row.

    Attributes:
        placed: what has its parents already, in the order of placing.
        take: how many attributes to place.
        parts: into how many parts epsilon is divided; a part for each draw if 0. The paper divides
            by the attributes of a turn, of which the first turn's root needs no draw.
    """

    variables: Variables
    placed: Attributes
    take: int
    limit: FamilyLimit
    rows: int
    epsilon: Fraction
    parts: int = 0

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Place the attributes; the pairs are published."""
        sizes = self.variables.sizes
        scorer = _Scorer(self.variables.rows(data), sizes, self.rows)
        placed = list(self.placed)
        families: list[Attributes] = []
        if not placed:
            families.append((below(len(sizes), source),))
            placed.append(families[0][0])
        for _ in range(self.take):
            candidates = candidate_families(sizes, placed, self.limit)
            part = self.epsilon / (self.parts or self.take)
            families.append(scorer.choose(candidates, part, source))
            placed.append(families[-1][0])
        return _encode(families)

    def without_rows(self, source: RandomSource) -> bytes:
        """Place attributes in random order, each with random parents until no further one fits."""
        sizes, placed = self.variables.sizes, list(self.placed)
        unplaced = [a for a in range(len(sizes)) if a not in placed]
        families: list[Attributes] = []
        for _ in range(self.take if placed else self.take + 1):
            child = unplaced.pop(below(len(unplaced), source))
            parents: list[int] = []
            for place in np.argsort(source.words(len(placed))):
                if self.limit.fits(sizes, child, [*parents, placed[place]]):
                    parents.append(placed[place])
            families.append((child, *sorted(parents)))
            placed.append(child)
        return _encode(families)

    def check(self, payload: bytes) -> None:
        self.families(payload)

    def families(self, payload: bytes) -> list[Attributes]:
        """Return the chosen families, child first; refuse what was not a candidate."""
        families = _decode(payload, self.take if self.placed else self.take + 1)
        placed = list(self.placed)
        for family in families:
            child, *parents = family
            known = 0 <= child < len(self.variables.sizes) and child not in placed
            if not known or parents != sorted(set(parents) & set(placed)):
                raise RemoteProtocolError(f"the pair {family} does not fit what is placed")
            if not self.limit.maximal(self.variables.sizes, child, parents, placed):
                raise RemoteProtocolError(f"the pair {family} was not among the candidates")
            placed.append(child)
        return families

    def links(self, payload: bytes) -> Sequence[Attributes]:
        return self.families(payload)

    @property
    def canonical(self) -> bytes:
        return frame(
            (
                "parents by mutual information",
                self.take,
                self.parts,
                frame(self.placed),
                self.limit.parents,
                self.limit.cells,
                self.rows,
                frame(self.variables.sizes),
                frame(self.epsilon.as_integer_ratio()),
            )
        )


def initial_structure(
    variables: Variables,
    parties: Sequence[tuple[str, int]],
    limit: FamilyLimit,
    epsilon: Fraction,
    *,
    as_printed: bool = False,
) -> Script[Structure]:
    """Let every party in turn place its part of the attributes.

    Parties are names and row counts. A party's choices together cost it at most epsilon.
    `as_printed` shares out the attributes, and divides epsilon, as in the paper.
    """
    placed: list[int] = []
    parents: dict[int, Attributes] = {}
    deal = printed_turns if as_printed else turns_of_attributes
    turns = deal(attributes=len(variables.sizes), parties=len(parties))
    for (name, rows), take in zip(parties, turns, strict=True):
        if not take:
            continue
        root = as_printed and not placed  # one of the attributes of the turn, and needs no draw
        choice = PairChoice(
            variables=variables,
            placed=tuple(placed),
            take=take - root,
            limit=limit,
            rows=rows,
            epsilon=epsilon,
            parts=take if as_printed else 0,
        )
        step = choice_step(
            name=f"initial structure by {name}",
            phase="initial structure",
            party=name,
            choice=choice,
            epsilon=epsilon if choice.take else Fraction(0),
            mechanism="exponential mechanism",
        )
        for child, *chosen_parents in choice.families((yield from chosen(step))):
            placed.append(child)
            parents[child] = tuple(chosen_parents)
    return tuple(parents[child] for child in range(len(variables.sizes)))


class _Scorer:
    """Scores of families on one party's rows. Secret."""

    def __init__(self, data: PartyRows, sizes: tuple[int, ...], rows: int) -> None:
        self._data, self._sizes = data, sizes
        self._scoring = Scoring(Score.MUTUAL_INFORMATION, rows)
        self._subsets: dict[int, BinarySubsets] = {}  # by the length of the families
        self._known: dict[Attributes, float] = {}

    def choose(
        self, candidates: Sequence[Attributes], epsilon: Fraction, source: RandomSource
    ) -> Attributes:
        """Choose one family, by the exponential mechanism on n * I(child; parents)."""
        if set(self._sizes) == {2}:
            scores = self._binary_scores(np.array(candidates, dtype=np.intp))
            largest, binary = 2 ** len(candidates[0]), True
        else:
            scores = self._general_scores(candidates)
            sizes = ([self._sizes[a] for a in family] for family in candidates)
            shapes = [(child, prod(parents)) for child, *parents in sizes]
            largest = max(child * parents for child, parents in shapes)
            # By public sizes: which values occur in the table is secret.
            binary = all(min(shape) <= 2 for shape in shapes)
        index = exponential_mechanism(
            scores,
            sensitivity=self._scoring.sensitivity(binary=binary),
            epsilon=epsilon,
            source=source,
            score_error=self._scoring.error(largest),
        )
        return candidates[index]

    def _binary_scores(self, families: NDArray[np.intp]) -> NDArray[np.float64]:
        """Score binary candidates, which all have as many parents: one array, no dictionary."""
        number, width = families.shape
        if width not in self._subsets:
            self._subsets[width] = BinarySubsets(self._data.codes(), width)
        tables = self._subsets[width].tables(families)
        return mutual_information(tables.reshape(number, 2, -1))

    def _general_scores(self, candidates: Sequence[Attributes]) -> NDArray[np.float64]:
        """Score families, each counted once although it is a candidate again in the next round."""
        families = [family for family in candidates if family not in self._known]
        tables = self._data.count(families)
        values = scored_by_shape(tables, mutual_information)
        self._known.update(zip(families, values, strict=True))
        return np.array([self._known[family] for family in candidates])


def _encode(families: Sequence[Attributes]) -> bytes:
    pairs = [[child, parents] for child, *parents in families]
    return json.dumps(pairs, separators=(",", ":")).encode()


def _decode(payload: bytes, pairs: int) -> list[Attributes]:
    """Return the families in a payload; only the bytes that `_encode` writes are accepted."""
    if len(payload) > _LONGEST_PAIR * (pairs + 1):
        raise RemoteProtocolError(f"{pairs} pairs cannot take {len(payload)} bytes")
    try:
        families = [(int(child), *map(int, parents)) for child, parents in json.loads(payload)]
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise RemoteProtocolError("the choice is not a list of pairs") from None
    if len(families) != pairs or _encode(families) != payload:
        raise RemoteProtocolError(f"the choice is not a list of {pairs} pairs")
    return families
