"""Attack a release with an owner's own rows: what could a reader learn about them?

Each attack is made on rows of the study and on rows that were held back from it, which are drawn
like the others. What it reaches on the first beyond the second is what the release gives away; the
second alone is what the population gives away. Beside both stands what epsilon allows
(`attacks_bounds`).

The figures come from real rows without noise: they are for the owner's eyes. An attack that finds
nothing proves nothing, because a better one may exist; the guarantee is the proof. An attack that
finds more than epsilon allows proves that the release does not keep what it states, or that the
held-back rows are not like the others: a control without the release tells the second.

All bounds hold together with 95 % confidence: each has its part of the 5 % (Bonferroni).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.analysis.attacks_bounds import Guarantee, Rate, epsilon_at_least
from common.analysis.attacks_scores import (
    Scores,
    closeness,
    density_ratio,
    equal_rows,
    guesses,
    telling_apart,
    unique_in,
)
from common.errors import InputError
from common.privacy.randomness import RandomSource, SeededRandomSource, permutation
from common.schema import Codes, Schema
from common.schema.codes import concatenate
from common.wording import Reporter, silent

CONFIDENCE = 0.95
LEAST_ROWS = 100
MOST_TARGETS = 2_000
MOST_ROWS = 10_000  # synthetic and reference rows that an attack compares targets with
MOST_GUESSED = 4  # attributes that are guessed
_MOST_VALUES = 20  # of an attribute that is guessed
_STATEMENTS = 1_000


class AttackVerdict(enum.StrEnum):
    """What an attack found."""

    NOTHING = "nothing"  # no significant difference between rows of the study and others
    WITHIN = "within"  # a significant difference, no larger than epsilon allows
    BEYOND = "beyond"  # more than epsilon allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack, on rows of the study and on others."""

    name: str
    saying: str  # what the two rates are, for people, with {members} and {others} in place
    members: Rate  # on rows of the study
    others: Rate  # on rows that were held back
    allowed: float  # the highest rate on rows of the study that epsilon allows, beside `others`

    @property
    def advantage(self) -> float:
        return self.members.value - self.others.value

    @property
    def verdict(self) -> AttackVerdict:
        if self.members.low > self.allowed:
            return AttackVerdict.BEYOND
        significant = self.members.low > self.others.high
        return AttackVerdict.WITHIN if significant else AttackVerdict.NOTHING

    def words(self, guarantee: Guarantee) -> str:
        """Say what was found, in one sentence."""
        rates = self.saying.format(
            members=f"{self.members.value:.1%}",
            others=f"{self.others.value:.1%}",
            hits=f"{self.members.hits:,}",
            chance=f"{self.others.hits:,}",
            trials=f"{self.members.trials:,}",
        )
        match self.verdict:
            case AttackVerdict.BEYOND:
                return (
                    f"{self.name}: {rates}, which is MORE than {guarantee.words()} allows "
                    f"({self.allowed:.1%}): the release betrays its rows, or the held-back rows "
                    "are not like them."
                )
            case AttackVerdict.WITHIN if guarantee.epsilon is None:
                return f"{self.name}: {rates}: the release betrays its rows, and promises nothing."
            case AttackVerdict.WITHIN:
                return (
                    f"{self.name}: {rates}, a real difference; {guarantee.words()} allows up to "
                    f"{self.allowed:.1%}."
                )
            case _:
                most = max(0.0, self.members.high - self.others.low)
                return (
                    f"{self.name}: {rates}, no more than chance explains; a difference above "
                    f"{most:.1%} can be ruled out."
                )

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "rows_of_the_study": self.members.as_json(),
            "held_back_rows": self.others.as_json(),
            "advantage": self.advantage,
            "allowed": self.allowed,
            "verdict": self.verdict.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackReport:
    """Everything `parley attack` reports."""

    rows: int  # of the study, that were attacked
    held_back: int
    synthetic: int
    guarantee: Guarantee
    attacks: tuple[Attack, ...]
    face: Attack  # equal rows
    control: Attack  # rows of the study told from the others without the release
    epsilon_shown: float  # the largest epsilon that an attack on membership proves

    @property
    def comparable(self) -> bool:
        """Whether the held-back rows are like the others, as far as the control can tell."""
        return self.control.verdict is AttackVerdict.NOTHING

    @property
    def verdict(self) -> AttackVerdict:
        order = list(AttackVerdict)
        return max((attack.verdict for attack in (*self.attacks, self.face)), key=order.index)

    def summary(self) -> str:
        """Say what all attacks together found, in one sentence."""
        if not self.comparable:
            return (
                "The held-back rows differ from the rows of the study even without the release, "
                "so these figures prove nothing. Hold back rows at random, before the study."
            )
        match self.verdict:
            case AttackVerdict.BEYOND:
                return f"An attack reaches more than {self.guarantee.words()} allows."
            case AttackVerdict.WITHIN if self.guarantee.epsilon is None:
                return "An attack tells rows of the study from others; no epsilon limits it."
            case AttackVerdict.WITHIN:
                return (
                    "An attack tells rows of the study from others, no better than "
                    f"{self.guarantee.words()} allows."
                )
            case _:
                return "No attack tells rows of the study from others better than chance."

    def sentences(self) -> list[str]:
        lines = [attack.words(self.guarantee) for attack in (*self.attacks, self.face)]
        if self.comparable:
            return lines
        return [self.control.words(Guarantee(epsilon=None)), *lines]

    def as_json(self) -> dict[str, object]:
        return {
            "private": False,
            "rows": self.rows,
            "rows_held_back": self.held_back,
            "rows_synthetic": self.synthetic,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "advantage_allowed": self.guarantee.advantage,
            "epsilon_at_least": self.epsilon_shown,
            "comparable": self.comparable,
            "verdict": self.verdict.value,
            "summary": self.summary(),
            "confidence": CONFIDENCE,
            "attacks": [attack.as_json() for attack in self.attacks],
            "face_privacy": self.face.as_json(),
            "control": self.control.as_json(),
        }


