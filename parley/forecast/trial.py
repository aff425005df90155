"""A study tried in this process, on rows that stand in for the owners'.

The roles, the encryption and the noise are those of a deployment, so what a trial sends, computes
and pays is what the study would. Where the owners have more rows than a quick run can take, every
row of the stand-in counts as several: what matters for the error is noise relative to rows.

The stand-in is either a public table that the owners think is like theirs, or simulated rows for
any schema: drawn from a random Bayesian network over the schema's own domains. In schema order,
each attribute has up to two earlier ones as parents. A row's value is found in four steps:

1. every parent's value is replaced by its normal score: the standard normal quantile of the middle
   of its place among the attribute's values (after a shuffle of unordered values);
2. the scores, each with a random sign, are added up and divided by the root of their number;
3. z = dependence * that sum + sqrt(1 - dependence^2) * a standard normal draw;
4. the value is the quantile of the attribute's own marginal at the normal probability of z.

So the marginals do not depend on `dependence`: bells over ordered values, 1/rank over unordered
ones, one row in fifty `missing` or `other`. 0 makes attributes independent, 1 makes each a function
of its parents. The same seed makes the same rows. No real row is looked at.

People of a linked schema are drawn so, with the number of their events as one more attribute, and
so are events, whose parents may be columns of their person. After her first, an event is equal to
the one before with the probability `dependence`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from common.analysis.distances import (
    BOTH,
    EVENT,
    NEXT,
    PEOPLE,
    linked_distances,
    marginal_sets,
    total_variation,
)
from common.analysis.views import people_view
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.errors import InputError
from common.exchanges.sums import in_the_clear
from common.marginals import count
from common.methods.registry import method_of, run_of
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes, Schema
from common.schema.attribute import Attribute
from common.schema.codes import NO_GROUPS, Groups
from common.schema.linked import LinkedCodes
from common.study.document import Study
from common.wording import many
from parley.simulation.in_process import Run, run_study

DEPENDENCE = 0.5
_MOST_PARENTS = 2
_SPECIAL = 0.02  # the share of `other`, and of `missing`


def simulated(schema: Schema, rows: int, *, seed: int, dependence: float = DEPENDENCE) -> Codes:
    """Draw rows of a random network over the schema's domains."""
    if not 0 <= dependence <= 1:
        raise InputError(f"--dependence {dependence}: from 0 to 1")
    rng = np.random.default_rng(seed)
    if schema.events is None:
        return _drawn(schema, rows, rng, dependence, [])
    scores: list[NDArray[np.float64]] = []
    drawn = _drawn(people_view(schema).schema, rows, rng, dependence, scores)
    numbers = drawn.columns[-1].astype(np.int64)
    of_person = np.repeat(np.arange(rows), numbers)
    of_events = [score[of_person] for score in scores]
    events = _drawn(schema.of_events, len(of_person), rng, dependence, of_events)
    anew = rng.random(len(of_person)) >= dependence
    anew[(np.cumsum(numbers) - numbers)[numbers > 0]] = True
    events = events.take(np.maximum.accumulate(np.where(anew, np.arange(len(anew)), 0)))
    people = drawn.select(range(drawn.width - 1))
    return LinkedCodes(people.columns, people.sizes, events, numbers, schema.events.most)


