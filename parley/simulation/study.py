"""`parley.simulate`: several owners' tables in, one synthetic table out, on one machine.

    >>> fitted = parley.simulate([north, east, south], "schema.toml", epsilon=0.8)
    >>> fitted.sample(1000)
    >>> fitted.privacy["parties"]

It runs the roles and the cryptography of a deployment. With aggregation="clear" sums are added up
in the clear, which is faster and NOT PRIVATE, and the privacy statement says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Unpack, cast

import pandas as pd

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.fitted.single_owner import (
    AnySchema,
    Owners,
    as_schema,
    encode,
    owners_of,
    warn_of_large,
)
from common.methods.criteria import verdicts
from common.methods.registry import method_of, new_study, run_of
from common.privacy.randomness import source_of
from common.release.prior import PriorRelease, read_prior
from common.release.synthetic_table import TableColumns
from common.schema import Codes, Schema
from common.schema.linked import encode_linked
from common.study.accounting import account, statement_of
from common.study.document import Study
from common.study.members import Member
from common.study.terms import Terms
from common.study.transcript import transcript_of
from common.wording import Reporter, silent
from parley.reader.fitted import FittedLinkedStudy, FittedStudy
from parley.simulation.in_process import run_study
from parley.simulation.linked_files import OwnersTables


def simulate(
    tables: Owners,
    schema: AnySchema,
    *,
    drop: Mapping[str, int] | None = None,
    prior: Path | str | None = None,
    seed: int | None = None,
    tell: Reporter = silent,
    person: str = "",
    **terms: Unpack[Terms],
) -> FittedStudy:
    """Run a study of several owners in this process.

    Args:
        tables: one per owner, by name or in order; with a linked schema, one pair of data frames
            per owner, people and their events.
        schema: the public domains, or the file that holds them.
        drop: to try `may_miss`: for each owner that vanishes, the first step (from 0) without it.
        prior: an earlier release of the same schema, a folder or a .zip, to build on.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
        tell: told how far the work is.
        person: with a linked schema, the column that says in both tables whose row it is.
        **terms: of the study; `epsilon` is required.
    """
    if "rows_per_person" in terms or "owners_per_person" in terms:
        raise InputError(
            "rows_per_person: a table in memory does not say whose row a row is. Run the study "
            "with the command `parley simulate --person`"
        )
    warn_of_large(terms.get("epsilon", 0))
    earlier = None if prior is None else read_prior(Path(prior))
    return run_in_process(
        tables, schema, terms, seed=seed, prior=earlier, drop=drop, tell=tell, person=person
    )


def run_in_process(
    tables: Owners | Mapping[str, OwnersTables],
    schema: AnySchema,
    terms: Mapping[str, object],
    *,
    seed: int | None,
    prior: PriorRelease | None = None,
    drop: Mapping[str, int] | None = None,
    tell: Reporter = silent,
    announce: Callable[[Study], None] = lambda study: None,
    person: str = "",
) -> FittedStudy:
    """`simulate`, with the terms of the study put together (see `Study.of`).

    `announce` sees the study before it runs.
    """
    domains = as_schema(schema)
    owners = owners_of(cast("Owners", tables))
    if domains.events is None:
        if person:
            raise InputError(
                "person: the schema has no [events] that it could join to people. Leave it out"
            )
        encoded = {name: encode(table, domains) for name, table in owners.items()}
    else:
        encoded = {name: _encode_linked(pair, domains, person) for name, pair in owners.items()}
    codes = {name: pair[0] for name, pair in encoded.items()}
    source = source_of(seed, "study")
    identities = {name: Identity.generate(source) for name in codes}
    terms = {
        "name": "simulation", "prior": prior and prior.digest, "seeded": not source.private, **terms
    }  # fmt: skip
    members = [
        Member(name=name, rows=table.rows, identity=identities[name].public)
        for name, table in codes.items()
    ]
    study = new_study(terms, schema=domains, members=members)
    announce(study)
    begin = run_of if prior is None else prior.begin
    run = run_study(study, begin, codes, identities, source=source, drop=drop, report=tell)
    statement = statement_of(
        study,
        method_of(study),
        account(study, run.steps),
        source_private=source.private,
        rows_agreed=not study.rows_per_person,  # here they are counted
        criteria=verdicts(study, run.steps, run.results, run.model),
        left=run.left,
    )
    columns = next(iter(encoded.values()))[1]
    kind = FittedStudy if domains.events is None else FittedLinkedStudy
    return kind(
        study=study,
        schema=domains,
        steps_and_model=(run.steps, run.model),
        results=run.results,
        privacy=statement.as_dict(),
        columns=columns,
        transcript=transcript_of(study, run.traffic, statement.missing),
        seed=seed,
        prior=prior,
        commitments=run.commitments,
    )


def _encode_linked(pair: object, schema: Schema, person: str) -> tuple[Codes, TableColumns]:
    """Return people with their events as codes, and the people's columns."""
    match pair:
        case (pd.DataFrame() as people, pd.DataFrame() as events):
            pass
        case _:
            raise InputError(
                "tables: the schema has [events], so an owner has two tables. Hand over "
                "(people, events), both data frames of pandas, for each owner"
            )
    if not person:
        raise InputError('person: name the column that joins people and events, as person="id"')
    codes = encode_linked(schema, people, events, person=person)
    return codes, TableColumns.of(people, schema)
