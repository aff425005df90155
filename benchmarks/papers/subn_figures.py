"""DP-SUBN [Su16], Figs 4 to 8, and noise replacement against cohorts at the same true epsilon.

The studies run through the roles of a deployment, with sums in the clear: the noise is the same.
Bytes are those of Paillier sums, by the rules that the roles follow (`parley.forecast`), from the
steps of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from statistics import fmean

import numpy as np

from benchmarks.covering import covering_design
from benchmarks.papers.figure import Figure, Options, Row
from benchmarks.papers.marginal_methods import average_distance, from_views
from benchmarks.papers.privbayes_figures import table
from benchmarks.privbayes import distance, error_rate
from benchmarks.subn_data import IN_BITS, RANDOM, Setting, split_rows
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation, Noise
from common.methods.designs.nocd import Design, optimal_design, printed_design
from common.methods.dp_subn.decisions import Plan
from common.methods.registry import run_of
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes
from common.schema.encodings import binarise
from common.study.document import Member, Study
from parley.forecast.expected_traffic import expected_traffic
from parley.forecast.unit_costs import UnitCosts, measure
from parley.simulation.in_process import Run, run_study

PARTIES = 3
OF_PARTIES = (2, 4, 6, 8, 10)
OF_BYTES = (2, 4, 8, 16)
AT = Fraction(1, 5)
_TASKS = ("salary", "degree")


@dataclass(frozen=True)
class Variant:
    """A method with its settings."""

    method: str
    profile: str = "sound"
    settings: tuple[tuple[str, str | int], ...] = ()
    encoding: str = "binary"
    cohorts: int = 1


LITERAL = (("usefulness", "total"),)
VARIANTS: Mapping[str, Variant] = {
    "DP-SUBN, as printed": Variant("dp-subn", "paper"),
    "DP-SUBN, as printed, usefulness of all epsilon": Variant("dp-subn", "paper", LITERAL),
    "DP-SUBN, sound": Variant("dp-subn"),
    "DP-CCBN": Variant("dp-ccbn", "paper"),
    "Independent": Variant("independent"),
}


@cache
def identity(name: str) -> Identity:
    """Keys for one run; a study cannot be written without."""
    return Identity.generate(SeededRandomSource(name))


def study_of(
    setting: Setting, tables: Mapping[str, Codes], epsilon: Fraction, variant: Variant
) -> Study:
    """The study that these owners would agree on."""
    return Study(
        name="benchmark",
        schema=setting.schema,
        members=tuple(
            Member(name=name, rows=own.rows, identity=identity(name).public)
            for name, own in tables.items()
        ),
        epsilon=epsilon,
        method=variant.method,
        profile=variant.profile,
        noise=Noise.ONE_SHARE if variant.profile == "paper" else Noise.DISTRIBUTED,
        aggregation=Aggregation.CLEAR,
        encoding=variant.encoding,
        cohorts=variant.cohorts,
        settings=variant.settings,
    )


def run_of_study(study: Study, tables: Mapping[str, Codes], seed: str) -> Run:
    """A run of all roles."""
    identities = {name: identity(name) for name in tables}
    return run_study(study, run_of, tables, identities, source=SeededRandomSource(seed))


def _distances(epsilon: Fraction, parties: int, variant: Variant, runs: int) -> tuple[float, ...]:
    """Of the 2-way and 3-way marginals of Adult's 52 bits, averaged over runs."""
    data = table("Adult")
    setting, real = Setting(IN_BITS, data), binarise(data.codes)
    found = []
    for run in range(runs):
        tables = split_rows(data.codes, parties, RANDOM, run)
        made = run_of_study(study_of(setting, tables, epsilon, variant), tables, f"{run}")
        drawn = made.model.sample(data.codes.rows, SeededRandomSource(f"rows {run}"))
        found.append([distance(real, binarise(drawn), order) for order in (2, 3)])
    return tuple(float(each) for each in np.mean(found, axis=0))


def by_epsilon(options: Options) -> list[Row]:
    """Fig. 4."""
    lines: list[Row] = []
    for label, variant in VARIANTS.items():
        pairs = {e: _distances(e, PARTIES, variant, options.runs) for e in options.epsilons}
        for place, order in enumerate((2, 3)):
            sweep = {f"{float(e):g}": each[place] for e, each in pairs.items()}
            lines.append({"method": label, "marginals": f"{order}-way", **sweep})
    return lines


def by_parties(options: Options) -> list[Row]:
    """Fig. 5, at the paper's own epsilon."""
    return [
        {"method": label}
        | {
            f"K = {parties}": _distances(AT, parties, variant, options.runs)[0]
            for parties in OF_PARTIES
        }
        for label, variant in VARIANTS.items()
    ]


def against_distdiffgen(options: Options) -> list[Row]:
    """Fig. 6: two owners, two classifiers; DistDiffGen spends half of epsilon on each."""
    data = table("Adult")
    order = np.random.default_rng(80).permutation(data.codes.rows)
    cut = data.codes.rows * 4 // 5
    train, test = data.codes.take(order[:cut]), data.codes.take(order[cut:])
    setting = Setting(IN_BITS, data)
    targets = {task: each for task in _TASKS for each in data.targets if each[0] == task}
    lines = {
        (task, label): Row(task=task, method=label)
        for task in _TASKS
        for label in ("DP-SUBN, sound", "DistDiffGen", "majority")
    }
    for epsilon in options.epsilons:
        rates: dict[tuple[str, str], list[float]] = {key: [] for key in lines}
        for run in range(options.runs):
            tables = split_rows(train, 2, RANDOM, run)
            for task, target in targets.items():
                chosen = (("target", f"c{target[1]}"),)
                for label, variant, budget in (
                    ("DP-SUBN, sound", Variant("dp-subn", settings=LITERAL), epsilon),
                    ("DistDiffGen", Variant("distdiffgen", "sound", chosen, "own"), epsilon / 2),
                ):
                    made = run_of_study(
                        study_of(setting, tables, budget, variant), tables, f"{run}"
                    )
                    drawn = made.model.sample(train.rows, SeededRandomSource(f"rows {run}"))
                    rates[task, label].append(error_rate(drawn, test, target))
                positive = target[2](np.asarray(test.columns[target[1]])).mean()
                rates[task, "majority"].append(float(min(positive, 1 - positive)))
        for key, values in rates.items():
            lines[key][f"{float(epsilon):g}"] = fmean(values)
    return list(lines.values())


