"""A plan written as one readable function: it yields steps and is sent their results.

A method with five phases reads like five phases when it is a generator. `ScriptedPlan` makes a
`Plan` of it. What a party chose is checked before the generator sees it, because a generator that
has raised cannot go on, and a refused message must change nothing.

    def script(study: Study) -> Script[Model]:
        tables = yield from summed(SumStep(...), request)
        return NetworkModel(...)

    plan = ScriptedPlan(script(study))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

import numpy as np

from common.errors import LocalError
from common.study.steps import (
    ChoiceStep,
    Counts,
    Model,
    ReplaceStep,
    Step,
    SumStep,
    TableRequest,
    check_size,
)

_T = TypeVar("_T")
Script: TypeAlias = Generator[Step, Counts | bytes, _T]


class ScriptedPlan:
    """A plan that follows a script."""

    def __init__(self, script: Script[Model]) -> None:
        self._script = script
        self._model: Model | None = None
        self._step: Step | None = self._next(None)

    def step(self) -> Step | None:
        """What is to be done next; None when the model can be made."""
        return self._step

    def advance(self, result: Counts | bytes) -> None:
        """Take the published result of the current step.

        Raises:
            RemoteProtocolError: the choice is not one that the step allows; nothing has changed.
        """
        match self._step, result:
            case ChoiceStep(choice=choice), bytes():
                choice.check(result)
            case (SumStep() | ReplaceStep()) as step, np.ndarray():
                _check_length(step, result)
            case _:
                raise LocalError("this is not a result of the plan's current step")
        self._step = self._next(result)

    def model(self) -> Model:
        """The model, once there is no step left."""
        if self._model is None:
            raise LocalError("there is no model before the last step has its result")
        return self._model

    def _next(self, result: Counts | bytes | None) -> Step | None:
        try:
            step = next(self._script) if result is None else self._script.send(result)
        except StopIteration as end:
            self._model = end.value
            return None
        check_size(step)
        return step


def _check_length(step: SumStep | ReplaceStep, vector: Counts) -> None:
    if vector.shape != (step.cells,):
        raise LocalError(f"step {step.name!r} has {step.cells} cells, its result {vector.shape}")


def summed(step: SumStep, request: TableRequest) -> Script[list[Counts]]:
    """Ask for a noisy sum; the tables of its request come back."""
    return request.tables(np.asarray((yield step)))


def replaced(step: ReplaceStep) -> Script[Counts]:
    """Ask for one group of a release of noise replacement; its vector comes back."""
    return np.asarray((yield step))


def chosen(step: ChoiceStep) -> Script[bytes]:
    """Ask one party for its choice; the payload comes back, checked."""
    return bytes((yield step))
