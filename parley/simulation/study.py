"""`parley.simulate`: several owners' tables in, one synthetic table out, on one machine.

    >>> fitted = parley.simulate([north, east, south], "schema.toml", epsilon=0.8)
    >>> fitted.sample(1000)
    >>> fitted.privacy["parties"]

It runs the roles and the cryptography of a deployment. With aggregation="clear" sums are added up
in the clear, which is faster and NOT PRIVATE, and the privacy statement says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.fitted.single_owner import Table, as_schema, encode
from common.methods.criteria import verdicts
from common.methods.registry import method_of, new_study, run_of
from common.privacy.randomness import source_of
from common.release.prior import PriorRelease, read_prior
from common.schema import Schema
from common.study.accounting import account, statement_of
from common.study.document import DEFAULT_METHOD, Study
from common.study.members import Member
from common.study.transcript import transcript_of
from common.wording import Reporter, silent
from parley.reader.fitted import FittedStudy
from parley.simulation.in_process import run_study


def simulate(
    tables: Sequence[Table] | Mapping[str, Table],
    schema: Schema | Path | str,
    *,
    epsilon: str | Fraction | int | float,
    delta: str | Fraction | int | float = 0,
    method: str = DEFAULT_METHOD,
    profile: str = "sound",
    noise: str | None = None,
    aggregation: str = "paillier",
    colluders: int = 1,
    may_miss: int = 0,
    drop: Mapping[str, int] | None = None,
    cohorts: int = 1,
    key_bits: int = 2048,
    encoding: str = "own",
    settings: Mapping[str, str | int] | None = None,
    criteria: Sequence[Mapping[str, object]] = (),
    criteria_epsilon: str | Fraction | int | float | None = None,
    prior: Path | str | None = None,
    seed: int | None = None,
    tell: Reporter = silent,
) -> FittedStudy:
    """Run a study of several owners in this process.

    Args:
        tables: one per owner, by name or in order.
        schema: the public domains, or the file that holds them.
        epsilon: what each owner's rows may cost.
        delta: the probability outside of which epsilon holds; 0, the default, is pure epsilon. A
            small one, like 1e-9, allows much less noise.
        method: "subn+", "dp-subn", "dp-ccbn", "distdiffgen", "independent" or "floor".
        profile: "sound" or "paper".
        noise: "distributed" or "one-share"; by default what the profile calls for.
        aggregation: "paillier", "masked" or "clear" (NOT PRIVATE).
        colluders: up to how many other owners may pool what they know.
        may_miss: up to how many owners may go missing; the others finish. Masked sums only.
        drop: to try it: for each owner that vanishes, the first step (from 0) without it.
        cohorts: in how many releases dp-subn updates its structure.
        key_bits: of the curator's Paillier key.
        encoding: "own" domains, or "binary" as in the paper.
        settings: of the method, as in its table of study.toml: {"budget": "1:1:2:4"}.
        criteria: what the model must be good for: [{"mean": "income", "within": "3 %"}].
        criteria_epsilon: the part of epsilon that measuring them costs.
        prior: an earlier release of the same schema, a folder or a .zip, to build on.
        seed: makes the run repeatable and NOT PRIVATE: for experiments only.
        tell: told how far the work is.
    """
    terms = {
        "epsilon": epsilon, "delta": delta, "method": method, "profile": profile, "noise": noise,
        "aggregation": aggregation, "colluders": colluders, "may_miss": may_miss,
        "cohorts": cohorts, "key_bits": key_bits, "encoding": encoding, "settings": settings,
        "criterion": criteria, "criteria_epsilon": criteria_epsilon,
    }  # fmt: skip
    earlier = None if prior is None else read_prior(Path(prior))
    return run_in_process(tables, schema, terms, seed=seed, prior=earlier, drop=drop, tell=tell)


def run_in_process(
    tables: Sequence[Table] | Mapping[str, Table],
    schema: Schema | Path | str,
    terms: Mapping[str, object],
    *,
    seed: int | None,
    prior: PriorRelease | None = None,
    drop: Mapping[str, int] | None = None,
    tell: Reporter = silent,
    announce: Callable[[Study], None] = lambda study: None,
) -> FittedStudy:
    """`simulate`, with the terms of the study put together (see `Study.of`).

    `announce` sees the study before it runs.
    """
    domains = as_schema(schema)
    named = (
        tables
        if isinstance(tables, Mapping)
        else {f"party {number}": table for number, table in enumerate(tables, start=1)}
    )
    if not named:
        raise InputError("a study needs the table of at least one owner")
    encoded = {name: encode(table, domains) for name, table in named.items()}
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
    return FittedStudy(
        study=study,
        schema=domains,
        made=(run.steps, run.model),
        results=run.results,
        privacy=statement.as_dict(),
        columns=columns,
        transcript=transcript_of(study, run.traffic, statement.missing),
        seed=seed,
        prior=prior,
    )
