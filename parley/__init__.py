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

    from common.errors import ParleyError as ParleyError
    from common.errors import PrivacyWarning as PrivacyWarning
    from common.release.estimates import Estimate as Estimate
    from common.release.estimates import pool as pool
    from common.release.evaluation import evaluate as evaluate
    from common.release.fitted_privbayes import FittedPrivBayes as FittedPrivBayes
    from common.release.fitted_privelet import FittedPrivelet as FittedPrivelet
    from common.release.fitted_study import FittedStudy as FittedStudy
    from common.release.loading import load as load
    from common.schema import Schema as Schema
    from common.tables import read_table as read_table
    from parley.models.single_owner import PrivBayes as PrivBayes
    from parley.models.single_owner import Privelet as Privelet
    from parley.models.single_owner import Subn as Subn
    from parley.simulation.study import simulate as simulate

_HOMES = {
    "Estimate": "common.release.estimates",
    "FittedPrivBayes": "common.release.fitted_privbayes",
    "FittedPrivelet": "common.release.fitted_privelet",
    "FittedStudy": "common.release.fitted_study",
    "ParleyError": "common.errors",
    "PrivacyWarning": "common.errors",
    "PrivBayes": "parley.models.single_owner",
    "Privelet": "parley.models.single_owner",
    "Schema": "common.schema",
    "Subn": "parley.models.single_owner",
    "evaluate": "common.release.evaluation",
    "load": "common.release.loading",
    "pool": "common.release.estimates",
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
