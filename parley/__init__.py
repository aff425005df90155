"""The front door: the public Python API and the `parley` command.

    import parley

    fitted = parley.Subn(epsilon=1).fit(table, "schema.toml")
    synthetic = fitted.sample(1000)
    fitted.privacy["epsilon_delivered"]
    fitted.save("release"); parley.load("release")

    parley.simulate([north, east, south], "schema.toml", epsilon=0.8).sample()

    release = parley.load("release")   # or release.zip
    release.estimate(lambda table: table["income"].mean())
    parley.pool(estimates, variances)  # of the tables of release.replicates(20)

    parley.Privelet(epsilon=1.0).fit(table, "schema.toml").count("age in 20..39 and sex = Female")

Names are imported when they are first used, so that the command starts quickly.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers read it; `typing` itself is slow to load
if TYPE_CHECKING:
    from typing import Any

    from common.analysis.estimates import Estimate as Estimate
    from common.analysis.estimates import pool as pool
    from common.analysis.evaluation import evaluate as evaluate
    from common.errors import ParleyError as ParleyError
    from common.errors import PrivacyWarning as PrivacyWarning
    from common.schema import Schema as Schema
    from common.tables import read_table as read_table
    from parley.models.single_owner import PrivBayes as PrivBayes
    from parley.models.single_owner import Privelet as Privelet
    from parley.models.single_owner import Subn as Subn
    from parley.reader.fitted import FittedLinkedStudy as FittedLinkedStudy
    from parley.reader.fitted import FittedPrivBayes as FittedPrivBayes
    from parley.reader.fitted import FittedPrivelet as FittedPrivelet
    from parley.reader.fitted import FittedStudy as FittedStudy
    from parley.reader.fitted import load as load
    from parley.simulation.study import simulate as simulate

_HOMES = {
    "Estimate": "common.analysis.estimates",
    "FittedLinkedStudy": "parley.reader.fitted",
    "FittedPrivBayes": "parley.reader.fitted",
    "FittedPrivelet": "parley.reader.fitted",
    "FittedStudy": "parley.reader.fitted",
    "ParleyError": "common.errors",
    "PrivacyWarning": "common.errors",
    "PrivBayes": "parley.models.single_owner",
    "Privelet": "parley.models.single_owner",
    "Schema": "common.schema",
    "Subn": "parley.models.single_owner",
    "evaluate": "common.analysis.evaluation",
    "load": "parley.reader.fitted",
    "pool": "common.analysis.estimates",
    "read_table": "common.tables",
    "simulate": "parley.simulation.study",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401  (whatever the name stands for)
    if name not in _HOMES:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
