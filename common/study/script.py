"""A method as one readable function: it yields steps and is sent their results.

A method with five phases reads like five phases when it is a generator. `ScriptRun` takes it
through the steps: deterministic in the results it is given, so that every copy comes to the same
steps. What a party chose is checked before the generator sees it, because a generator that has
raised cannot go on, and a refused message must change nothing.

    def script(study: Study) -> Script[Fit]:
        tables = yield from summed(sum_step(...))
        return partial(NetworkModel, ..., tables)

    run = drive(ScriptRun(script(study)), answer)
    model = run.model()
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from common.errors import LocalError
from common.privacy.budget import root_from_below
from common.privacy.noise_law import NoiseLaw
from common.schema.rules import Possible
from common.study.requests import Counts, scaled, split_tables
from common.study.steps import Model, Result, Step

_T = TypeVar("_T")
_ROOT_BITS = 20


@dataclass(frozen=True, eq=False)
class Total:
    """A noisy sum as a script sees it: scaled to the rows of all parties that it asked.

    A sum without some of these parties has fewer rows and fewer shares of noise than the script
    counts on. Their numbers are public, so the counts are scaled up here, in integers.
    """

    counts: Counts  # shape (cells,); np.asarray of a total is this
    # Of the noise in them, to that in a sum without missing parties.
    variance_ratio: Fraction = Fraction(1)

    def __array__(self, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> Counts:
        return np.asarray(self.counts, dtype=dtype)

    def law(self, law: NoiseLaw) -> NoiseLaw:
        """Return the law of the noise in the counts, if the step asked for `law`."""
        if self.variance_ratio == 1:
            return law
        return law.times(root_from_below(self.variance_ratio, _ROOT_BITS))


Fit: TypeAlias = Callable[[], Model]
"""Makes the model of what was measured; a party, which needs no model, never calls it."""
Script: TypeAlias = Generator[Step, Total | bytes, _T]


@dataclass(frozen=True, slots=True)
class NearFit:
    """A fit that can also start near a model of sums like its own, and is quicker then."""

    near: Callable[[Model | None], Model]  # from nothing but the sums, or from a model of the kind

    def __call__(self) -> Model:
        return self.near(None)


class ScriptRun:
    """A script on its way through one study.

    `rows` has the public row count of every party, which only studies that may miss one need. The
    promise covers `protected_rows` at once: those of one person. The steps ask for at most so many
    `tables`, where the method knows it beforehand.
    """

    def __init__(
        self,
        script: Script[Fit],
        rows: Mapping[str, int] | None = None,
        *,
        possible: Possible | None = None,
        protected_rows: int = 1,
        tables: int = 0,
    ) -> None:
        self.tables = tables
        self._script, self._rows, self._possible = script, rows or {}, possible
        self._protected_rows = protected_rows
        self._fit: Fit | None = None
        self._model: Model | None = None
        self._missing: frozenset[str] = frozenset()
        self._steps: list[Step] = []
        self._full_step: Step | None = self._next(None)
        self._step = self._full_step

    def step(self) -> Step | None:
        """Return what the parties that are left do next; None when there is a model."""
        return self._step

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step that has its result, with the parties that are in it."""
        return tuple(self._steps)

    def step_without(self, missing: Collection[str]) -> Step | None:
        """Return the current step as if these parties were left out; nothing changes."""
        return _without(self._full_step, self._missing.union(missing))

    def leave_out(self, missing: Collection[str]) -> None:
        """Go on without these parties, from the current step on."""
        self._missing = self._missing.union(missing)
        self._step = _without(self._full_step, self._missing)

    def advance(self, result: Result) -> None:
        """Take the published result of the current step, a sum over the parties that are left.

        A choice that the step does not allow is a RemoteProtocolError, and changes nothing.
        """
        step = self._step
        if step is None:
            raise LocalError("this is not a result of the script's current step")
        step.exchange.check(step, result)
        answer = result if isinstance(result, bytes) else self._scaled(step, result)
        self._steps.append(step)
        self._full_step = self._next(answer)
        self._step = _without(self._full_step, self._missing)

    def _scaled(self, step: Step, result: Counts) -> Total:
        """Return a sum as the script sees it."""
        noisy = None if self._possible is None else possible_cells(self._possible, step)
        return self._total(step, result if noisy is None else result * noisy)

    def pass_over(self) -> None:
        """Go on, in a dry run, without the outcome of a choice on which no later step depends."""
        if self._step is None or self._step.exchange.shapes_steps:
            raise LocalError("later steps depend on the outcome of the script's current step")
        self._full_step = self._next(b"")
        self._step = _without(self._full_step, self._missing)

    def drop_steps(self) -> None:
        """Drop the steps that have their results, which a dry run does not need."""
        self._steps.clear()

    def _total(self, step: Step, counts: Counts) -> Total:
        requested = self._full_step
        if requested is None or step.parties == requested.parties:
            return Total(counts)
        there, every = (sum(self._rows[name] for name in s.parties) for s in (step, requested))
        shares = Fraction(len(step.parties), len(requested.parties))
        return Total(scaled(counts, top=every, bottom=there), shares * Fraction(every, there) ** 2)

    def model(self, near: Model | None = None) -> Model:
        """Return the model, once there is no step left; a fit may start `near` another model."""
        if self._fit is None:
            raise LocalError("there is no model before the last step has its result")
        if self._model is None:
            if near is not None and isinstance(self._fit, NearFit):
                self._model = self._fit.near(near)
            else:
                self._model = self._fit()
        return self._model

    def _next(self, answer: Total | bytes | None) -> Step | None:
        try:
            step = next(self._script) if answer is None else self._script.send(answer)
        except StopIteration as end:
            self._fit = end.value
            return None
        step.exchange.check_size(step)
        return step if self._protected_rows == 1 else step.of_people(self._protected_rows)


