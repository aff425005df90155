"""A method as a sequence of steps that both sides derive for themselves.

A `Plan` is a pure, deterministic machine: given the study and the results published so far it
says what the next step is. Curator and parties each run their own copy and compare digests, so
nobody can ask for a marginal, a noise scale or a repetition that the study does not imply.

A step is one of three things. In a `SumStep` several parties add up integer vectors under the noise
of a mechanism. In a `ReplaceStep` one party's rows come into running statistics and its share of
noise replaces an older one. In a `ChoiceStep` one party runs a mechanism on its own rows and
publishes the outcome. Every step says what it costs each party, derived from its sensitivity and
scale; the accountant adds up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.sums.replacement import Group, Marginal, Release
from common.errors import InputError
from common.marginals import BinarySubsets, count
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes
from common.schema.encodings import binarise
from common.schema.limits import MOST_STEP_CELLS

Attributes = tuple[int, ...]
Counts = NDArray[np.int64]

_SUBSETS_PER_TABLE = 64  # of bits: counting a subset is that much less than handling a table


class PartyRows(Protocol):
    """A party's rows. They never leave the party; steps see them through here only."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def count(self, sets: Sequence[Attributes]) -> list[Counts]:
        """The contingency table of every attribute set."""

    def codes(self) -> Codes:
        """All rows at once, for mechanisms that need more than counts."""


class BitRows:
    """A party's rows with every attribute as bits, most significant first."""

    def __init__(self, data: PartyRows) -> None:
        self._bits = binarise(data.codes())

    @property
    def rows(self) -> int:
        """As many as there are rows in the attributes' own domains."""
        return self._bits.rows

    def count(self, sets: Sequence[Attributes]) -> list[Counts]:
        """The contingency table of every set of bits."""
        order = max(map(len, sets), default=0)
        subsets = sum(comb(self._bits.width, size) for size in range(order + 1))
        lengths = {len(each) for each in sets}
        if len(lengths) == 1 and order and subsets <= _SUBSETS_PER_TABLE * len(sets):
            return list(BinarySubsets(self._bits, order).tables(sets))
        return count(self._bits, sets)

    def codes(self) -> Codes:
        """All rows at once."""
        return self._bits


class Request(Protocol):
    """What a party computes from its own rows for a sum."""

    @property
    def count(self) -> int:
        """How many tables are counted for it."""

    @property
    def cells(self) -> int:
        """How many integers."""

    def limit(self, rows: int) -> int:
        """The largest absolute value of a cell for a party of this many rows."""

    def answer(self, data: PartyRows) -> Counts:
        """The exact integers, shape (cells,). They never leave the party without noise."""

    def describe(self) -> str:
        """The request in full, for its digest and for people."""


@dataclass(frozen=True)
class TableRequest:
    """The contingency tables of some sets of variables, one after the other.

    Attributes:
        sets: the variables of each table.
        sizes: the domain size of every variable of the study.
        in_bits: the variables are the bits of the attributes, not the attributes themselves.
    """

    sets: tuple[Attributes, ...]
    sizes: tuple[int, ...]
    in_bits: bool = False

    @property
    def count(self) -> int:
        """How many tables."""
        return len(self.sets)

    @property
    def cells(self) -> int:
        """All tables' cells together."""
        return sum(self.shape_cells)

    @cached_property
    def shape_cells(self) -> list[int]:
        """Each table's cells."""
        return [prod(self.sizes[a] for a in attributes) for attributes in self.sets]

    def limit(self, rows: int) -> int:
        """A cell counts at most all rows."""
        return rows

    def answer(self, data: PartyRows) -> Counts:
        """The exact counts."""
        rows = BitRows(data) if self.in_bits else data
        return np.concatenate([table.reshape(-1) for table in rows.count(self.sets)])

    def tables(self, vector: Counts) -> list[Counts]:
        """A sum of answers, cut into tables of their proper shapes."""
        tables, start = [], 0
        for attributes, cells in zip(self.sets, self.shape_cells, strict=True):
            shape = [self.sizes[a] for a in attributes]
            tables.append(vector[start : start + cells].reshape(shape))
            start += cells
        return tables

    def describe(self) -> str:
        """The request in full."""
        return f"tables {self.sets} of {_variables(self.sizes, in_bits=self.in_bits)}"


def _variables(sizes: tuple[int, ...], *, in_bits: bool) -> str:
    return f"{len(sizes)} bits" if in_bits else f"sizes {sizes}"


@dataclass(frozen=True, kw_only=True)
class SumStep:
    """A noisy sum over some parties.

    Attributes:
        name: unique in the plan; what the ledger is charged under.
        phase: what the step belongs to, for people.
        parties: who contributes, in ring order.
        request: what each of them answers.
        sensitivity: L1, of the whole vector, when one row is replaced.
        scale: of the discrete Laplace noise.
    """

    name: str
    phase: str
    parties: tuple[str, ...]
    request: Request
    sensitivity: Fraction
    scale: Fraction

    mechanism = "discrete Laplace on a secure sum"

    @property
    def cells(self) -> int:
        """How many integers each party sends."""
        return self.request.cells

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """Epsilon of every party whose rows are in the sum."""
        return dict.fromkeys(self.parties, self.sensitivity / self.scale)

    def describe(self) -> str:
        """Everything that matters about the step."""
        return (
            f"sum {self.name!r} over {self.parties}: {self.request.describe()}; "
            f"sensitivity {self.sensitivity}, scale {self.scale}"
        )


