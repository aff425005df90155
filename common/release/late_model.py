"""A model that is fitted when something first asks it: reading a release back need not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.privacy.randomness import RandomSource
from common.schema import Codes
from common.study.steps import Model


class LateModel:
    """Stands for the model that a function fits, when it is first asked."""

    def __init__(self, fit: Callable[[], Model]) -> None:
        self._fit = fit
        self._model: Model | None = None

    @property
    def fitted(self) -> Model:
        """The model itself."""
        if self._model is None:
            self._model = self._fit()
        return self._model

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw synthetic rows."""
        return self.fitted.sample(rows, source)

    def as_json(self) -> dict[str, object]:
        """Return the model as plain values."""
        return self.fitted.as_json()

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the fitted model."""
        return _itself, (self.fitted,)


def _itself(model: Model) -> Model:
    return model