def drive(
    run: ScriptRun,
    answer: Callable[[Step], Result],
    missing: Mapping[str, int] = MappingProxyType({}),
) -> ScriptRun:
    """Take a script through all of its steps; return it, with its model.

    `missing` has, for each party that goes missing, the first step without it.
    """
    number = 0
    while True:
        run.leave_out([name for name, first in missing.items() if first <= number])
        if (step := run.step()) is None:
            return run
        run.advance(answer(step))
        number += 1


def possible_cells(possible: Possible, step: Step) -> NDArray[np.bool_] | None:
    """Return the cells that no rule makes impossible; the others hold nothing but noise."""
    if not possible.rules or not step.counts_all:
        return None
    cells = np.ones(step.cells, dtype=np.int64)
    for shape, part in zip(step.tables, split_tables(step.tables, cells), strict=True):
        mask = None if shape.in_bits else possible.mask(shape.variables, shape.grouped)
        if mask is not None:
            np.multiply(part, mask, out=part)
    return cells.astype(np.bool_)


def _without(step: Step | None, missing: Collection[str]) -> Step | None:
    return None if step is None else step.without(missing)


def summed(step: Step) -> Script[list[Counts]]:
    """Ask for a noisy sum; its tables come back."""
    return (yield from measured(step))[0]


def measured(step: Step) -> Script[tuple[list[Counts], NoiseLaw]]:
    """Ask for a noisy sum; its tables come back, and the law of the noise in them."""
    total, law = yield from added_up(step)
    return split_tables(step.tables, total), law


def added_up(step: Step) -> Script[tuple[Counts, NoiseLaw]]:
    """Ask for a noisy sum; its counts come back, and the law of the noise in them."""
    law, total = step.noise_law, (yield step)
    return np.asarray(total), total.law(law) if isinstance(total, Total) else law


def replaced(step: Step) -> Script[Counts]:
    """Ask for one group of a release of noise replacement; its vector comes back."""
    return np.asarray((yield step))


def chosen(step: Step) -> Script[bytes]:
    """Ask one party for its choice; the payload comes back, checked."""
    payload = yield step
    if not isinstance(payload, bytes):
        raise LocalError(f"step {step.name!r} is a choice, and its result is a sum")
    return payload