def _drawn(
    schema: Schema,
    rows: int,
    rng: np.random.Generator,
    dependence: float,
    scores: list[NDArray[np.float64]],
) -> Codes:
    """Draw columns, whose normal scores are put after those of columns before them."""
    columns: list[NDArray[np.int64]] = []
    for attribute in schema.attributes:
        law = _law(attribute, rng)
        shuffle = (
            np.arange(attribute.size) if attribute.ordered else rng.permutation(attribute.size)
        )
        parents = rng.permutation(len(scores))[: rng.integers(1, _MOST_PARENTS + 1)]
        pull = np.zeros(rows)
        for parent in parents:
            pull += rng.choice((-1.0, 1.0)) * scores[parent] / np.sqrt(len(parents))
        strength = dependence if len(parents) else 0.0
        height = ndtr(strength * pull + np.sqrt(1 - strength**2) * rng.standard_normal(rows))
        ladder = np.cumsum(law[shuffle])
        place = np.minimum(np.searchsorted(ladder, height, side="right"), attribute.size - 1)
        middles = ladder - law[shuffle] / 2
        scores.append(ndtri(np.clip(middles, 1e-9, 1 - 1e-9))[place])
        columns.append(shuffle[place])
    return Codes.from_columns(columns, schema.sizes)


def _law(attribute: Attribute, rng: np.random.Generator) -> NDArray[np.float64]:
    special = int(attribute.other) + int(attribute.missing)
    usual = attribute.size - special
    if attribute.ordered:
        centre, width = rng.uniform(0.3, 0.7), rng.uniform(0.15, 0.3)
        middles = (np.arange(usual) + 0.5) / max(usual, 1)
        law = np.exp(-(((middles - centre) / width) ** 2) / 2)
    else:
        law = rng.permutation(1 / (1 + np.arange(usual)))
    if usual == 0:
        return np.full(special, 1 / special)
    law = law / law.sum() * (1 - special * _SPECIAL)
    return np.concatenate([law, np.full(special, _SPECIAL)])


def public_rows(table: Codes, rows: int, *, seed: int) -> Codes:
    """Pick at most `rows` rows of a public table at random; InputError if there are none."""
    if table.rows < 1:
        raise InputError("--stand-in: the table has no rows. Name another one")
    picked = np.random.default_rng(seed).permutation(table.rows)[:rows]
    return table.take(np.sort(picked))


ORDERS = (2, 3)
TRIPLES = f"{ORDERS[-1]}-way"
_QUIET = 10  # of epsilon, for each attribute: the noise of a count is less than a row
_MOST_SYNTHETIC = 300_000
_KINDS = (PEOPLE, BOTH, EVENT, NEXT)  # of pairs of linked tables; the other kinds are among them

Distances: TypeAlias = Mapping[str, float]  # by what is compared: 2-way, or kinds of pairs


@dataclass(slots=True)
class StandInRows:
    """A party's rows, made of fewer ones that each count as several."""

    table: Codes  # the rows
    repeated: NDArray[np.int64]  # how many rows each of them counts as
    # How much longer counting every row would have taken.
    extra_s: float = field(default=0.0, init=False)

    @property
    def rows(self) -> int:
        return int(self.repeated.sum())

    @property
    def digest(self) -> str:
        """Stand for rows that are made up: a trial commits as owners would."""
        return "made up"

    def count(
        self, sets: Sequence[tuple[int, ...]], groups: Groups = NO_GROUPS
    ) -> list[NDArray[np.int64]]:
        """Count the contingency table of every attribute set; see `PartyRows`."""
        started = time.perf_counter()
        shown = self.table.showing(sets)
        tables = count(shown, sets, groups=groups, weights=self.repeated)
        seconds = time.perf_counter() - started
        self.extra_s += seconds * max(0, self.rows / self.table.rows - 1)
        return tables

    def codes(self) -> Codes:
        return self.table.take(np.repeat(np.arange(self.table.rows), self.repeated))

    def chunks(self) -> Iterator[Codes]:
        """Yield all rows, in as many parts as a row counts for."""
        for part in range(int(self.repeated.max())):
            yield self.table.take(np.flatnonzero(self.repeated > part))


