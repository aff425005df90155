"""Models read back from model.json, where `as_json` of each of them put it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.bayes.domain import View
from common.bayes.network import Network
from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError
from common.methods.independent import StackedModels
from common.methods.network_model import NetworkModel
from common.methods.subn_plus.joined import Joined, JoinedModel
from common.methods.subn_plus.latent import LatentModel
from common.methods.variables import Variables
from common.study.steps import Model


def read_model(document: Mapping[str, Any], sizes: Sequence[int]) -> Model:
    """Return the model in a document of `as_json`.

    Args:
        document: as JSON gives it.
        sizes: the domain sizes of the attributes.

    Raises:
        InputError: it is not a model of these attributes.
    """
    try:
        return _read(document, tuple(sizes))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"the model is damaged: {error!r}") from None


def _read(document: Mapping[str, Any], sizes: tuple[int, ...]) -> Model:
    match str(document["format"]).removeprefix("parley "):
        case "latent class model 1":
            mixture = _mixture(document)
            _check(tuple(column.shape[1] for column in mixture.columns) == sizes)
            return mixture
        case "latent class model of joined attributes 1":
            joined = Joined(tuple(tuple(map(int, own)) for own in document["attributes"]), sizes)
            _check(sorted(a for own in joined.sets for a in own) == list(range(len(sizes))))
            mixture = _mixture(document)
            shapes = [int(np.prod(joined.shape(column))) for column in range(len(joined.sets))]
            _check([column.shape[1] for column in mixture.columns] == shapes)
            return JoinedModel(joined, mixture)
        case "network 1":
            variables = Variables(sizes, in_bits=document["encoding"] == "binary")
            _check(list(variables.sizes) == document["sizes"])
            return _network(document, variables)
        case "stacked models 1":
            models = tuple(PrivBayesModel.from_json(own) for own in document["models"])
            _check(all(own.plan.sizes == sizes for own in models))
            return StackedModels(models)
        case other:
            raise InputError(f"the model has a format of another version: {other!r}")


def _mixture(document: Mapping[str, Any]) -> LatentModel:
    weights = np.array(document["weights"], dtype=np.float64)
    columns = tuple(np.array(own, dtype=np.float64) for own in document["columns"])
    _check(weights.ndim == 1 and len(weights) > 0)
    for own in (weights[None, :], *columns):
        _check(own.ndim == 2 and bool(np.isfinite(own).all()) and bool((own >= 0).all()))
        _check(bool((own.sum(axis=1) > 0).all()))
    _check(all(len(own) == len(weights) for own in columns))
    return LatentModel(weights, columns)


def _network(document: Mapping[str, Any], variables: Variables) -> NetworkModel:
    network = Network.from_json(document["network"])
    tables = {}
    for entry in document["tables"]:
        family = tuple(View(int(a)) for a in entry["family"])
        counts = np.array(entry["counts"])
        _check(counts.dtype.kind in "if" and bool(np.isfinite(counts).all()))
        tables[family] = counts.reshape([variables.sizes[view.attribute] for view in family])
    return NetworkModel(variables, network, tables)


def _check(sound: bool) -> None:  # noqa: FBT001
    if not sound:
        raise ValueError("its numbers do not fit the schema")