@dataclass(frozen=True, kw_only=True)
class ReplaceStep:
    """One group of a release of noise replacement [Su16, section VI-A].

    The holder of the older shares takes them out, the party whose turn it is puts its counts and
    its own shares in; both vectors carry their noise, so the sum itself adds none. The cost falls
    on everybody whose rows the marginals cover, not only on those who contribute.

    Attributes:
        name: unique in the plan.
        phase: what the step belongs to, for people.
        release: the whole release, one party's turn.
        group: the marginals that are summed in this step.
        sizes: domain sizes of the study's variables.
        in_bits: the variables are the bits of the attributes.
    """

    name: str
    phase: str
    release: Release
    group: Group
    sizes: tuple[int, ...]
    in_bits: bool = False

    mechanism = "discrete Laplace with noise replacement"

    @property
    def cells(self) -> int:
        """How many integers each party sends."""
        return self.group.cells

    @property
    def parties(self) -> tuple[str, ...]:
        """Who contributes: the holder of the older shares, then the party whose turn it is."""
        mine = self.release.party
        return (mine,) if self.group.holder is None else (self.group.holder, mine)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """2 / scale for every marginal of the group that covers the party's rows."""
        result: dict[str, Fraction] = {}
        for marginal in self.group.marginals:
            for party in self.release.books.coverage[marginal].parties:
                result[party] = result.get(party, Fraction(0)) + 2 / self.release.noise_scale
        return result

    def counts(self, data: PartyRows) -> dict[Marginal, Counts]:
        """The exact tables of the whole release, for the party whose turn it is."""
        marginals = [marginal for group in self.release.groups for marginal in group.marginals]
        rows = BitRows(data) if self.in_bits else data
        return dict(zip(marginals, rows.count(marginals), strict=True))

    def describe(self) -> str:
        """Everything that matters about the step."""
        return (
            f"replace {self.name!r} over {self.parties}: tables {self.group.marginals} of "
            f"{_variables(self.sizes, in_bits=self.in_bits)}; scale {self.release.noise_scale}"
        )


class Choice(Protocol):
    """A mechanism that one party runs on its own rows."""

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """The outcome, which is published."""

    def without_rows(self, source: RandomSource) -> bytes:
        """Some outcome that the mechanism can have: a dry run of the plan goes on with it."""

    def check(self, payload: bytes) -> None:
        """Refuse a payload that is no outcome of the mechanism, with RemoteProtocolError."""

    def describe(self) -> str:
        """The mechanism in full."""


@dataclass(frozen=True, kw_only=True)
class ChoiceStep:
    """One party's own differentially private choice.

    Attributes:
        name: unique in the plan.
        phase: what the step belongs to, for people.
        party: who chooses.
        choice: the mechanism.
        epsilon: what it costs that party's rows.
        mechanism: its name, for the statement.
    """

    name: str
    phase: str
    party: str
    choice: Choice
    epsilon: Fraction
    mechanism: str

    @property
    def parties(self) -> tuple[str, ...]:
        """The one who chooses."""
        return (self.party,)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """Only the chooser's rows are looked at."""
        return {self.party: self.epsilon}

    def describe(self) -> str:
        """Everything that matters about the step."""
        return (
            f"choice {self.name!r} by {self.party!r}: {self.choice.describe()}; "
            f"epsilon {self.epsilon}"
        )


Step = SumStep | ReplaceStep | ChoiceStep


def check_size(step: Step) -> None:
    """Refuse a step that asks for more integers than a party can send in one message.

    Raises:
        InputError: naming the step, and what asks for less.
    """
    if not isinstance(step, ChoiceStep) and step.cells > MOST_STEP_CELLS:
        raise InputError(
            f"step {step.name!r}: it asks for {step.cells:,} integers at once, at most "
            f"{MOST_STEP_CELLS:,} can be sent. Give attributes fewer values, or use method subn+"
        )


def step_digest(history: bytes, number: int, step: Step) -> bytes:
    """What curator and party compare before anything is computed.

    Args:
        history: the digest of the transcript so far; it stands for the study and all results.
        number: of the step.
        step: as the plan gives it.
    """
    return hashlib.sha256(frame(("parley step 1", history, number, step.describe()))).digest()


class Model(Protocol):
    """What a finished plan has learnt: everything in it is noisy, so it may be published."""

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows, in the study's own domains."""

    def as_json(self) -> dict[str, object]:
        """The model as plain values."""


class Plan(Protocol):
    """A method at work on one study: deterministic in the results it is given."""

    def step(self) -> Step | None:
        """What is to be done next; None when the model can be made."""

    def advance(self, result: Counts | bytes) -> None:
        """Take the published result of the current step: a noisy vector, or a party's choice.

        Raises:
            RemoteProtocolError: the choice is not one that the step allows.
        """

    def model(self) -> Model:
        """The model, once there is no step left."""
