"""DistDiffGen: two owners publish one table for one classification task [Alhadidi12].

Every attribute but the target starts as one group of all its values. A number of times the group
whose division tells most about the target is replaced by its children in the attribute's hierarchy.
Then the rows in every combination of groups and target values are counted under noise, once, and
synthetic rows are drawn from those counts: uniformly within a group.

What the paper leaves open, or needs and Parley does not have, and what is done here:

* It chooses each division by the exponential mechanism on both owners' rows together, inside a
  two-party computation of logarithms or maxima. Here the owners choose in turn, each on its own
  rows. Choices on other rows do not add up: each owner makes half of them, at twice the epsilon
  each. With rows dealt out at random a score is half as large and its epsilon twice as large, so
  the law of a choice is about that of the two-party computation.
* Division points of numbers cost it a further draw each. Here they are those of the binary tree
  over the schema's bins, which is public.
* It does not bound the number of groups. Here a division that would take the counted cells past
  `most_cells` is not offered, and the search ends when none is left; what is then unspent of the
  choices goes to the counts.

    [distdiffgen]
    target = "salary"           # the attribute to be predicted
    divisions = 10              # h of the paper
    score = "max"               # or "gini"
    budget = "1:1"              # divisions : counts
    most_cells = 1048576

[Alhadidi12] Alhadidi, Mohammed, Fung, Debbabi: Secure distributed framework for achieving
epsilon-differential privacy, PETS 2012; after Mohammed, Chen, Fung, Yu: Differentially private data
release for data mining, KDD 2011 (DiffGen).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.errors import InputError, RemoteProtocolError
from common.privacy import sensitivity
from common.privacy.budget import split
from common.privacy.exponential import exponential_mechanism
from common.privacy.laplace import DiscreteLaplace
from common.privacy.randomness import RandomSource, below, uniforms
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.hierarchy import Node
from common.study.document import Study
from common.study.method import Decision, Method
from common.study.requests import Attributes, Counts, PartyRows, TableShape
from common.study.script import Fit, Script, chosen, summed
from common.study.settings import SettingsReader
from common.study.steps import ChoiceStep, SumStep

SCORES = ("max", "gini")
_MOST_CELLS, _LARGEST_CELLS = 1 << 20, 1 << 24
_MOST_DIVISIONS = 200

Cut = tuple[Node, ...]  # the groups of one attribute
Division = tuple[int, int]  # an attribute, and the place of a group in its cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a study chooses about DistDiffGen; see the module."""

    target: int
    divisions: int
    score: str
    budget: tuple[Fraction, ...]
    most_cells: int

    @classmethod
    def of(cls, study: Study) -> Settings:
        """Read the settings of a study.

        Raises:
            InputError: a setting is missing, unknown, or is not one that can be had.
        """
        read = SettingsReader(study)
        name = read.text("target")
        if name not in study.schema.names:
            raise InputError(f"[distdiffgen] target: there is no attribute {name!r}")
        found = cls(
            target=study.schema.position(name),
            divisions=read.whole("divisions", 10, most=_MOST_DIVISIONS),
            score=read.word("score", "max", SCORES),
            budget=read.parts("budget", "1:1", 2),
            most_cells=read.whole("most_cells", _MOST_CELLS, least=4, most=_LARGEST_CELLS),
        )
        read.finish()
        return found


