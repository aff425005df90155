"""A method as one readable function: it yields steps and is sent their results.

A method with five phases reads like five phases when it is a generator. `ScriptRun` takes it
through the steps: deterministic in the results it is given, so that every copy comes to the same
steps. What a party chose is checked before the generator sees it, because a generator that has
raised cannot go on, and a refused message must change nothing.

    def script(study: Study) -> Script[Fit]:
        tables = yield from summed(SumStep(...))
        return partial(NetworkModel, ..., tables)

    model = drive(ScriptRun(script(study)), answer)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TypeAlias, TypeVar

import numpy as np

from common.errors import LocalError
from common.schema.rules import Possible
from common.study.steps import (
    ChoiceStep,
    Counts,
    Model,
    ReplaceStep,
    Step,
    SumStep,
    check_size,
    split_tables,
)

_T = TypeVar("_T")
Result: TypeAlias = Counts | bytes
"""Of a step: a noisy vector, or the payload of a party's choice."""
Fit: TypeAlias = Callable[[], Model]
"""Makes the model of what was measured; a party, which needs no model, never calls it."""
Script: TypeAlias = Generator[Step, Result, _T]


class ScriptRun:
    """A script on its way through one study.

    Args:
        script: at its beginning.
        possible: the rules of the study's schema.
        protected_rows: how many rows the promise covers at once: those of one person.
    """

    def __init__(
        self, script: Script[Fit], possible: Possible | None = None, protected_rows: int = 1
    ) -> None:
        self._script = script
        self._possible = possible
        self._protected_rows = protected_rows
        self._fit: Fit | None = None
        self._model: Model | None = None
        self._step: Step | None = self._next(None)

    def step(self) -> Step | None:
        """What is to be done next; None when there is a model."""
        return self._step

    def advance(self, result: Result) -> None:
        """Take the published result of the current step.

        Raises:
            RemoteProtocolError: the choice is not one that the step allows; nothing has changed.
        """
        match self._step, result:
            case ChoiceStep(choice=choice), bytes():
                choice.check(result)
            case (SumStep() | ReplaceStep()) as step, np.ndarray():
                if result.shape != (step.cells,):
                    raise LocalError(
                        f"step {step.name!r} has {step.cells} cells, its result {result.shape}"
                    )
            case _:
                raise LocalError("this is not a result of the script's current step")
        self._step = self._next(self._without_impossible(result))

    def _without_impossible(self, result: Result) -> Result:
        """The result with 0 in every cell that a rule makes impossible: all there was is noise."""
        possible, step = self._possible, self._step
        if possible is None or not possible.rules or not isinstance(step, SumStep):
            return result
        cells = np.array(result)
        for shape, part in zip(step.tables, split_tables(step.tables, cells), strict=True):
            mask = None if shape.in_bits else possible.mask(shape.variables, shape.grouped)
            if mask is not None:
                np.multiply(part, mask, out=part)
        return cells

    def model(self) -> Model:
        """The model, once there is no step left."""
        if self._fit is None:
            raise LocalError("there is no model before the last step has its result")
        if self._model is None:
            self._model = self._fit()
        return self._model

    def _next(self, result: Result | None) -> Step | None:
        try:
            step = next(self._script) if result is None else self._script.send(result)
        except StopIteration as end:
            self._fit = end.value
            return None
        check_size(step)
        return self._per_person(step)

    def _per_person(self, step: Step) -> Step:
        """The step with the sensitivity of all rows of a person; its law is calibrated to it."""
        if self._protected_rows == 1:
            return step
        if not isinstance(step, SumStep):
            raise LocalError(f"step {step.name!r}: only sums are calibrated to several rows")
        return replace(step, sensitivity=step.sensitivity.of_rows(self._protected_rows))


def drive(run: ScriptRun, answer: Callable[[Step], Result]) -> Model:
    """Take a script to its end.

    Args:
        run: at its first step.
        answer: gives the result of each step.
    """
    while (step := run.step()) is not None:
        run.advance(answer(step))
    return run.model()


def summed(step: SumStep) -> Script[list[Counts]]:
    """Ask for a noisy sum; its tables come back."""
    return split_tables(step.tables, np.asarray((yield step)))


def replaced(step: ReplaceStep) -> Script[Counts]:
    """Ask for one group of a release of noise replacement; its vector comes back."""
    return np.asarray((yield step))


def chosen(step: ChoiceStep) -> Script[bytes]:
    """Ask one party for its choice; the payload comes back, checked."""
    return bytes((yield step))
