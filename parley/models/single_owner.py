"""Models of one owner's table: `Subn`, `PrivBayes` and `Privelet`.

    >>> fitted = parley.Subn(epsilon=1).fit(table, "schema.toml")
    >>> fitted.sample(1000)                             # a table like the input
    >>> fitted.count("age in 20..39 and sex = Female")  # by the model
    >>> fitted.save("release")                          # a folder that may be published

`Subn` is a study with one party, run on this machine. The options of `PrivBayes` are about the
model, none about the rows: they cost no budget. `Privelet` answers range counts with their exact
deviation: every cell of the domain gets noise, so the domain must fit into memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, cast

from common.bayes.network import Network
from common.bayes.privbayes.decisions import (
    MOST_CANDIDATE_CELLS,
    MOST_PARENT_SETS,
    Encoding,
    PrivBayesOptions,
)
from common.bayes.privbayes.mechanism import fit_privbayes
from common.bayes.privbayes.parent_sets import Constraints
from common.bayes.privbayes.scores import Score
from common.errors import InputError
from common.fitted.single_owner import (
    OWNER,
    AnySchema,
    AnyTable,
    TellingAccountant,
    as_schema,
    encode,
    statement_of,
    warn_of_large,
)
from common.privacy.budget import parse_epsilon
from common.privacy.randomness import source_of
from common.schema import Schema
from common.schema.toml import refuse_unknown
from common.study.document import DEFAULT_METHOD, Study
from common.wavelet import plan_privelet, privelet
from common.wavelet.decisions import METHODS
from common.wording import Reporter, silent
from parley.reader.fitted import FittedPrivBayes, FittedPrivelet, FittedStudy
from parley.simulation.linked_files import OwnersTables
from parley.simulation.study import run_in_process


class Maker:
    """How to make a model, in the way of scikit-learn: its parameters can be read and changed."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  (sklearn's)
        """Return the parameters by name, for `sklearn.base.clone`."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401  (as the fields are typed)
        """Change parameters; InputError if one is unknown."""
        refuse_unknown(params, self.get_params())
        for name, value in params.items():
            setattr(self, name, value)
        return self


@dataclass(kw_only=True)
class Subn(Maker):
    """How to make a model; `fit` makes it.

    Args:
        epsilon: the budget, spent exactly. Text and fractions are taken as written.
        delta: the probability outside of which epsilon holds; 0 is pure epsilon.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
        signer: the fingerprint of the identity that will sign the release; the study pins it.
        analyses: what the table is for, measured first: texts like 'mean = "income", by = "sex"',
            or dicts of the same keys.
        others: with analyses, the part of what single columns leave for all other pairs, 0 up to
            below 1; by forecast if None.
        method: "subn+", or "answers" for the analyses alone, without synthetic rows.
    """

    epsilon: str | Fraction | int | float = 1.0
    delta: str | Fraction | int | float = 0
    seed: int | None = None
    signer: str | None = None
    analyses: Sequence[str | Mapping[str, object]] = ()
    others: str | Fraction | int | float | None = None
    method: str = DEFAULT_METHOD

    def fit(
        self,
        table: AnyTable | OwnersTables,
        schema: AnySchema,
        *,
        tell: Reporter = silent,
        person: str = "",
        announce: Callable[[Study], None] | None = None,
    ) -> FittedStudy:
        """Learn a model of the rows at a cost of exactly `epsilon`.

        The schema is the public domains, or the file that holds them; `tell` is told how far the
        work is. With a linked schema the table is (people, events), which `person` joins.
        `announce` sees the study before anything is spent.

        Raises:
            InputError: a table that does not fit the schema, or an option that cannot be had.
        """
        warn_of_large(self.epsilon)
        terms = {
            "epsilon": self.epsilon, "delta": self.delta, "aggregation": "masked",
            "curator": self.signer, "analyses": self.analyses, "others": self.others,
            "method": self.method,
        }  # fmt: skip
        owners = {OWNER: cast("OwnersTables", table)}
        heard = announce or (lambda study: None)
        return run_in_process(
            owners, schema, terms, seed=self.seed, tell=tell, person=person, announce=heard
        )


@dataclass(kw_only=True)
class PrivBayes(Maker):
    """How to make a model; `fit` makes it.

    Args:
        epsilon: the budget, spent exactly. Text and fractions are taken as written.
        encoding: "binary", "gray", "vanilla" or "hierarchical"; chosen by the schema if None.
        score: "I", "F" or "R"; F on bits and R otherwise if None.
        beta: the share of the budget that learns the network.
        theta: how far the average cell of a table must stand above its noise.
        max_parents: the most parents an attribute may have.
        required: edges (parent, child) that must be there, by name.
        forbidden: edges that must not be there.
        network: the parents of each attribute, by name; then nothing is learnt.
        consistency: make overlapping noisy tables agree before they are used.
        printed_sensitivity: the paper's looser bound for score R, to reproduce its figures.
        most_candidate_cells: on bits, a cap on the cells of all candidates' tables together; a
            caution says where it makes tables smaller.
        most_parent_sets: elsewhere, a cap on the maximal parent sets of an attribute.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
    """

    epsilon: str | Fraction | int | float = 1.0
    encoding: str | None = None
    score: str | None = None
    beta: str | Fraction | float = 0.3
    theta: str | Fraction | float = 4
    max_parents: int | None = None
    required: Sequence[tuple[str, str]] = ()
    forbidden: Sequence[tuple[str, str]] = ()
    network: Mapping[str, Sequence[str]] | None = None
    consistency: bool = True
    printed_sensitivity: bool = False
    most_candidate_cells: int = MOST_CANDIDATE_CELLS
    most_parent_sets: int = MOST_PARENT_SETS
    seed: int | None = None

    def fit(
        self, table: AnyTable, schema: AnySchema, *, tell: Reporter = silent
    ) -> FittedPrivBayes:
        """Learn a model of the rows at a cost of exactly `epsilon`; see `Subn.fit`."""
        warn_of_large(self.epsilon)
        domains = as_schema(schema)
        epsilon = parse_epsilon(self.epsilon, "epsilon")
        options = self._options(domains)
        codes, columns = encode(table, domains)
        source = source_of(self.seed, "model")
        accountant = TellingAccountant(epsilon, tell)
        model = fit_privbayes(
            codes,
            epsilon=epsilon,
            source=source,
            accountant=accountant,
            hierarchies=[attribute.hierarchy for attribute in domains.attributes],
            options=options,
        )
        privacy = statement_of(epsilon, accountant, source)
        return FittedPrivBayes(
            model=model.within(domains.possible),
            schema=domains,
            privacy=privacy,
            columns=columns,
            seed=self.seed,
        )

    def _options(self, schema: Schema) -> PrivBayesOptions:
        network = None
        if self.network is not None:
            if missing := [name for name in schema.names if name not in self.network]:
                raise InputError(f"the network does not say what the parents of {missing[0]!r} are")
            network = Network.from_parents(
                {
                    schema.position(child): [schema.position(parent) for parent in parents]
                    for child, parents in self.network.items()
                }
            )
        return PrivBayesOptions(
            encoding=None if self.encoding is None else _choice(Encoding, self.encoding),
            score=None if self.score is None else _choice(Score, self.score),
            beta=parse_epsilon(self.beta, "beta"),
            theta=parse_epsilon(self.theta, "theta"),
            constraints=Constraints(
                _edges(schema, self.required), _edges(schema, self.forbidden), self.max_parents
            ),
            network=network,
            consistency=self.consistency,
            printed_sensitivity=self.printed_sensitivity,
            most_candidate_cells=self.most_candidate_cells,
            most_parent_sets=self.most_parent_sets,
        )


def _edges(schema: Schema, named: Sequence[tuple[str, str]]) -> frozenset[tuple[int, int]]:
    return frozenset((schema.position(parent), schema.position(child)) for parent, child in named)


def _choice(kind: Any, written: str) -> Any:  # noqa: ANN401  (one of two enumerations)
    try:
        return kind(written)
    except ValueError:
        known = ", ".join(str(member) for member in kind)
        raise InputError(
            f"there is no {kind.__name__.lower()} {written!r}; there are {known}"
        ) from None


@dataclass(kw_only=True)
class Privelet(Maker):
    """How to make a range release; `fit` makes it.

    Args:
        epsilon: the budget, spent exactly. Text and fractions are taken as written.
        method: "basic", "privelet", "privelet+" or "privelet*"; see `common.wavelet.privelet`.
        untransformed: for the last two, the attributes that are left alone, by name; a rule
            ("exact" or "bound") chooses them.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
    """

    epsilon: str | Fraction | int | float = 1.0
    method: str = "privelet+"
    untransformed: str | Sequence[str] = "exact"
    seed: int | None = None

    def fit(self, table: AnyTable, schema: AnySchema, *, tell: Reporter = silent) -> FittedPrivelet:
        """Count every cell under noise, at a cost of exactly `epsilon`; see `Subn.fit`.

        A domain that is too large is refused, with InputError.
        """
        if self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}; there are {', '.join(METHODS)}")
        warn_of_large(self.epsilon)
        domains = as_schema(schema)
        epsilon = parse_epsilon(self.epsilon, "epsilon")
        choices: dict[str, Any] = {"method": self.method, "untransformed": self.untransformed}
        plan_privelet(domains, epsilon, **choices)  # refuse a domain too large before encoding
        codes, columns = encode(table, domains)
        source = source_of(self.seed, "noise")
        accountant = TellingAccountant(epsilon, tell)
        ranges = privelet(
            codes,
            domains,
            epsilon=epsilon,
            source=source,
            accountant=accountant,
            party=OWNER,
            **choices,
        )
        privacy = statement_of(epsilon, accountant, source)
        return FittedPrivelet(
            ranges=ranges, schema=domains, privacy=privacy, columns=columns, seed=self.seed
        )
