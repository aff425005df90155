"""The steps of a study: what is asked next, and all that may be known about it.

Curator and parties each derive the steps from the study and the results published so far, and
compare digests, so that a curator cannot ask for a marginal, a noise scale or a repetition that the
study does not imply.

A step is one of three things. In a `SumStep` several parties add up integer vectors under the noise
of a mechanism. In a `ReplaceStep` one party's rows come into running statistics and its share of
noise replaces an older one. In a `ChoiceStep` one party publishes what a mechanism chose, on its
own rows or, in a `JointChoiceStep`, on those of two parties.

Every step says of itself: the tables it asks for and their shapes, its noise law, its sensitivity,
what it costs each party, and its canonical bytes. Reviews, progress pages, forecasts, reports and
the accounting read these properties; only the roles tell the three kinds apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Protocol, TypeAlias

from common.bayes.model import Model as Model
from common.crypto.framing import frame
from common.crypto.sums.plan import framed_law
from common.crypto.sums.replacement import Group, Marginal, Release
from common.crypto.two_party.computation import Circuit, message_bytes
from common.crypto.two_party.gates import Bits
from common.errors import InputError
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource
from common.privacy.sensitivity import Sensitivity, histograms
from common.schema.limits import MOST_STEP_CELLS
from common.study.history import HistoryDigest, StepDigest
from common.study.requests import (
    Attributes,
    Counts,
    PartyRows,
    Request,
    TableRequest,
    TableShape,
    rows_in_bits,
)

_MOST_CIRCUIT_BYTES = 1 << 27


class _Sum:
    """The properties that the two kinds of sums take from their requests."""

    request: Request
    choices: ClassVar[int] = 0

    @property
    def tables(self) -> Sequence[TableShape]:
        return self.request.tables

    @property
    def links(self) -> Sequence[Attributes]:
        """The sets of variables that are counted together."""
        return self.request.links

    @property
    def cells(self) -> int:
        return self.request.cells


@dataclass(frozen=True, kw_only=True)
class SumStep(_Sum):
    """A noisy sum over some parties."""

    name: str  # unique in the script; what the ledger is charged under
    phase: str  # what the step belongs to, for people
    parties: tuple[str, ...]  # who contributes, in ring order
    request: Request  # what each of them answers
    sensitivity: Sensitivity  # of the whole vector when one row is replaced
    law: NoiseLaw  # of the noise in the sum

    claimed = None
    realised = None

    @property
    def mechanism(self) -> str:
        """Its name in the statement."""
        return f"{self.law.name} on a secure sum"

    @property
    def sensitivities(self) -> Mapping[str, Sensitivity]:
        """For each party, how far one of its replaced rows moves the sum."""
        return dict.fromkeys(self.parties, self.sensitivity)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """The cost for each party whose rows are in the sum."""
        return dict.fromkeys(self.parties, self.law.cost(self.sensitivity))

    def owners_with(self, party: str) -> int:
        """Return how many owners' rows are added up with those of a party that contributes."""
        return len(self.parties)

    @cached_property
    def canonical(self) -> bytes:
        """Everything that matters about the step."""
        return frame(
            (
                "sum",
                self.name,
                frame(self.parties),
                self.request.canonical,
                frame(self.sensitivity.l1.as_integer_ratio()),
                frame(self.sensitivity.l2_squared.as_integer_ratio()),
                framed_law(self.law),
            )
        )


@dataclass(frozen=True, kw_only=True)
class ReplaceStep(_Sum):
    """One group of a release of noise replacement [Su16, section VI-A].

    The holder of the older shares takes them out, the party whose turn it is puts its counts and
    its own shares in; both vectors carry their noise, so the sum itself adds none. The cost falls
    on every party whose rows the marginals can cover, not only on those who contribute.

    Which parties a marginal covers depends on earlier results, and a sum of costs that depend on
    results bounds nothing. So the step costs every party that had a turn as much as if all its
    marginals covered that party; `realised` has what the marginals of this run make of it.
    """

    name: str
    phase: str
    release: Release  # the whole release, one party's turn
    group: Group  # the marginals that are summed in this step
    request: TableRequest  # for their tables
    turns: tuple[str, ...]  # the parties that had a turn, this one last

    @property
    def mechanism(self) -> str:
        return f"{self.law.name} with noise replacement"

    @property
    def law(self) -> NoiseLaw:
        return self.release.law

    @property
    def parties(self) -> tuple[str, ...]:
        """The contributors: the holder of older shares, then the party whose turn it is."""
        return tuple(self.release.limits(self.group))

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity of all marginals of the group."""
        return histograms(len(self.group.marginals))

    @property
    def sensitivities(self) -> Mapping[str, Sensitivity]:
        """For each party that had a turn, the sensitivity of all marginals of the group."""
        return dict.fromkeys(self.turns, self.sensitivity)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """The cost for each party that had a turn; it depends on no result."""
        return dict.fromkeys(self.turns, self.law.cost(self.sensitivity))

    @property
    def realised(self) -> Mapping[str, Fraction]:
        """For each party, the cost of the marginals that cover its rows in this run; no bound."""
        covering = Counter(
            party
            for marginal in self.group.marginals
            for party in self.release.coverages.by_marginal[marginal].parties
        )
        return {party: self.law.cost(histograms(count)) for party, count in covering.items()}

    def owners_with(self, party: str) -> int:
        """Return 1 for the party whose turn it is: the holder of older shares adds noise only."""
        return int(party == self.release.party)

    @property
    def claimed(self) -> Mapping[str, Fraction]:
        """The count of [Su16, Theorem 5]: a release costs the party whose turn it is, no other."""
        return {self.release.party: self.law.cost(self.sensitivity)}

    def counts(self, data: PartyRows) -> dict[Marginal, Counts]:
        """Count the tables of the whole release, exactly, for the party whose turn it is."""
        marginals = [marginal for group in self.release.groups for marginal in group.marginals]
        rows = rows_in_bits(data) if self.request.in_bits else data
        return dict(zip(marginals, rows.count(marginals), strict=True))

    @cached_property
    def canonical(self) -> bytes:
        return frame(
            (
                "replacement",
                self.name,
                frame(self.parties),
                self.request.canonical,
                framed_law(self.law),
            )
        )


class Choice(Protocol):
    """A mechanism that one party runs on its own rows."""

    @property
    def canonical(self) -> bytes:
        """The mechanism in full, as unambiguous bytes."""

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Choose; the outcome is published."""

    def without_rows(self, source: RandomSource) -> bytes:
        """Return an outcome that the mechanism can have, for a dry run to go on with."""

    def check(self, payload: bytes) -> None:
        """Refuse a payload that is no outcome of the mechanism, with RemoteProtocolError."""

    def links(self, payload: bytes) -> Sequence[Attributes]:
        """Return the sets of variables that the outcome puts together."""


