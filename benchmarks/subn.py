"""Studies of several owners: bytes and seconds on the wire, then accuracy in every cell.

    python -m benchmarks.subn                            everything
    python -m benchmarks.subn --parts wire --table nltcs
    python -m benchmarks.subn --parts cells --tables adult --peers

`wire` runs whole studies of three owners, every role and all cryptography in this process, and
compares their bytes with the formulas of the paper [Su16, VII], which have t_1 bits for a
ciphertext and one ciphertext per cell; t_1 = 2048 here, and the views are ours, which are fewer
than those of the paper's own algorithm. `cells` is `python -m benchmarks.subn_cells`, which takes
all other options. The paper's own figures are those of `python -m benchmarks.papers`.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

from benchmarks import subn_cells
from benchmarks.measuring import Row, keep, show, spending
from benchmarks.research_tables import DATA
from benchmarks.subn_data import IN_BITS, NAMES, RANDOM, Setting, settings, split_rows
from benchmarks.subn_methods import METHODS, identities_of, study_of
from common.crypto.sums.plan import Aggregation
from common.methods.designs.nocd import optimal_design
from common.methods.dp_subn.decisions import frontier_limit, network_limit
from common.methods.network_model import Variables
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.study.document import Study
from parley.simulation.in_process import run_study

PARTS = ("wire", "cells")
PARTIES = 3
EPSILON = Fraction(4, 5)
CIPHERTEXT_BITS = 2048
STUDIES = (
    ("dp-subn sound", Aggregation.PAILLIER),
    ("dp-subn paper", Aggregation.PAILLIER),
    ("subn+", Aggregation.PAILLIER),
    ("subn+", Aggregation.MASKED),
)


def formula_bytes(study: Study) -> int:
    """Return what the paper's scheme would send for dp-subn with this study's degrees."""
    sizes = Variables(tuple(study.schema.sizes), in_bits=True).sizes
    quarter = study.epsilon / 4
    network = network_limit(sizes, study.rows, quarter)
    frontier = frontier_limit(sizes, study.rows, quarter, network)
    views = sum(1 << (len(view) + 2) for view in optimal_design(sizes).views)
    cells = ((len(sizes) - 1) << (frontier.parents + 2)) + views
    cells += (len(sizes) - network.parents) << (network.parents + 2)
    return len(study.members) * CIPHERTEXT_BITS * cells // 8


def measure(setting: Setting, label: str, aggregation: Aggregation) -> Row:
    """Run one study with real keys, private randomness and envelopes."""
    source = OsRandomSource()
    tables = split_rows(setting.dataset.codes, PARTIES, RANDOM, seed=0)
    terms = {"aggregation": aggregation}
    study = study_of(setting, tables, EPSILON, METHODS[label], **terms)
    with spending() as spent:
        run = run_study(study, run_of, tables, identities_of(tables), source=source)
        run.model.sample(study.rows, source)
    sent = sum(phase.sent.total() + phase.received.total() for phase in run.traffic.values())
    formula = formula_bytes(study)
    phases = (f"{name} {phase.seconds:.1f}" for name, phase in run.traffic.items())
    return {
        "method": label,
        "sums": aggregation.value,
        "bytes": sent,
        "paper's formula": formula,
        "fewer by": formula / sent,
        "seconds": spent.seconds,
        "of processor": spent.processor_seconds,
        "by phase": ", ".join(phases),
    }


def measure_wire(setting: Setting) -> None:
    """Print bytes and seconds of each study, and keep them."""
    measure(setting, *STUDIES[0])  # kernels are translated and the views searched once
    found = [measure(setting, *study) for study in STUDIES]
    show(found, f"{setting.name}, K = {PARTIES}, epsilon {float(EPSILON):g}")
    keep("subn-wire", found)


def main() -> None:
    """Run the parts that are asked for."""
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--table", choices=NAMES, default=IN_BITS, help="of the wire")
    arguments, others = options.parse_known_args()
    subn_cells.parser().parse_args(others)  # refuse what is wrong before anything runs
    if "wire" in arguments.parts:
        found, _ = settings()
        if arguments.table in found:
            measure_wire(found[arguments.table])
        else:
            print(f"skipped: the rows of {arguments.table} are not in {DATA}")
    if "cells" in arguments.parts:
        subn_cells.main(others)


if __name__ == "__main__":
    main()
