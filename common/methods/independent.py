"""Independent: every party runs PrivBayes on its own rows, and the synthetic tables are stacked.

No cryptography and no sums: each party publishes a model that is differentially private by itself.
The noise of K small tables is that of each small table, which is why the other methods exist.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from common.bayes.domain import Domain
from common.bayes.form import Model, NetworkForm
from common.bayes.network import Network, needed_families
from common.bayes.privbayes.decisions import Encoding, PrivBayesOptions, make_plan
from common.bayes.privbayes.decisions import PrivBayesDecisions as PrivBayesPlan
from common.bayes.privbayes.mechanism import OWNER, fit_privbayes
from common.bayes.privbayes.model import PrivBayesModel
from common.crypto.framing import frame
from common.errors import InputError, RemoteProtocolError
from common.exchanges.choice import choice_step
from common.privacy.accountant import Accountant
from common.privacy.randomness import RandomSource, uniforms
from common.schema import Schema
from common.schema.codes import Codes, concatenate
from common.study.document import Study
from common.study.method import Method
from common.study.requests import PartyRows
from common.study.script import Fit, Script, chosen

_MOST_COUNT = 1 << 53  # counts beyond this are no longer whole numbers as doubles


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelChoice:
    """A party's PrivBayes model of its own rows."""

    schema: Schema
    domain: Domain  # the schema's, with its hierarchies
    options: PrivBayesOptions
    rows: int
    epsilon: Fraction

    @cached_property
    def plan(self) -> PrivBayesPlan:
        """Everything about the model that depends on no row."""
        return make_plan(self.domain, rows=self.rows, epsilon=self.epsilon, options=self.options)

    def run(self, data: PartyRows, source: RandomSource) -> bytes:
        """Fit the model; its network and its noisy tables are published."""
        model = fit_privbayes(
            data.codes(),
            epsilon=self.epsilon,
            source=source,
            accountant=Accountant({OWNER: self.epsilon}),
            hierarchies=[attribute.hierarchy for attribute in self.schema.attributes],
            options=self.options,
        )
        return _encode(model.within(self.schema.possible))

    def without_rows(self, source: RandomSource) -> bytes:
        """Return a model of empty tables, with the plan's network or no parents at all."""
        domain = self.plan.domain
        network = self.plan.network or Network.from_parents(dict.fromkeys(range(domain.width), ()))
        tables = {
            family: np.zeros(domain.shape(family), np.int64) for family in needed_families(network)
        }
        return _encode(
            PrivBayesModel(self.plan, network, tables, self.options.consistency, private=False)
        )

    def check(self, payload: bytes) -> None:
        self.model(payload)

    def model(self, payload: bytes) -> PrivBayesModel:
        """Return the model in a payload; what the plan decides is not taken from the payload.

        Raises:
            RemoteProtocolError: the plan does not allow this model.
        """
        try:
            document = json.loads(payload)
            model = self._parse(document)
            canonical = _encode(model)
        except (InputError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise RemoteProtocolError("this is not a model of the agreed attributes") from None
        if canonical != payload:
            raise RemoteProtocolError("the model is not in its canonical form")
        return model

    def _parse(self, document: Any) -> PrivBayesModel:  # noqa: ANN401  # whatever JSON holds
        network = Network.from_json(document["network"])
        self._check_network(network)
        families = needed_families(network)
        tables = {}
        for family, counts in zip(families, document["tables"], strict=True):
            shape = self.plan.domain.shape(family)
            if len(counts) != prod(shape) or any(type(c) is not int for c in counts):
                raise ValueError("a table has other cells than its family")
            if max(map(abs, counts)) > _MOST_COUNT:
                raise ValueError("a count is larger than any noise makes it")
            tables[family] = np.array(counts, dtype=np.int64).reshape(shape)
        private = document["private"] is True
        return PrivBayesModel(self.plan, network, tables, self.options.consistency, private)

    def _check_network(self, network: Network) -> None:
        """Refuse a network that PrivBayes cannot have learnt under this plan."""
        plan = self.plan
        network.check(plan.domain)
        if plan.network is not None and network != plan.network:
            raise ValueError("the plan leaves no choice of a network")
        for pair in network.pairs:
            many = plan.degree is not None and len(pair.parents) > plan.degree
            large = plan.cells is not None and prod(plan.domain.shape(pair.family)) > plan.cells
            if pair.parents and (many or large):
                raise ValueError("an attribute has more parents than the plan allows")

    def links(self, payload: bytes) -> Sequence[tuple[int, ...]]:
        """Return no links: every party has a network of its own."""
        return ()

    @property
    def canonical(self) -> bytes:
        plan = self.plan
        return frame(
            (
                "PrivBayes",
                self.rows,
                frame(plan.sizes),
                str(plan.encoding),
                str(plan.score),
                b"" if plan.degree is None else plan.degree,
                b"" if plan.cells is None else plan.cells,
                frame(plan.network_epsilon.as_integer_ratio()),
                frame(plan.table_epsilon.as_integer_ratio()),
            )
        )


@dataclass(frozen=True, eq=False)
class StackedModels(Model):
    """The parties' models; rows are drawn from each in proportion to the rows behind it."""

    models: tuple[PrivBayesModel, ...]

    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw rows of all models, in random order."""
        weights = [model.plan.rows for model in self.models]
        parts = [
            model.sample(part, source)
            for model, part in zip(self.models, in_proportion(rows, weights), strict=True)
        ]
        return concatenate(parts).take(np.argsort(uniforms(rows, source)))

    def form(self) -> list[NetworkForm]:
        """Return every party's network, with the rows behind it."""
        return [
            replace(form, rows=float(model.plan.rows))
            for model in self.models
            for form in model.form()
        ]

    def as_json(self) -> dict[str, object]:
        return {
            "format": "parley stacked models 1",
            "models": [model.as_json() for model in self.models],
        }


def independent(study: Study) -> Script[Fit]:
    """Ask each party for one choice; nothing is summed."""
    encoding = Encoding.BINARY if study.encoding == "binary" else None
    domain = Domain.of([attribute.hierarchy for attribute in study.schema.attributes])
    models = []
    for member in study.members:
        choice = ModelChoice(
            schema=study.schema,
            domain=domain,
            options=PrivBayesOptions(encoding=encoding),
            rows=member.rows,
            epsilon=study.epsilon,
        )
        step = choice_step(
            name=f"model of {member.name}",
            phase="models",
            party=member.name,
            choice=choice,
            epsilon=study.epsilon,
            mechanism="PrivBayes: exponential mechanism and discrete Laplace",
            shapes_steps=False,
        )
        models.append(partial(choice.model, (yield from chosen(step))))
    return lambda: StackedModels(tuple(model() for model in models))


def in_proportion(total: int, weights: list[int]) -> list[int]:
    """Divide `total` into whole parts by weight; the largest remainders are rounded up."""
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    remainders = [total * weight % whole for weight in weights]
    for index in sorted(range(len(weights)), key=lambda i: -remainders[i])[: total - sum(parts)]:
        parts[index] += 1
    return parts


def _encode(model: PrivBayesModel) -> bytes:
    document = {
        "network": model.network.to_json(),
        "private": model.private,
        "tables": [table.ravel().tolist() for table in model.tables.values()],
    }
    return json.dumps(document, separators=(",", ":")).encode()


METHOD = Method(
    name="independent",
    summary="each owner's own PrivBayes, stacked",
    script=independent,
    sums=False,
    single_turns=True,
    place=4,
)