@dataclass(frozen=True, eq=False)
class Cuts:
    """The groups of every attribute; of the target, its values.

    Attributes:
        groups: one cut per attribute.
        target: the attribute that is predicted.
    """

    groups: tuple[Cut, ...]
    target: int

    @classmethod
    def start(cls, schema: Schema, target: int) -> Cuts:
        """Everything in one group, but for the target."""
        roots = [attribute.hierarchy.root for attribute in schema.attributes]
        values = tuple(Node(str(code), code=code) for code in range(schema.sizes[target]))
        cuts: list[Cut] = [(root,) for root in roots]
        cuts[target] = values
        return cls(tuple(cuts), target)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many groups each attribute has."""
        return tuple(map(len, self.groups))

    def divisions(self, most_cells: int) -> list[Division]:
        """Every group that can be divided without passing the cells, in order."""
        cells = prod(self.shape)
        return [
            (attribute, place)
            for attribute, cut in enumerate(self.groups)
            for place, node in enumerate(cut)
            if attribute != self.target
            and node.children
            and cells // len(cut) * (len(cut) - 1 + len(node.children)) <= most_cells
        ]

    def divided(self, division: Division) -> Cuts:
        """The groups with one of them replaced by its children."""
        attribute, place = division
        cut = self.groups[attribute]
        below_it = (*cut[:place], *cut[place].children, *cut[place + 1 :])
        groups = (*self.groups[:attribute], below_it, *self.groups[attribute + 1 :])
        return Cuts(groups, self.target)

    def maps(self, sizes: Sequence[int]) -> list[NDArray[np.intp]]:
        """For every attribute the group of each code."""
        found = []
        for cut, size in zip(self.groups, sizes, strict=True):
            groups = np.zeros(size, np.intp)
            for place, node in enumerate(cut):
                groups[node.codes()] = place
            found.append(groups)
        return found

    @property
    def canonical(self) -> bytes:
        """The groups in full."""
        return frame([frame([frame(node.codes()) for node in cut]) for cut in self.groups])


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionChoice:
    """One division, chosen by one party on its own rows.

    Attributes:
        cuts: the groups so far.
        score: "max" or "gini".
        most_cells: which the division must not pass.
        rows: of this party; public.
        epsilon: of the draw.
    """

    cuts: Cuts
    score: str
    most_cells: int
    rows: int
    epsilon: Fraction

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Choose by the exponential mechanism; the division is published."""
        candidates = self.cuts.divisions(self.most_cells)
        attributes = sorted({attribute for attribute, _ in candidates})
        counted = data.count([(attribute, self.cuts.target) for attribute in attributes])
        tables = dict(zip(attributes, counted, strict=True))
        children = [self.cuts.groups[a][place].children for a, place in candidates]
        by_class = [
            np.array([tables[a][child.codes()].sum(axis=0) for child in own])
            for (a, _), own in zip(candidates, children, strict=True)
        ]
        if self.score == "max":
            scores = np.array([int(table.max(axis=1).sum()) for table in by_class])
            index = exponential_mechanism(
                scores, sensitivity=1, epsilon=self.epsilon, source=source
            )
        else:
            cells = max(table.size for table in by_class)
            index = exponential_mechanism(
                np.array([purity(table) for table in by_class]),
                sensitivity=2,
                epsilon=self.epsilon,
                source=source,
                score_error=Fraction(4 * cells * self.rows, 1 << 50),
            )
        return _encode(candidates[index])

    def without_rows(self, source: RandomSource) -> bytes:
        """Any division."""
        candidates = self.cuts.divisions(self.most_cells)
        return _encode(candidates[below(len(candidates), source)])

    def check(self, payload: bytes) -> None:
        """Refuse what is no division that was offered."""
        self.division(payload)

    def division(self, payload: bytes) -> Division:
        """The division in a payload.

        Raises:
            RemoteProtocolError: it was not offered.
        """
        for candidate in self.cuts.divisions(self.most_cells):
            if _encode(candidate) == payload:
                return candidate
        raise RemoteProtocolError("the division was not among the candidates")

    def links(self, payload: bytes) -> Sequence[Attributes]:
        """The divided attribute and the target."""
        return [(self.division(payload)[0], self.cuts.target)]

    @property
    def canonical(self) -> bytes:
        """The choice in full."""
        return frame(
            (
                "division",
                self.score,
                self.most_cells,
                self.rows,
                self.cuts.target,
                self.cuts.canonical,
                frame(self.epsilon.as_integer_ratio()),
            )
        )


def purity(table: NDArray[np.int64]) -> float:
    """Minus the rows times the Gini impurity of each group: sum of n_c^2 / n, minus n.

    One row added to a group of n rows raises n - sum of n_c^2 / n by 0 to 2, whichever its class;
    one row replaced moves the score by at most 2.
    """
    rows = table.sum(axis=1)
    used = rows > 0
    squares = (table[used].astype(np.float64) ** 2).sum(axis=1)
    return float((squares / rows[used]).sum() - rows.sum())


