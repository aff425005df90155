"""The steps of a study: what is asked next, and all that may be known about it.

Curator and parties each derive the steps from the study and the results published so far, and
compare digests, so that a curator cannot ask for a marginal, a noise scale or a repetition that the
study does not imply.

A `Step` says of itself: who takes part, the tables it asks for and their shapes, its noise law, its
sensitivity, what it costs each party, and its canonical bytes. Reviews, progress pages, forecasts,
reports and the accounting read these properties.

A step brings its own `Exchange`: how its answer comes about. There is one module for each in
`common.exchanges`, and no other place tells steps apart. An exchange has two sides without I/O
(`common.study.sides`), and says how a result is read, checked and stood in for.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from common.bayes.form import Model as Model
from common.crypto.framing import frame
from common.crypto.paillier.keys import PrivateKey
from common.crypto.sums.plan import Noise, SumPlan, draw_noise
from common.errors import LocalError
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource, SourceOfStep
from common.privacy.sensitivity import Sensitivity
from common.schema.codes import Codes
from common.schema.linked import concatenate_linked
from common.study.document import Study
from common.study.history import HistoryDigest, StepDigest
from common.study.requests import Attributes, Counts, PartyRows, Request, RowsInMemory, TableShape
from common.study.sides import CuratorSide, ExchangeState, Memory, PartySide

Result: TypeAlias = Counts | bytes
"""Of a step, as it is published: a noisy vector, or the payload of a party's choice."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request of a script. The modules of `common.exchanges` make them."""

    name: str  # unique in the script; what the ledger is charged under
    phase: str  # what the step belongs to, for people
    parties: tuple[str, ...]  # who takes part, in the order of their messages
    exchange: Exchange  # how the answer comes about
    mechanism: str  # its name in the statement
    request: Request | None = None  # what each of the parties counts, if they count
    law: NoiseLaw | None = None  # of the noise in the result
    sensitivity: Sensitivity | None = None  # of the result when one row is replaced
    epsilon: Fraction | None = None  # the cost of a mechanism that is not a noise law
    payers: tuple[str, ...] | None = None  # whose rows can be in the result, if not its parties'
    claimed: Mapping[str, Fraction] | None = None  # the cost by a paper's count
    realised: Mapping[str, Fraction] | None = None  # the cost in this run; no bound

    @property
    def noise_law(self) -> NoiseLaw:
        if self.law is None:
            raise LocalError(f"step {self.name!r}: only a sum is under the noise of a law")
        return self.law

    @property
    def counted(self) -> Request:
        if self.request is None:
            raise LocalError(f"step {self.name!r}: only in a sum do parties count")
        return self.request

    @property
    def tables(self) -> Sequence[TableShape]:
        return () if self.request is None else self.request.tables

    @property
    def links(self) -> Sequence[Attributes]:
        """The sets of variables that are counted together."""
        return () if self.request is None else self.request.links

    @property
    def cells(self) -> int:
        return 0 if self.request is None else self.request.cells

    @property
    def choices(self) -> int:
        """The number of outcomes of a mechanism that the result publishes."""
        return int(self.request is None)

    @property
    def sensitivities(self) -> Mapping[str, Sensitivity]:
        """For each party whose rows can be in the result, how far one replaced row moves it."""
        if self.sensitivity is None:
            return {}
        return dict.fromkeys(self._payers, self.sensitivity)

    @property
    def costs(self) -> Mapping[str, Fraction]:
        """The cost for each party whose rows can be in the result; it depends on no result."""
        if self.law is not None and self.sensitivity is not None:
            return dict.fromkeys(self._payers, self.law.cost(self.sensitivity))
        return dict.fromkeys(self._payers, self.epsilon or Fraction(0))

    @property
    def _payers(self) -> tuple[str, ...]:
        return self.parties if self.payers is None else self.payers

    @cached_property
    def canonical(self) -> bytes:
        return self.exchange.canonical(self)

    @property
    def counts_all(self) -> bool:
        """Whether the result is the request, counted over the rows of all parties of the step."""
        return self.exchange.counts_all

    def owners_with(self, party: str) -> int:
        """Return how many owners' rows are added up with those of a party that takes part."""
        return self.exchange.owners_with(self, party)

    def without(self, missing: Collection[str]) -> Step:
        """Return the step that the other parties can do without these."""
        return self.exchange.without(self, missing)

    def of_people(self, rows: int) -> Step:
        """Return the step with the sensitivity of all rows of a person, like its law's."""
        return self.exchange.of_people(self, rows)

    def read(self, study: Study, data: bytes) -> Result:
        """Read the published result; RemoteProtocolError if it can be none of this step."""
        return self.exchange.read(self, study, data)