class Trial:
    """Stand-in rows, as many as a study has or fewer, dealt out to its parties; runs on them."""

    def __init__(self, study: Study, stand_in: Codes, seed: int) -> None:
        self._whole, self._seed = stand_in, seed
        if stand_in.rows < len(study.members):
            raise InputError(
                f"a stand-in of {many(stand_in.rows, study.schema.row)} is too short for "
                f"{many(len(study.members), 'party')}"
            )
        self._tables = _dealt_out(study, stand_in, seed)
        source = SeededRandomSource(f"{seed}/identities")
        self._identities = {name: Identity.generate(source) for name in self._tables}
        members = tuple(
            replace(member, identity=self._identities[member.name].public)
            for member in study.members
        )
        self.study = replace(study, members=members, signature=None)  # signed as it was proposed
        self._sets = {
            order: marginal_sets(stand_in.width, order=order)
            for order in ORDERS
            if order <= stand_in.width
        }
        count(stand_in, self._sets.get(2, ()))  # loads the compiled kernels before time is taken

    def run(self, epsilon: Fraction, number: int = 0) -> Run:
        """Run the study; only the first run encrypts, as that changes no sum."""
        ring = self.study.aggregation is Aggregation.PAILLIER
        study = in_the_clear(self.study) if ring and number else self.study
        return self._run(replace(study, epsilon=epsilon), number)

    def run_floor(self, epsilon: Fraction, number: int = 0) -> Run:
        """Run a study of the same parties that publishes every column by itself."""
        clear = in_the_clear(self.study)
        floor = replace(
            clear, method="floor", settings=(), method_version=0, analyses=(), others=None
        )
        return self._run(replace(floor, epsilon=epsilon), number)

    def _run(self, study: Study, number: int) -> Run:
        source = SeededRandomSource(f"{self._seed}/{study.method}/{study.epsilon}/{number}")
        tables = {name: StandInRows(*rows) for name, rows in self._tables.items()}
        run = run_study(study, run_of, tables, self._identities, source=source)
        return replace(
            run,
            seconds={name: run.seconds[name] + rows.extra_s for name, rows in tables.items()},
        )

    def distances(self, runs: Sequence[Run]) -> Distances:
        """Average distance of the marginals of each order, over some runs."""
        rows = min(self.study.output_rows or self.study.rows, _MOST_SYNTHETIC)
        by_kind: dict[str, list[float]] = {}
        for number, run in enumerate(runs):
            source = SeededRandomSource(f"{self._seed}/rows/{number}")
            for kind, distance in self._apart(run.model.sample(rows, source)).items():
                by_kind.setdefault(kind, []).append(distance)
        return {kind: fmean(values) for kind, values in by_kind.items()}

    def _apart(self, synthetic: Codes) -> Distances:
        """Compare rows with the stand-in; people with their events, kind by kind of pairs."""
        whole, schema = self._whole, self.study.schema
        if not method_of(self.study).publishes_rows:
            return {}
        if isinstance(whole, LinkedCodes) and isinstance(synthetic, LinkedCodes):
            kinds = linked_distances(whole, synthetic, schema)
            return {kind: distances.average for kind, distances in kinds.items() if kind in _KINDS}
        return {
            f"{order}-way": fmean(total_variation(whole, synthetic, sets))
            for order, sets in self._sets.items()
        }

    @property
    def quiet(self) -> Fraction:
        """An epsilon that adds no noise to speak of."""
        return Fraction(_QUIET * len(self.study.schema.every_name))


def _dealt_out(study: Study, rows: Codes, seed: int) -> dict[str, tuple[Codes, NDArray[np.int64]]]:
    """Deal the stand-in out to the parties at random; say how often each row counts."""
    order = np.random.default_rng(seed).permutation(rows.rows)
    spare = rows.rows - len(study.members)
    dealt, begin, before = {}, 0, 0
    for place, member in enumerate(study.members, start=1):
        before += member.rows
        end = place + round(Fraction(spare * before, study.rows))
        part = rows.take(np.sort(order[begin:end]))
        times, more = divmod(member.rows, part.rows)
        dealt[member.name] = part, times + (np.arange(part.rows) < more)
        begin = end
    return dealt
