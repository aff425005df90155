"""DP-SUBN [Su16], Figs 4 to 8, and noise replacement against cohorts at the same true epsilon.

The studies run in one copy of their script (`OneCopy`): the noise is that of a deployment.
Bytes are those of Paillier sums between the roles of a deployment, in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from typing import cast

import numpy as np

from benchmarks.measuring import Measured, Row, error_rate, sweep
from benchmarks.papers.figure import Figure, Options
from benchmarks.papers.marginal_methods import average_distance, covering_design, from_views
from benchmarks.papers.privbayes_figures import table
from benchmarks.research_tables import Target
from benchmarks.subn_data import IN_BITS, ORDERS, RANDOM, Setting, split_rows
from benchmarks.subn_methods import Method, OneCopy, identities_of, study_of
from common.bayes.form import Model
from common.crypto.sums.plan import Aggregation, SumPlan
from common.methods.designs.nocd import Design, optimal_design, printed_design
from common.methods.distdiffgen.divisions import SCORES
from common.methods.distdiffgen.script import IN_TURN, TOGETHER
from common.methods.dp_subn.decisions import SubnDecisions
from common.methods.independent import StackedModels
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, binarise
from common.study.requests import Counts
from common.study.steps import Step
from parley.simulation.in_process import run_study

PARTIES = 3
OF_PARTIES = (2, 4, 6, 8, 10)
OF_BYTES = (2, 4, 8, 16)
AT = Fraction(1, 5)


LITERAL = (("usefulness", "total"),)
# Of `sound`, as the paper splits epsilon and clips tables; new studies have them by forecast.
PRINTED = (("budget", "1:1:1:1"), ("consistency", "off"), ("reuse", "off"))
CONSISTENT = (("consistency", "on"),)
VARIANTS: Mapping[str, Method] = {
    "DP-SUBN, as printed": Method("dp-subn", "paper"),
    "DP-SUBN, as printed, usefulness of all epsilon": Method("dp-subn", "paper", LITERAL),
    "DP-SUBN, sound": Method("dp-subn", settings=PRINTED),
    "DP-SUBN, sound, usefulness of all epsilon": Method("dp-subn", settings=(*PRINTED, *LITERAL)),
    "DP-CCBN": Method("dp-ccbn", "paper"),
    "Independent": Method("independent"),
}

HALF = (("budget", "1:1:1:3"),)
BUDGETS: Mapping[str, Method] = {
    f"DP-SUBN, k = {degree}, {part} for tables": Method(
        "dp-subn", "paper", (*budget, ("degree", degree))
    )
    for degree in (1, 2)
    for part, budget in (("a quarter", ()), ("half", HALF))
} | {"DP-CCBN": Method("dp-ccbn", "paper")}


@cache
def adult() -> Setting:
    """Return the paper's table, judged in 52 bits."""
    return Setting(IN_BITS, table("Adult"))


def drawn(
    codes: Codes,
    parties: int,
    epsilon: Fraction,
    method: Method,
    run: int,
    copy: type[OneCopy] = OneCopy,
) -> Codes:
    """Synthetic rows of a study of these rows, dealt out at random."""
    tables = split_rows(codes, parties, RANDOM, run)
    model = copy(
        study_of(adult(), tables, epsilon, method), tables, SeededRandomSource(f"{run}")
    ).model()
    return model.sample(codes.rows, SeededRandomSource(f"rows {run}"))


def marginals(
    parties: int, epsilon: Fraction, method: Method, run: int, copy: type[OneCopy] = OneCopy
) -> Measured:
    """Yield the distances of the 2-way and 3-way marginals of the bits."""
    rows = drawn(adult().dataset.codes, parties, epsilon, method, run, copy)
    for order, found in zip(ORDERS, adult().distances(rows).values(), strict=True):
        yield {"marginals": f"{order}-way"}, found


def svms(parties: int, epsilon: Fraction, method: Method, run: int) -> Measured:
    """Yield the errors of the paper's two classifiers."""
    train, test = adult().halves
    rows = drawn(train, parties, epsilon, method, run)
    for target in adult().targets:
        yield {"task": target[0]}, error_rate(rows, test, target)


Judge = Callable[[int, Fraction, Method, int], Measured]


def compared(
    columns: Mapping[str, tuple[int, Fraction]],
    options: Options,
    judge: Judge,
    variants: Mapping[str, Method] = VARIANTS,
) -> list[Row]:
    """Measure every method at every number of owners and epsilon."""

    def measure(value: tuple[int, Fraction], run: int) -> Measured:
        for label, method in variants.items():
            for labels, found in judge(*value, method, run):
                yield {"method": label, **labels}, found

    return sweep(columns, options.runs, measure)


