"""The methods by name.

Every module or package of `common.methods` that has a `METHOD` is a method; nothing else in the
program lists or compares methods' names.

    method = method_of(study)
    run = method.run(study)         # one copy for every role
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module

import common.methods
from common.errors import InputError
from common.exchanges.setup import with_hybrid_masks
from common.methods.criteria import with_criteria
from common.methods.prior import Prior, check_prior, near_prior
from common.schema import Schema
from common.study.document import Study
from common.study.members import Member
from common.study.method import Method
from common.study.script import ScriptRun

_HERE = "registry"


@cache
def methods() -> Mapping[str, Method]:
    """Return every method by its name, in the order of lists."""
    modules = (
        import_module(f"{common.methods.__name__}.{info.name}")
        for info in pkgutil.iter_modules(common.methods.__path__)
        if info.name != _HERE
    )
    every = [module.METHOD for module in modules if hasattr(module, "METHOD")]
    return {method.name: method for method in sorted(every, key=lambda method: method.place)}


def publishes_rows(method: str) -> bool:
    """Return whether releases of a method have synthetic rows; those of unknown ones do."""
    known = methods().get(method)
    return known is None or known.publishes_rows


def method_of(study: Study) -> Method:
    """Return the method that a study names; InputError if the name is unknown."""
    known = methods()
    if study.method not in known:
        raise InputError(f"method: {study.method!r} is not one of {', '.join(known)}")
    return known[study.method]


def new_study(terms: Mapping[str, object], *, schema: Schema, members: Sequence[Member]) -> Study:
    """Make a new study of these terms (see `Study.of`).

    It has the masks of new studies, its open settings by the method's forecast, and the version of
    its method.
    """
    study = with_hybrid_masks(Study.of(terms, schema=schema, members=members))
    return with_version(with_forecast(study))


def with_version(study: Study) -> Study:
    """Return an unsigned study that says which version of its method is agreed on."""
    return replace(study, method_version=method_of(study).version)


def with_forecast(study: Study) -> Study:
    """Return an unsigned study with the settings that its method forecasts to be good.

    Settings that the study has stay as they are. A delta is left out where pure epsilon, which
    promises more, is forecast to show more, too.
    """
    study = method_of(study).clearest(study)
    settings = {**method_of(study).forecast(study), **dict(study.settings)}
    return replace(study, settings=tuple(sorted(settings.items())))


def cautions_of(study: Study) -> list[str]:
    """Return what users must know first: that a cap made the method's search smaller."""
    decisions = method_of(study).decisions(study)
    return [decision.caution for decision in decisions if decision.caution]


def run_of(study: Study, prior: Prior | None = None) -> ScriptRun:
    """Begin a fresh copy of the study's script; InputError if the method cannot keep its terms."""
    method = method_of(study)
    if study.method_version not in (0, method.version):
        raise InputError(
            f"method_version: the study was agreed on for version {study.method_version} of "
            f"{method.name}, and this parley has version {method.version}. Run the version of "
            "parley that wrote the study, or write the study again with `parley study renew`"
        )
    able = ", ".join(known.name for known in methods().values() if known.only_sums)
    if study.delta and not method.only_sums:
        raise InputError(
            f"delta: {method.name} also chooses by mechanisms that promise pure epsilon. Leave "
            f"delta out, or use one of the methods {able}"
        )
    if study.promise.protected_rows > 1 and not method.only_sums:
        raise InputError(
            f"rows_per_person: {method.name} also chooses by mechanisms that protect a single row. "
            f"Use one of the methods {able}"
        )
    check_prior(method, study, prior)
    script = method.script
    if study.criteria and not method.sums:
        raise InputError(
            f"criterion: {method.name} adds nothing up. Leave the criteria out, or use another "
            "method"
        )
    if study.criteria:
        script = partial(with_criteria, script)
    if prior is not None:
        script = partial(near_prior, script, prior)
    return replace(method, script=script).run(study)