def attack(
    synthetic: Codes,
    rows: Codes,
    held_back: Codes,
    schema: Schema,
    guarantee: Guarantee,
    *,
    tell: Reporter = silent,
) -> AttackReport:
    """Attack released rows, by an owner's rows in the study and rows held back from it.

    All tables are codes of one schema; the guarantee is what the release states.
    """
    for name, table in (("--rows", rows), ("--held-back", held_back), ("the release", synthetic)):
        if table.rows < LEAST_ROWS:
            raise InputError(f"{name}: {table.rows} rows. An attack needs at least {LEAST_ROWS}")
    source = SeededRandomSource("attacks")  # so that figures repeat: nothing is released here
    sample = _Sample.of(synthetic, rows, held_back, source)
    guessed = _guessed(schema)
    level = (1 - CONFIDENCE) / (2 * (6 + len(guessed)))  # bounds of six attacks and the guesses
    tell(0.1, "membership")
    control = _membership(
        "the control", lambda targets: telling_apart(targets, sample.known, sample.reference),
        sample, Guarantee(epsilon=None), level,
    )  # fmt: skip
    membership = [
        _membership(name, score, sample, guarantee, level)
        for name, score in _scores(sample).items()
    ]
    tell(0.6, "attribute inference")
    inference = [
        _inference(name, schema.position(name), sample, guarantee, level) for name in guessed
    ]
    tell(0.8, "singling out")
    return AttackReport(
        rows=rows.rows,
        held_back=held_back.rows,
        synthetic=synthetic.rows,
        guarantee=guarantee,
        attacks=(*membership, *inference, *_singling_out(sample, guarantee, level, source)),
        face=_face(synthetic, sample, guarantee, level),
        control=control,
        epsilon_shown=max(
            epsilon_at_least(attack.members, attack.others, delta=guarantee.delta)
            for attack in membership
        ),
    )