def by_epsilon(options: Options, *, judge: Judge) -> list[Row]:
    """Fig. 4."""
    columns = {heading: (PARTIES, epsilon) for heading, epsilon in options.by_epsilon.items()}
    return compared(columns, options, judge)


def by_parties(options: Options, *, judge: Judge) -> list[Row]:
    """Fig. 5, at the paper's own epsilon."""
    return compared({f"K = {parties}": (parties, AT) for parties in OF_PARTIES}, options, judge)


class OneShare(OneCopy):
    """A study whose every sum carries one share of noise, whatever its profile."""

    def noise(self, step: Step, plan: SumPlan) -> Counts:
        """Draw one share."""
        return step.noise_law.draw(step.cells, self.source)


class Distributed(OneCopy):
    """A study whose every sum carries distributed shares; noise replacement keeps one share."""

    def noise(self, step: Step, plan: SumPlan) -> Counts:
        """Draw a share of every party, enough without one of them."""
        parties = len(step.parties)
        makers = max(1, parties - 1)
        shares = (
            step.noise_law.draw_share(step.cells, makers=makers, source=self.source)
            for _ in range(parties)
        )
        return np.asarray(np.sum(list(shares), axis=0), dtype=np.int64)


class WithoutConsistency(OneCopy):
    """Independent with every owner's tables as they were measured."""

    def model(self) -> Model:
        """Return the models without the step that makes their tables agree."""
        stacked = cast(StackedModels, super().model())
        return StackedModels(tuple(replace(own, consistency=False) for own in stacked.models))


class ExactTables(OneCopy):
    """A study whose last sum, the tables of the network, has no noise: only structure can err."""

    def noise(self, step: Step, plan: SumPlan) -> Counts:
        """Draw noise in every other phase."""
        drawn = super().noise(step, plan)
        return np.zeros_like(drawn) if step.phase == "parameters" else drawn


NOISES: Mapping[str, type[OneCopy]] = {
    "one share": OneShare,
    "distributed shares": Distributed,
    "exact": ExactTables,
}


def structure_by_parties(options: Options) -> list[Row]:
    """Fig. 5 with exact tables: whether the networks get better with K."""
    columns = {f"K = {parties}": (parties, AT) for parties in OF_PARTIES}
    variants = {label: each for label, each in VARIANTS.items() if LITERAL[0] in each.settings}
    return compared(columns, options, partial(marginals, copy=ExactTables), variants)


def by_budget(options: Options) -> list[Row]:
    """DP-SUBN with DP-CCBN's degree and part of epsilon for the tables, one after the other."""
    columns = {heading: (PARTIES, epsilon) for heading, epsilon in options.by_epsilon.items()}
    return compared(columns, options, marginals, BUDGETS)


def alike(options: Options) -> list[Row]:
    """Fig. 4 with the same estimates on both sides: tables as measured, or made consistent.

    Once with the parts of epsilon that the paper prints, and once with Independent's 7/10 for the
    tables.
    """
    splits = {"as printed": ((), ()), "7/10": ((("budget", "1:1:1:7"),), (("budget", "3:7"),))}

    def measure(epsilon: Fraction, run: int) -> Measured:
        for tables, own, copy in (
            ("as measured", (), WithoutConsistency),
            ("consistent", CONSISTENT, OneCopy),
        ):
            for part, (of_subn, of_ccbn) in splits.items():
                for label, name, split in (
                    ("DP-SUBN", "dp-subn", of_subn),
                    ("DP-CCBN", "dp-ccbn", of_ccbn),
                ):
                    method = Method(name, "paper", (*split, *own))
                    for labels, found in marginals(PARTIES, epsilon, method, run):
                        yield {"method": label, "part": part, "tables": tables, **labels}, found
            for labels, found in marginals(PARTIES, epsilon, VARIANTS["Independent"], run, copy):
                yield {"method": "Independent", "part": "7/10", "tables": tables, **labels}, found

    return sweep(options.by_epsilon, options.runs, measure)


def distdiffgen_error(
    target: Target, epsilon: Fraction, run: int, settings: Mapping[str, str | int]
) -> float:
    """Return the error of one of the two classifiers by DistDiffGen, on half of epsilon."""
    train, test = adult().halves
    chosen = tuple(sorted({**settings, "target": f"c{target[1]}"}.items()))
    method = Method("distdiffgen", settings=chosen, in_bits=False)
    return error_rate(drawn(train, 2, epsilon / 2, method, run), test, target)


