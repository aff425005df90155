"""What commitments cost a party: bytes and milliseconds, beside the same study without them.

python -m benchmarks.commitments --parties 3 20 100
"""

from __future__ import annotations

import argparse
import statistics
from fractions import Fraction

import numpy as np

from common.crypto.identities.identity import Identity
from common.crypto.sums.plan import Aggregation
from common.exchanges.setup import with_commitments, with_hybrid_masks
from common.methods.registry import run_of
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from common.study.document import Study
from common.study.members import Member
from parley.simulation.in_process import Run, run_study

_ROWS = 1_000
_SCHEMA = "\n".join(
    f'[[attribute]]\nname = "a{place}"\nkind = "categorical"\nvalues = ["x", "y", "z"]'
    for place in range(8)
)


def measure(parties: int, repeats: int) -> str:
    """Run a study with and without commitments; return a line of the table."""
    source, rng = OsRandomSource(), np.random.default_rng(1)
    schema = Schema.from_toml(_SCHEMA)
    identities = {f"p{place}": Identity.generate(source) for place in range(parties)}
    tables = {
        name: Codes.from_columns([rng.integers(0, 3, _ROWS) for _ in schema.sizes], schema.sizes)
        for name in identities
    }
    members = tuple(
        Member(name=name, rows=_ROWS, identity=each.public) for name, each in identities.items()
    )
    study = Study(
        name="cost", schema=schema, members=members, epsilon=Fraction(1), method="floor",
        aggregation=Aggregation.MASKED,
    )  # fmt: skip
    plain = with_hybrid_masks(study)
    runs = {
        kind: [run_study(each, run_of, tables, identities, source=source) for _ in range(repeats)]
        for kind, each in (("plain", plain), ("committed", with_commitments(plain)))
    }
    steps = len(runs["plain"][0].steps)
    more = _bytes(runs["committed"][0]) - _bytes(runs["plain"][0])
    ms = [1e3 * statistics.median(_seconds(run) for run in runs[kind]) for kind in runs]
    return (
        f"| {parties} | {steps} | {_bytes(runs['plain'][0]):,.0f} | {more:,.0f} | {ms[0]:.1f} | "
        f"{ms[1] - ms[0]:.1f} |"
    )


def _bytes(run: Run) -> float:
    """Return the bytes that a party sends and receives, on average."""
    both = [sum(each.sent.values()) + sum(each.received.values()) for each in run.traffic.values()]
    return sum(both) / len(run.seconds)


def _seconds(run: Run) -> float:
    return statistics.median(run.seconds.values())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[3, 20, 100])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    print("| owners | steps | bytes without | bytes more | ms without | ms more |")
    print("|---:|---:|---:|---:|---:|---:|")
    for parties in chosen.parties:
        print(measure(parties, chosen.repeats))


if __name__ == "__main__":
    main()
