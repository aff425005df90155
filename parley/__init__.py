"""The front door: the public Python API and the `parley` command.

    import parley

    fitted = parley.PrivBayes(epsilon=1.0).fit(table, "schema.toml")
    synthetic = fitted.sample(1000)
    fitted.privacy["epsilon_delivered"]
    fitted.save("model.json"); parley.load("model.json")

    parley.Privelet(epsilon=1.0).fit(table, "schema.toml").count("age in 20..39 and sex = Female")

Names are imported when they are first used, so that the command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.errors import ParleyError
    from common.schema import Schema
    from parley.evaluation import evaluate
    from parley.loading import load
    from parley.privbayes import FittedPrivBayes, PrivBayes
    from parley.privelet import FittedPrivelet, Privelet

_HOMES = {
    "FittedPrivBayes": "parley.privbayes",
    "FittedPrivelet": "parley.privelet",
    "ParleyError": "common.errors",
    "PrivBayes": "parley.privbayes",
    "Privelet": "parley.privelet",
    "Schema": "common.schema",
    "evaluate": "parley.evaluation",
    "load": "parley.loading",
}

__all__ = [
    "FittedPrivBayes",
    "FittedPrivelet",
    "ParleyError",
    "PrivBayes",
    "Privelet",
    "Schema",
    "evaluate",
    "load",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (whatever the name stands for)
    if name not in _HOMES:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
