"""Many small studies through one curator: `python -m tests.chaos.soak --studies 1000`.

Studies are offered in waves. After each wave, when every study of it is done, memory, descriptors,
threads and disk of every process are read. Exit code 1 if a study is not as it must be, or if one
of these grows by more than its bound for each study. The first quarter of the run is warm-up.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from common.crypto.sums.plan import Aggregation
from tests.chaos import checks
from tests.chaos.reporting import kept_or_temporary, report
from tests.chaos.world import World

_CLOSING_S = 0.5  # connections are closed after the last write of a study
_STUCK_S = 120.0  # without any change in any study
_WARM_UP = 4  # the first of so many parts of a run


@dataclass(frozen=True)
class Bound:
    """The most that something may grow: for each study, and besides in the whole run."""

    curator: float
    party: float
    slack: float

    def most(self, who, studies):
        """The largest slope allowed over so many studies."""
        return (self.curator if who == "curator" else self.party) + self.slack / studies


BOUNDS = {
    "memory kB": Bound(curator=64, party=32, slack=32 * 1024),
    "descriptors": Bound(curator=0.01, party=0.01, slack=8),
    "threads": Bound(curator=0.01, party=0.01, slack=16),
    "disk kB": Bound(curator=64, party=16, slack=512),
}


@dataclass(frozen=True)
class Growth:
    """One figure of one process: at the first sample, at the last, and its slope for each study."""

    who: str
    what: str
    first: float
    last: float
    slope: float
    most: float

    @property
    def row(self):
        slope = f"{self.slope:.3f} | {self.most:.3f}"
        return f"| {self.who} | {self.what} | {self.first:,.0f} | {self.last:,.0f} | {slope} |"


@dataclass
class Soak:
    """What a run did and measured."""

    done: int = 0
    seconds: float = 0.0
    samples: list = field(default_factory=list)  # (studies done, seconds, who, figures)
    violations: list = field(default_factory=list)

    def growth(self):
        """How everything grew, by a straight line through the samples after the warm-up."""
        for who in dict.fromkeys(sample[2] for sample in self.samples):
            own = [(at, figures) for at, _, name, figures in self.samples if name == who]
            own = [each for each in own if each[0] >= self.done / _WARM_UP] or own
            for what, bound in BOUNDS.items():
                yield _growth(who, what, own, bound)

    def summary(self):
        """Seconds for each study, in the first and in the last quarter of the samples."""
        times = list(dict(sample[:2] for sample in self.samples).items())
        if not times:
            return "not one wave of studies came to its end"
        part = max(1, len(times) // _WARM_UP)
        early = times[part - 1][1] / times[part - 1][0]
        (start, began), (end, ended) = (
            times[-part - 1] if len(times) > part else (0, 0.0),
            times[-1],
        )
        late = (ended - began) / (end - start)
        return (
            f"{self.done} studies in {self.seconds:.0f} s: {early:.2f} s for each in the first "
            f"quarter, {late:.2f} s in the last"
        )

    def table(self):
        head = "| process | figure | first | last | growth for each study | bound |"
        rows = [growth.row for growth in self.growth()]
        return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def run(folder, *, studies, parties, at_once, seconds, tell=lambda line: None):
    """Run the studies in waves; what came of them."""
    soak, began, offers = Soak(), time.monotonic(), []
    with World(folder, parties) as world:
        deadline = began + seconds
        while len(offers) < studies and time.monotonic() < deadline:
            numbers = range(len(offers), min(studies, len(offers) + at_once))
            wave = [_offer(world, number) for number in numbers]
            offers += wave
            checks.settle(world, wave, seconds=_STUCK_S)
            if world.violations:
                break
            soak.done, soak.seconds = checks.done(world, offers), time.monotonic() - began
            time.sleep(_CLOSING_S)
            for who in world.everybody:
                soak.samples.append((soak.done, soak.seconds, who, measure(world, who)))
            tell(f"{soak.done} studies done, {soak.seconds:.0f} s")
        if soak.done < studies:
            world.violations.append(f"only {soak.done} of {studies} studies in {seconds:.0f} s")
        checks.settle(world, offers, seconds=_STUCK_S)  # the earlier waves are as they were
        checks.check_ledgers(world)
        checks.check_logs(world)
    soak.violations = world.violations + [
        f"{each.who}: {each.what}: {each.slope:.3f} more for each study; at most {each.most:.3f}"
        for each in soak.growth()
        if each.slope > each.most
    ]
    return soak


def measure(world, who):
    """Memory, descriptors, threads and disk of a process."""
    place = Path("/proc") / str(world.processes[who].pid)
    status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    files = [each for each in (world.folder / who).rglob("*") if each.is_file()]
    return {
        "memory kB": int(status["VmRSS"].split()[0]),
        "descriptors": len(list((place / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "disk kB": sum(each.stat().st_blocks for each in files) / 2,
    }


def _growth(who, what, own, bound):
    at, values = [each[0] for each in own], [each[1][what] for each in own]
    slope = float(np.polyfit(at, values, 1)[0]) if len(at) > 1 else 0.0
    most = bound.most(who, max(1, at[-1] - at[0]))
    return Growth(who=who, what=what, first=values[0], last=values[-1], slope=slope, most=most)


def _offer(world, number):
    return world.offer(
        f"soak {number}", method="floor", aggregation=Aggregation.MASKED, epsilon=Fraction(1),
        output_rows=10,
    )  # fmt: skip


def main():
    """Read the command line, run, print the figures; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=12, help="studies of a wave")
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all of it")
    parser.add_argument("--folder", type=Path, help="Keep state and logs in this new folder.")
    chosen = vars(parser.parse_args())
    with kept_or_temporary(chosen.pop("folder")) as folder:
        soak = run(folder, tell=partial(print, file=sys.stderr), **chosen)
    print(soak.table(), soak.summary(), sep="\n\n")  # noqa: T201
    report(soak.violations)
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