def more_divisions(options: Options) -> list[Row]:
    """DistDiffGen of Fig. 6 by its number of divisions: the paper's reason is too many groups."""

    def measure(epsilon: Fraction, run: int) -> Measured:
        for target, score, divisions in product(adult().targets, SCORES, (5, 10, 20, 40)):
            settings: dict[str, str | int] = {"score": score, "divisions": divisions}
            yield {"task": target[0], **settings}, distdiffgen_error(target, epsilon, run, settings)

    return sweep(options.by_epsilon, options.runs, measure)


def against_distdiffgen(options: Options) -> list[Row]:
    """Measure Fig. 6: two owners, two classifiers; DistDiffGen spends half of epsilon on each."""
    test = adult().halves[1]

    def measure(epsilon: Fraction, run: int) -> Measured:
        for labels, found in svms(
            2, epsilon, Method("dp-subn", settings=(*PRINTED, *LITERAL)), run
        ):
            yield {**labels, "method": "DP-SUBN, sound"}, found
        for target in adult().targets:
            task, column, positive = target
            for score, choices in product(SCORES, (TOGETHER, IN_TURN)):
                labels = {"task": task, "method": f"DistDiffGen, {score}, {choices}"}
                settings = {"choices": choices, "score": score}
                yield labels, distdiffgen_error(target, epsilon, run, settings)
            positives = float(positive(np.asarray(test.columns[column])).mean())
            yield {"task": task, "method": "majority"}, min(positives, 1 - positives)

    return sweep(options.by_epsilon, options.runs, measure)


def _sorted(design: Design) -> Design:
    """Return a design with the attributes of every view in order."""
    return Design(tuple(tuple(sorted(view)) for view in design.views), design.sizes)


def views(options: Options) -> list[Row]:
    """Fig. 7: NOCD against PriView, both with and without PriView's consistency of views."""
    codes = binarise(adult().dataset.codes)
    designs = {
        "NOCD, optimal": optimal_design(codes.sizes),
        "NOCD, primes": optimal_design(codes.sizes, orders="primes"),
        "NOCD, as printed": printed_design(codes.width),
        "PriView": covering_design(codes.sizes),
        "direct pairs": Design(tuple(combinations(range(codes.width), 2)), codes.sizes),
    }

    def measure(epsilon: Fraction, run: int) -> Measured:
        for label, design in designs.items():
            for consistent in (False, True):
                source = SeededRandomSource(f"{run}")
                tables = from_views(
                    codes, _sorted(design), 2, epsilon, source, consistent=consistent
                )
                labels = {"views": label, "number": len(design.views), "consistent": consistent}
                yield labels, average_distance(codes, tables, 2)

    return sweep(options.by_epsilon, options.runs, measure)


def wire(options: Options) -> list[Row]:
    """Fig. 8: bytes of all owners together, by their number, under Paillier."""
    distdiffgen = Method("distdiffgen", settings=(("target", "c14"),), in_bits=False)
    lines: list[Row] = []
    for label, variant in {**VARIANTS, "DistDiffGen": distdiffgen}.items():
        line: Row = {"method": label, "bytes": "all"}
        published: Row = {"method": label, "bytes": "results of steps"}
        for parties in OF_BYTES if variant is not distdiffgen else (2,):
            tables = split_rows(adult().dataset.codes, parties, RANDOM, 1)
            sealed = {"aggregation": Aggregation.PAILLIER}
            study = study_of(adult(), tables, Fraction(4, 5), variant, **sealed)
            own = identities_of(tables)
            run = run_study(study, run_of, tables, own, source=SeededRandomSource("bytes"))
            phases = run.traffic.values()
            moved = sum(phase.sent.total() + phase.received.total() for phase in phases)
            line[f"K = {parties}"] = f"{moved:,}"
            published[f"K = {parties}"] = f"{sum(map(len, run.results)) * parties:,}"
        lines += line, published
    return lines