def _scores(sample: _Sample) -> dict[str, Callable[[Codes], Scores]]:
    synthetic, reference = sample.synthetic, sample.reference
    return {
        "closest synthetic row": lambda targets: closeness(targets, synthetic),
        "density of synthetic rows": lambda targets: density_ratio(targets, synthetic, reference),
        "classifier": lambda targets: telling_apart(targets, synthetic, reference),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """Random parts of the tables: what the attacker has, and whom it attacks."""

    synthetic: Codes
    reference: Codes  # held-back rows that the attacker knows
    known: Codes  # rows of the study that only the control knows
    members: Codes  # targets of the study
    others: Codes  # targets that were held back
    table: Codes  # rows of the study, as many as
    other_table: Codes  # held-back rows

    @classmethod
    def of(cls, synthetic: Codes, rows: Codes, held_back: Codes, source: RandomSource) -> _Sample:
        shuffled, back = _shuffled(rows, source), _shuffled(held_back, source)
        half, half_back = rows.rows // 2, held_back.rows // 2
        size = min(rows.rows, held_back.rows)
        return cls(
            synthetic=_first(_shuffled(synthetic, source), MOST_ROWS),
            reference=_first(back, min(half_back, MOST_ROWS)),
            known=_first(shuffled, min(half, MOST_ROWS)),
            members=_first(shuffled.take(slice(half, None)), MOST_TARGETS),
            others=_first(back.take(slice(half_back, None)), MOST_TARGETS),
            table=_first(shuffled, size),
            other_table=_first(back, size),
        )


def _shuffled(codes: Codes, source: RandomSource) -> Codes:
    return codes.take(np.array(permutation(codes.rows, source)))


def _first(codes: Codes, count: int) -> Codes:
    return codes.take(slice(None, count))


def _guessed(schema: Schema) -> list[str]:
    """Return the attributes that are guessed: those with most values, which are hard to guess."""
    usable = [
        (size, name)
        for size, name in zip(schema.sizes, schema.names, strict=True)
        if 2 <= size <= _MOST_VALUES
    ]
    by_size = sorted(usable, key=lambda pair: -pair[0])
    return [name for _, name in by_size[:MOST_GUESSED]] if len(schema.names) > 1 else []


def _membership(
    name: str,
    score: Callable[[Codes], Scores],
    sample: _Sample,
    guarantee: Guarantee,
    level: float,
) -> Attack:
    """Attack membership: above a threshold, which half of the targets choose, say "it was in"."""
    scores = score(concatenate([sample.members, sample.others]))
    inside, outside = scores[: sample.members.rows], scores[sample.members.rows :]
    threshold = _threshold(inside[::2], outside[::2])
    return _on_rows(
        f"membership, {name}",
        "of rows of the study it says {members} were in it, and of other rows {others}",
        inside[1::2] >= threshold,
        outside[1::2] >= threshold,
        guarantee,
        level,
    )


def _threshold(inside: Scores, outside: Scores) -> float:
    """Return the threshold with the largest difference of rates, infinite if none has one."""
    candidates = np.unique(np.concatenate([inside, outside]))
    above = [
        1 - np.searchsorted(np.sort(scores), candidates, side="left") / len(scores)
        for scores in (inside, outside)
    ]
    gains = above[0] - above[1]
    best = int(np.argmax(gains))
    return float(candidates[best]) if gains[best] > 0 else float("inf")


def _inference(
    name: str, position: int, sample: _Sample, guarantee: Guarantee, level: float
) -> Attack:
    return _on_rows(
        f"attribute inference of {name}",
        "it guesses {members} of rows of the study right, and {others} of other rows",
        guesses(sample.members, sample.synthetic, position),
        guesses(sample.others, sample.synthetic, position),
        guarantee,
        level,
    )


def _on_rows(
    name: str,
    saying: str,
    members: NDArray[np.bool_],
    others: NDArray[np.bool_],
    guarantee: Guarantee,
    level: float,
    allowed: float | None = None,
) -> Attack:
    """Return an attack by where it succeeds; without `allowed`, epsilon limits it row by row."""
    inside, outside = (
        Rate.of(int(hits.sum()), trials=len(hits), level=level) for hits in (members, others)
    )
    most = guarantee.most_hits(outside.high) if allowed is None else allowed
    return Attack(name=name, saying=saying, members=inside, others=outside, allowed=most)


def _singling_out(
    sample: _Sample, guarantee: Guarantee, level: float, source: RandomSource
) -> Sequence[Attack]:
    """Count the statements, true of one synthetic row, that are true of exactly one row."""
    statements = unique_in(sample.synthetic, tries=_STATEMENTS, source=source)
    if not statements:
        return ()
    inside = np.array([statement.matches(sample.table) for statement in statements])
    outside = np.array([statement.matches(sample.other_table) for statement in statements])
    saying = (
        "{members} of the statements that are true of one synthetic row are true of exactly one "
        "row of the study, and {others} of exactly one of as many other rows"
    )
    allowed = _allowed_of_table(outside, sample.table.rows, guarantee, level)
    return (_on_rows("singling out", saying, inside == 1, outside == 1, guarantee, level, allowed),)


def _face(synthetic: Codes, sample: _Sample, guarantee: Guarantee, level: float) -> Attack:
    """Count the synthetic rows that equal a row of the study, and those that equal another one."""
    inside = equal_rows(synthetic, sample.table)
    outside = equal_rows(synthetic, sample.other_table)
    saying = (
        "{hits} of {trials} synthetic rows equal a row of the study, and {chance} equal one of as "
        "many other rows by chance"
    )
    allowed = _allowed_of_table(outside, sample.table.rows, guarantee, level)
    return _on_rows("face privacy", saying, inside > 0, outside > 0, guarantee, level, allowed)


def _allowed_of_table(
    matches: NDArray[np.int64], rows: int, guarantee: Guarantee, level: float
) -> float:
    """Return what epsilon allows, from an upper bound on the mean number of matches.

    The bootstrap knows nothing of matches that did not occur. Where few did, the exact bound on how
    often there is one is the larger.
    """
    some = Rate.of(int((matches > 0).sum()), trials=len(matches), level=level)
    mean = max(_mean_at_most(matches, level), some.high)
    return guarantee.most_about_a_table(mean, rows=rows)


def _mean_at_most(values: NDArray[np.int64], level: float) -> float:
    """Return an upper bound on a mean by the bootstrap of 2,000 samples, by its percentile."""
    source, draws = SeededRandomSource("bootstrap"), 2_000
    picks = source.words(draws * min(len(values), 1_000)) % np.uint64(len(values))
    means = values[picks.astype(np.int64)].reshape(draws, -1).mean(axis=1)
    return float(np.quantile(means, 1 - level))