@dataclass(frozen=True, eq=False)
class LeafRequest:
    """How many rows are in every combination of groups."""

    cuts: Cuts
    sizes: tuple[int, ...]

    unit: ClassVar[int] = 1

    @property
    def shown(self) -> Sequence[TableShape]:
        """The one table."""
        return self.tables

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        """One table of all attributes that were divided, and the target."""
        used = [a for a, groups in enumerate(self.cuts.shape) if groups > 1]
        shape = tuple(self.cuts.shape[a] for a in used)
        grouped = tuple(self.cuts.shape[a] < self.sizes[a] for a in used)
        return (TableShape(tuple(used), shape, grouped),)

    @property
    def links(self) -> Sequence[Attributes]:
        """The attributes that are counted together."""
        return (self.tables[0].variables,)

    @property
    def cells(self) -> int:
        """All combinations."""
        return prod(self.cuts.shape)

    @property
    def canonical(self) -> bytes:
        """The groups and the sizes."""
        return frame(("leaves", frame(self.sizes), self.cuts.canonical))

    def limit(self, rows: int) -> int:
        """Return the rows: a cell counts at most all of them."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """Count, exactly."""
        codes = data.codes()
        places = np.zeros(codes.rows, np.int64)
        for column, groups in zip(codes.columns, self.cuts.maps(self.sizes), strict=True):
            places = places * (int(groups.max()) + 1) + groups[column]
        return np.bincount(places, minlength=self.cells).astype(np.int64)


@dataclass(frozen=True, eq=False)
class LeafModel:
    """Noisy counts of combinations of groups; rows are uniform within a combination.

    Attributes:
        cuts: the groups of every attribute.
        sizes: how many values each attribute has.
        counts: an axis for every attribute of more than one group.
    """

    cuts: Cuts
    sizes: tuple[int, ...]
    counts: NDArray[np.int64]

    arrows: ClassVar[None] = None

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw combinations in proportion to their counts, none below zero, then values."""
        weights = np.maximum(self.counts, 0).astype(np.float64).ravel()
        if not weights.any():
            weights[:] = 1.0
        ladder = np.cumsum(weights)
        places = np.searchsorted(ladder, uniforms(rows, source) * ladder[-1], side="right")
        drawn = iter(np.unravel_index(np.minimum(places, weights.size - 1), self.counts.shape))
        whole = np.zeros(rows, np.intp)
        columns = []
        for cut in self.cuts.groups:
            groups = next(drawn) if len(cut) > 1 else whole
            widths = np.array([len(node.codes()) for node in cut])
            flat = np.array([code for node in cut for code in node.codes()])
            starts = np.cumsum(widths) - widths
            within = (uniforms(rows, source) * widths[groups]).astype(np.intp)
            columns.append(flat[starts[groups] + np.minimum(within, widths[groups] - 1)])
        return Codes.from_columns(columns, self.sizes)

    def as_json(self) -> dict[str, object]:
        """The groups and their counts."""
        return {
            "format": "parley leaves 1",
            "target": self.cuts.target,
            "groups": [[node.codes() for node in cut] for cut in self.cuts.groups],
            "counts": self.counts.ravel().tolist(),
        }


def distdiffgen(study: Study) -> Script[Fit]:
    """Divisions in turn, then one noisy count of every combination."""
    settings, sizes = Settings.of(study), tuple(study.schema.sizes)
    epsilon = study.method_promise.budget
    choice_epsilon, _ = split(epsilon, settings.budget)
    cuts = Cuts.start(study.schema, settings.target)
    spent = dict.fromkeys((member.name for member in study.members), Fraction(0))
    for number in range(settings.divisions):
        if not cuts.divisions(settings.most_cells):
            break
        member = study.members[number % 2]
        turns = (settings.divisions + 1 - number % 2) // 2
        choice = DivisionChoice(
            cuts=cuts,
            score=settings.score,
            most_cells=settings.most_cells,
            rows=member.rows,
            epsilon=choice_epsilon / turns,
        )
        step = ChoiceStep(
            name=f"division {number + 1} of {settings.divisions} by {member.name}",
            phase="divisions",
            party=member.name,
            choice=choice,
            epsilon=choice.epsilon,
            mechanism="exponential mechanism",
        )
        cuts = cuts.divided(choice.division((yield from chosen(step))))
        spent[member.name] += choice.epsilon
    moved = sensitivity.histograms(1)
    (counts,) = yield from summed(
        SumStep(
            name="counts",
            phase="counts",
            parties=tuple(spent),
            request=LeafRequest(cuts, sizes),
            sensitivity=moved,
            law=DiscreteLaplace.costing(epsilon - max(spent.values()), sensitivity=moved),
        )
    )
    return partial(LeafModel, cuts, sizes, counts)


def decisions(study: Study) -> list[Decision]:
    """The settings."""
    settings = Settings.of(study)
    return [
        Decision("target", study.schema.names[settings.target]),
        Decision("divisions", f"at most {settings.divisions}, by {settings.score}"),
        Decision("counted cells", f"at most {settings.most_cells:,}"),
    ]


def _encode(division: Division) -> bytes:
    return json.dumps(division, separators=(",", ":")).encode()


METHOD = Method(
    name="distdiffgen",
    summary="groups for one classification task, two owners",
    script=distdiffgen,
    encodings=("own",),
    single_turns=True,
    parties=2,
    decisions=decisions,
    place=6,
)
