"""Bytes and seconds of whole studies under Paillier, against the formulas of the paper.

Every role and all cryptography run in this process, on 2048-bit keys. The formulas [Su16, VII] have
t_1 bits for a ciphertext and one ciphertext per cell; t_1 = 2048 here, and the views are ours,
which are fewer than those of the paper's own algorithm.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import RESULTS
from benchmarks.subn_data import RANDOM, Setting, split_rows
from benchmarks.subn_methods import METHODS, study_of
from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.methods.designs.nocd import optimal_design
from common.methods.dp_subn.families import frontier_limit, network_limit
from common.methods.registry import run_of
from common.methods.variables import Variables
from common.privacy.randomness import OsRandomSource
from common.study.document import Study
from common.study.transcript import transcript_of
from parley.simulation.in_process import run_study

PARTIES = 3
EPSILON = Fraction(4, 5)
CIPHERTEXT_BITS = 2048
TARGET_RATIO, TARGET_SECONDS = 30, 30


@dataclass(frozen=True)
class Measured:
    """One study on the wire."""

    method: str
    formula_bytes: int
    transcript: dict[str, Any]
    seconds: float
    processor_seconds: float
    rooms: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times fewer bytes than the formula."""
        return self.formula_bytes / float(self.transcript["bytes"])


def formula_bytes(study: Study) -> int:
    """What the paper's scheme would send for dp-subn with this study's degrees."""
    sizes = Variables(tuple(study.schema.sizes), in_bits=True).sizes
    quarter = study.epsilon / 4
    network = network_limit(sizes, study.rows, quarter)
    frontier = frontier_limit(sizes, study.rows, quarter, network)
    views = sum(1 << (len(view) + 2) for view in optimal_design(sizes).views)
    cells = ((len(sizes) - 1) << (frontier.parents + 2)) + views
    cells += (len(sizes) - network.parents) << (network.parents + 2)
    return len(study.members) * CIPHERTEXT_BITS * cells // 8


def measure(setting: Setting, label: str, *, profiled: bool = False) -> Measured:
    """One study with real keys, private randomness and envelopes."""
    source = OsRandomSource()
    tables = split_rows(setting.dataset.codes, PARTIES, RANDOM, seed=0)
    identities = {name: Identity.generate(source) for name in tables}
    study = study_of(setting, tables, EPSILON, METHODS[label], Aggregation.PAILLIER, identities)
    profile = cProfile.Profile()
    start, spent = time.perf_counter(), time.process_time()
    if profiled:
        profile.enable()
    run = run_study(study, run_of, tables, identities, source=source)
    run.model.sample(study.rows, source)
    profile.disable()
    return Measured(
        method=label,
        formula_bytes=formula_bytes(study),
        transcript=transcript_of(study, run.traffic),
        seconds=time.perf_counter() - start,
        processor_seconds=time.process_time() - spent,
        rooms=_by_room(profile) if profiled else {},
    )


def _by_room(profile: cProfile.Profile) -> dict[str, float]:
    """Own seconds by module of this project, and by library."""
    rooms: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (path, _, function), (_, _, own, _, _) in stats.stats.items():
        parts = PurePath(path).parts
        if "site-packages" in parts:
            rooms[parts[parts.index("site-packages") + 1]] += own
        elif path == "~":
            rooms["gmpy2" if "gmpy2" in function else f"built in: {function}"] += own
        else:
            rooms["/".join(parts[-3:])] += own
    return {room: round(seconds, 2) for room, seconds in rooms.most_common(12)}


def measure_wire(console: Console, setting: Setting, methods: Sequence[str]) -> str:
    """Bytes, ratio and seconds for each method, seconds by phase; also as Markdown."""
    labels = [m for m in ("dp-subn sound", "dp-subn paper", "subn+") if m in methods]
    if not labels:
        return ""
    measure(setting, labels[0])  # kernels are translated and the views searched once
    found = [measure(setting, label) for label in labels]
    where = measure(setting, labels[0], profiled=True).rooms
    header = [
        "method",
        "bytes",
        "paper's formula",
        "fewer by",
        "seconds",
        "of processor",
        "by phase",
    ]
    lines = [
        [
            each.method,
            f"{each.transcript['bytes']:,}",
            f"{each.formula_bytes:,}",
            f"{each.ratio:,.0f}x" + ("" if each.ratio >= TARGET_RATIO else " MISSED"),
            f"{each.seconds:.1f}" + ("" if each.seconds < TARGET_SECONDS else " MISSED"),
            f"{each.processor_seconds:.1f}",
            ", ".join(f"{n} {p['seconds']:.1f}" for n, p in each.transcript["phases"].items()),
        ]
        for each in found
    ]
    title = f"{setting.name}, K = {PARTIES}, epsilon {float(EPSILON):g}, 2048-bit keys"
    table = Table(*header, title=title)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    spent = ", ".join(f"{room} {seconds:g}" for room, seconds in where.items())
    console.print(f"own seconds of {labels[0]} under the profiler: {spent}", highlight=False)
    document = [each.__dict__ for each in found]
    (RESULTS / "subn-wire.json").write_text(json.dumps([document, where], indent=1))
    rows = [header, ["---"] * len(header), *lines]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"**{title}**\n\n{text}\n\nOwn seconds under the profiler: {spent}\n"