@dataclass(frozen=True, kw_only=True)
class ChoiceStep:
    """One party's own differentially private choice."""

    name: str
    phase: str
    party: str  # who chooses
    choice: Choice
    epsilon: Fraction  # what it costs that party's rows
    mechanism: str  # its name, for the statement
    # Whether later steps depend on the outcome; if not, a dry run goes through our choices only.
    shapes_steps: bool = True

    choices = 1
    cells = 0
    tables: ClassVar[Sequence[TableShape]] = ()
    links: ClassVar[Sequence[Attributes]] = ()
    law = None
    sensitivity = None
    claimed = None
    realised = None

    @property
    def parties(self) -> tuple[str, ...]:
        return (self.party,)

    @property
    def sensitivities(self) -> Mapping[str, Sensitivity]:
        """Nothing: no noise is calibrated to it."""
        return {}

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """Only the chooser's rows are looked at."""
        return {self.party: self.epsilon}

    def owners_with(self, party: str) -> int:
        """Return 0: nothing is added up."""
        return 0

    @cached_property
    def canonical(self) -> bytes:
        ratio = frame(self.epsilon.as_integer_ratio())
        return frame(("choice", self.name, self.party, self.choice.canonical, ratio))


class JointChoice(Choice, Circuit, Protocol):
    """A mechanism that two parties run on their rows together, as a two-party computation.

    Its circuit is given what `inputs` makes of each party's rows; `run`, on the rows of both, has
    the same law.
    """

    def inputs(self, data: PartyRows, source: RandomSource) -> Bits:
        """Return what one party puts into the computation: its rows and its noise."""

    def outcome(self, bits: Bits) -> bytes:
        """Return what is published of the computation's result, or raise RemoteProtocolError."""


@dataclass(frozen=True, kw_only=True)
class JointChoiceStep(ChoiceStep):
    """A choice of two parties on their rows together; `party` computes and publishes it."""

    choice: JointChoice
    partner: str  # the other party

    @property
    def parties(self) -> tuple[str, ...]:
        """Both, in the order of their messages."""
        return (self.partner, self.party)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """Both parties' rows are in the choice."""
        return dict.fromkeys(self.parties, self.epsilon)

    def owners_with(self, party: str) -> int:
        return len(self.parties)

    @property
    def canonical(self) -> bytes:
        return frame(("joint", self.partner, super().canonical))


Step: TypeAlias = SumStep | ReplaceStep | ChoiceStep


def check_size(step: Step) -> None:
    """Refuse, with InputError, a step that asks for more than one message can hold."""
    if isinstance(step, JointChoiceStep) and max(message_bytes(step.choice)) > _MOST_CIRCUIT_BYTES:
        raise InputError(
            f"step {step.name!r}: its two-party computation needs a message of more than "
            f"{_MOST_CIRCUIT_BYTES:,} bytes. Give attributes fewer values, or choose in turn"
        )
    if not isinstance(step, ChoiceStep) and step.cells > MOST_STEP_CELLS:
        raise InputError(
            f"step {step.name!r}: it asks for {step.cells:,} integers at once, at most "
            f"{MOST_STEP_CELLS:,} can be sent. Give attributes fewer values, or use method subn+"
        )


def step_digest(history: HistoryDigest, number: int, step: Step) -> StepDigest:
    """Return what curator and party compare before anything is computed.

    The digest of the history stands for the study and all results.
    """
    framed = frame(("parley step 3", history, number, step.canonical))
    return StepDigest(hashlib.sha256(framed).digest())