def cohorts(options: Options) -> list[Row]:
    """Compare noise replacement and cohorts where party 1 pays one true epsilon.

    The studies differ in their update and in the noise of the other sums. So each update is also
    measured under the other noise, and with exact tables, where only the structure can err.
    """

    def measure(epsilon: Fraction, run: int) -> Measured:
        for parties in (3, 10):
            # Party 1 pays eps/4 three times and K times its part of the update: a Kth of eps/4.
            spread = (("budget", f"{parties}:{parties}:1:{parties}"), *LITERAL)
            cheaper = epsilon * Fraction(3 * parties + 1, 4 * parties)
            replacement = Method("dp-subn", "paper", (*spread, ("views", "optimal")))
            one, two = (
                Method("dp-subn", settings=(*PRINTED, *LITERAL, ("degree", k))) for k in (1, 2)
            )
            for label, method, total in (
                ("1 cohort", Method("dp-subn", settings=(*PRINTED, *LITERAL)), epsilon),
                ("1 cohort, k = 1", one, epsilon),
                ("1 cohort, k = 2", two, epsilon),
                (
                    "K cohorts",
                    Method("dp-subn", settings=(*PRINTED, *LITERAL), cohorts=parties),
                    epsilon,
                ),
                ("replacement at its true cost", replacement, cheaper),
            ):
                for noise, copy in NOISES.items():
                    found = marginals(parties, total, method, run, copy)
                    labels = {"K": parties, "structure update": label, "tables": noise}
                    yield labels, next(found)[1]

    return sweep(options.by_epsilon, options.runs, measure)


def degrees(options: Options) -> list[Row]:
    """List the degrees k and k' of the paper's setting, by both readings of usefulness."""
    tables = split_rows(adult().dataset.codes, PARTIES, RANDOM, 1)
    lines: list[Row] = []
    for label, settings in (("of the phase", ()), ("of all epsilon", LITERAL)):
        line: Row = {"usefulness": label}
        for heading, epsilon in options.by_epsilon.items():
            plan = SubnDecisions.of(
                study_of(adult(), tables, epsilon, Method("dp-subn", "paper", settings))
            )
            line[heading] = f"{plan.network.parents}, {plan.frontier.parents}"
        lines.append(line)
    return lines


FIGURES = (
    Figure(
        name="subn-4", paper="[Su16] Fig. 4 (a), (b)",
        shows="distance of the marginals of Adult's 52 bits by epsilon, K = 3; tables of no method "
        "or of every method made consistent",
        trend="DP-SUBN < DP-CCBN < Independent", run=alike,
    ),
    Figure(
        name="subn-4c", paper="[Su16] Fig. 4 (c), (d)",
        shows="error of two SVMs of Adult by epsilon, K = 3",
        trend="DP-SUBN < DP-CCBN < Independent", run=partial(by_epsilon, judge=svms),
    ),
    Figure(
        name="subn-5", paper="[Su16] Fig. 5 (a), (b)",
        shows="distance of marginals by the number of owners, epsilon 0.2",
        trend="DP-SUBN improves slightly with K, DP-CCBN stays, Independent degrades",
        run=partial(by_parties, judge=marginals),
    ),
    Figure(
        name="subn-5c", paper="[Su16] Fig. 5 (c), (d)",
        shows="error of two SVMs of Adult by the number of owners, epsilon 0.2",
        trend="DP-SUBN improves slightly with K, DP-CCBN stays, Independent degrades",
        run=partial(by_parties, judge=svms),
    ),
    Figure(
        name="subn-4-budget", paper="not in a paper",
        shows="Fig. 4 (a), (b) with k and the tables' part of epsilon as in DP-CCBN",
        run=by_budget,
    ),
    Figure(
        name="subn-5-structure", paper="not in a paper",
        shows="Fig. 5 (a), (b) with exact tables of the network: error of the structure alone",
        run=structure_by_parties,
    ),
    Figure(
        name="subn-4-readings", paper="not in a paper",
        shows="Fig. 4 (a), (b) by both readings of usefulness and in both profiles; tables clipped",
        run=partial(by_epsilon, judge=marginals),
    ),
    Figure(
        name="subn-6-divisions", paper="not in a paper",
        shows="DistDiffGen of Fig. 6 by its number of divisions", run=more_divisions,
    ),
    Figure(
        name="subn-6", paper="[Su16] Fig. 6",
        shows="error of two SVMs of Adult, two owners, against DistDiffGen",
        trend="DP-SUBN is better, more so for education", run=against_distdiffgen,
    ),
    Figure(
        name="subn-7", paper="[Su16] Fig. 7",
        shows="distance of 2-way marginals out of views, NOCD against PriView",
        trend="NOCD is better at every epsilon", run=views,
    ),
    Figure(
        name="subn-8", paper="[Su16] Fig. 8",
        shows="bytes of all owners by their number, Paillier with 2048 bits, epsilon 0.8",
        trend="DP-SUBN is far below DP-CCBN, and below DistDiffGen at K = 2", run=wire,
    ),
    Figure(
        name="cohorts", paper="not in a paper",
        shows="distance of 2-way marginals, cohorts against noise replacement at one true epsilon",
        run=cohorts,
    ),
    Figure(
        name="degrees", paper="[Su16] section VII",
        shows="k and k' on Adult's 52 bits by epsilon", run=degrees,
    ),
)  # fmt: skip