class Exchange(ABC):
    """How the answer of a step comes about."""

    counts_all: ClassVar[bool] = False
    # Whether later steps depend on the result; if not, a dry run goes through our own only.
    shapes_steps: bool = True

    @abstractmethod
    def canonical(self, step: Step) -> bytes:
        """Return everything that matters about the step, as unambiguous bytes."""

    @abstractmethod
    def party(self, context: StepAtParty) -> PartySide:
        """Return the side of a party of the step."""

    @abstractmethod
    def curator(self, context: StepAtCurator) -> CuratorSide: ...

    @abstractmethod
    def without_rows(self, step: Step, source: RandomSource) -> Result:
        """Return a result that no row is behind, for a dry run to go on with."""

    @abstractmethod
    def in_one_place(self, step: Step, place: OnePlace) -> Result:
        """Return the result on rows that are all in this process, without cryptography."""

    @abstractmethod
    def read(self, step: Step, study: Study, data: bytes) -> Result: ...

    @abstractmethod
    def check(self, step: Step, result: Result) -> None:
        """Refuse what is no result of the step; with RemoteProtocolError if a peer may send it."""

    @abstractmethod
    def owners_with(self, step: Step, party: str) -> int: ...

    def check_size(self, step: Step) -> None:  # noqa: B027  # most are small
        """Refuse, with InputError, a step that asks for more than one message can hold."""

    def without(self, step: Step, missing: Collection[str]) -> Step:
        """Return the step itself: it cannot do without a party."""
        return step

    def of_people(self, step: Step, rows: int) -> Step:
        raise LocalError(f"step {step.name!r}: only sums are calibrated to several rows")

    def links_in(self, result: bytes) -> Sequence[Attributes]:
        """Return the sets of variables that a published result puts together."""
        return ()

    def covered(self, step: Step, table: TableShape) -> Collection[str]:
        """Return the parties whose rows a table of the step counts once it is published."""
        return step.parties

    def answers(self, context: StepContext) -> Counter[str]:
        """Count the messages of each round from a party that stays to the end of the step."""
        return Counter()


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """Where an exchange takes place; both sides derive it."""

    study: Study
    number: int
    step: Step
    history: HistoryDigest  # of all that was published before, as this side knows it

    @cached_property
    def digest(self) -> StepDigest:
        return step_digest(self.history, self.number, self.step)


@dataclass(frozen=True, kw_only=True)
class StepAtParty(StepContext):
    """What a party's side works with."""

    memory: Memory
    data: PartyRows
    source_of: SourceOfStep
    opening: bytes  # the curator's word, from outside
    again: bool = False  # whether the step was open before

    @property
    def name(self) -> str:
        return self.memory.member.name

    @property
    def source(self) -> RandomSource:
        """The randomness of the step, which goes on where it was."""
        return self.source_of(self.number)


@dataclass(frozen=True, kw_only=True)
class StepAtCurator(StepContext):
    """What the curator's side works with."""

    private_key: PrivateKey | None
    source_of: SourceOfStep

    @property
    def source(self) -> RandomSource:
        return self.source_of(self.number)


@dataclass
class OnePlace:
    """All rows of a study in one process, to answer its steps without cryptography."""

    study: Study
    tables: Mapping[str, Codes]
    source: RandomSource
    states: dict[str, ExchangeState] = field(default_factory=dict)  # by party

    def rows(self, *parties: str) -> RowsInMemory:
        return RowsInMemory(concatenate_linked([self.tables[party] for party in parties]))

    def noise(self, step: Step, plan: SumPlan) -> NDArray[np.int64]:
        """Draw the noise in the sum of a step: the shares of all of its parties."""
        shares = 1 if plan.noise is Noise.ONE_SHARE else len(plan.parties)
        return sum(
            (draw_noise(plan, self.source) for _ in range(shares)), np.zeros(plan.cells, np.int64)
        )

    def choose(self, step: Step, run: Callable[[PartyRows, RandomSource], bytes]) -> bytes:
        return run(self.rows(*step.parties), self.source)

    def answer(self, step: Step) -> Result:
        return step.exchange.in_one_place(step, self)


def step_digest(history: HistoryDigest, number: int, step: Step) -> StepDigest:
    """Return what curator and party compare before anything is computed.

    The digest of the history stands for the study and all results.
    """
    framed = frame(("parley step 3", history, number, step.canonical))
    return StepDigest(hashlib.sha256(framed).digest())