def _sorted(design: Design) -> Design:
    """The same views with their attributes in order."""
    return Design(tuple(tuple(sorted(view)) for view in design.views), design.sizes)


def views(options: Options) -> list[Row]:
    """Fig. 7: NOCD against PriView with consistency and maximum entropy."""
    codes = binarise(table("Adult").codes)
    designs = {
        "NOCD, optimal": (optimal_design(codes.sizes), False),
        "NOCD, optimal, with consistency": (_sorted(optimal_design(codes.sizes)), True),
        "NOCD, as printed": (printed_design(codes.width), False),
        "PriView": (covering_design(codes.sizes), True),
        "PriView without consistency": (covering_design(codes.sizes), False),
    }
    lines: list[Row] = []
    for label, (design, consistent) in designs.items():
        line: Row = {"views": label, "number": len(design.views)}
        for epsilon in options.epsilons:
            line[f"{float(epsilon):g}"] = fmean(
                average_distance(
                    codes,
                    from_views(codes, design, 2, epsilon, SeededRandomSource(f"{run}"),
                               consistent=consistent),
                    2,
                )
                for run in range(options.runs)
            )  # fmt: skip
        lines.append(line)
    return lines


def wire(options: Options) -> list[Row]:
    """Fig. 8: bytes of all owners together, by their number, under Paillier."""
    data = table("Adult")
    setting = Setting(IN_BITS, data)
    lines: list[Row] = []
    costs: dict[tuple[str, int], UnitCosts] = {}
    for label, variant in {
        **VARIANTS, "DistDiffGen": Variant("distdiffgen", "sound", (("target", "c14"),), "own"),
    }.items():  # fmt: skip
        line: Row = {"method": label}
        for parties in OF_BYTES if label != "DistDiffGen" else (2,):
            tables = split_rows(data.codes, parties, RANDOM, 1)
            study = study_of(setting, tables, Fraction(4, 5), variant)
            made = run_of_study(study, tables, "bytes")
            sealed = replace(study, aggregation=Aggregation.PAILLIER)
            key = (sealed.noise.value, min(parties, 2))
            if key not in costs:
                costs[key] = measure(sealed)
            traffic = expected_traffic(sealed, made.steps, made.results, costs[key])
            line[f"K = {parties}"] = traffic.total
            line[f"published, K = {parties}"] = sum(map(len, made.results)) * parties
        lines.append(line)
    return lines


def cohorts(options: Options) -> list[Row]:
    """Noise replacement and cohorts where party 1 pays the same true epsilon."""
    lines: list[Row] = []
    for parties in (3, 10):
        for epsilon in options.epsilons:
            budget = (("budget", "1:1:1:1"), *LITERAL)
            # Party 1 pays eps/4 three times and K times its part of the update: a Kth of eps/4.
            spread = (("budget", f"{parties}:{parties}:1:{parties}"), *LITERAL)
            quarter = Fraction(3 * parties + 1, 4 * parties)
            line: Row = {"K": parties, "epsilon": float(epsilon)}
            for label, variant, total in (
                ("1 cohort", Variant("dp-subn", settings=budget), epsilon),
                ("K cohorts", Variant("dp-subn", settings=budget, cohorts=parties), epsilon),
                (
                    "replacement at its true cost",
                    Variant("dp-subn", "paper", tuple(sorted((*spread, ("views", "optimal"))))),
                    epsilon * quarter,
                ),
            ):
                line[label] = _distances(total, parties, variant, options.runs)[0]
            lines.append(line)
    return lines


def degrees(options: Options) -> list[Row]:
    """Both degrees, k and k', of the paper's setting, by both readings of usefulness."""
    data = table("Adult")
    tables = split_rows(data.codes, PARTIES, RANDOM, 1)
    lines: list[Row] = []
    for label, settings in (("of the phase", ()), ("of all epsilon", LITERAL)):
        line: Row = {"usefulness": label}
        for epsilon in options.epsilons:
            variant = Variant("dp-subn", "paper", settings)
            plan = Plan.of(study_of(Setting(IN_BITS, data), tables, epsilon, variant))
            line[f"{float(epsilon):g}"] = f"{plan.network.parents}, {plan.frontier.parents}"
        lines.append(line)
    return lines


FIGURES = (
    Figure(
        name="subn-4", paper="[Su16] Fig. 4",
        shows="distance of the marginals of Adult's 52 bits by epsilon, K = 3",
        trend="DP-SUBN < DP-CCBN < Independent", run=by_epsilon,
    ),
    Figure(
        name="subn-5", paper="[Su16] Fig. 5",
        shows="distance of 2-way marginals by the number of owners, epsilon 0.2",
        trend="DP-SUBN improves with K, Independent degrades", run=by_parties,
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
        trend="cohorts are at least as good (privacy.md)", run=cohorts,
    ),
    Figure(
        name="degrees", paper="[Su16] section VII",
        shows="k and k' on Adult's 52 bits by epsilon", run=degrees,
    ),
)  # fmt: skip
