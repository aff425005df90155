"""Batches of studies under random faults: `python -m tests.chaos --seconds 300 --seed 1`.

A curator and its parties run as the processes of a deployment, over mutual TLS on loopback. While a
batch of studies runs, processes are killed, stopped and suspended, disks fill up, clocks jump and
the curator is flooded, each for a few seconds. An observer keeps every message, charge and release
that it ever saw. After each batch everything is started again and must come to the end of an
undisturbed batch.

Exit code 1 on any violation. The seed repeats the studies and the faults, up to the timing of the
machine.
"""

import argparse
import random
import sys
import time
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

from common.crypto.sums.plan import Aggregation
from common.methods.registry import methods
from tests.chaos import checks
from tests.chaos.faults import AT_ONCE, KINDS, Faults
from tests.chaos.observer import Observer
from tests.chaos.reporting import kept_or_temporary, report
from tests.chaos.world import PER_STUDY, World

_EPSILONS = ("1", "1/2", "0.3", "2")
_WITH_EVERYBODY = 0.6
_REFUSED = 0.1
_PAUSE_S = 1.5
_MAY_MISS = 0.5
_WITHOUT_TURNS = ("dp-ccbn", "floor", "subn+")  # methods that can do without an owner
_ENOUGH = 4  # owners, for one of them to be missed
_DISK = "16m"


@dataclass(frozen=True)
class Options:
    """What a run does; see `--help`."""

    seed: int = 1
    parties: int = 4
    seconds: float = 300.0
    batches: int = 1000
    studies: int = 6
    faults: int = 15
    settle_s: float = 120.0
    kinds: tuple[str, ...] = tuple(KINDS)


@dataclass
class Figures:
    """What a run did and found."""

    options: Options
    seconds: float = 0.0
    studies: int = 0
    may_miss: int = 0
    refused: int = 0
    done: int = 0
    verified: int = 0
    longest_batch_s: float = 0.0
    faults: dict = field(default_factory=dict)
    gave_up: int = 0
    looks: int = 0
    skipped: int = 0
    no_disks: str = ""
    violations: list = field(default_factory=list)

    def rows(self):
        yield "studies offered", self.studies
        yield "of these, with may_miss", self.may_miss
        yield "done", self.done
        yield "verified, signed by all parties", self.verified
        yield "refused by a policy, as they must be", self.refused
        for kind in (*self.options.kinds, *AT_ONCE):
            skipped = kind == "full disk" and self.no_disks
            yield kind, f"skipped: {self.no_disks}" if skipped else self.faults.get(kind, 0)
        yield "services that gave up and were started again", self.gave_up
        yield "looks of the observer", f"{self.looks} ({self.skipped} more were locked out)"
        yield "longest batch, seconds", round(self.longest_batch_s)
        yield "seconds", round(self.seconds)
        yield "violations", len(self.violations)

    def table(self):
        lines = [f"| {what} | {value} |" for what, value in self.rows()]
        title = f"| chaos, seed {self.options.seed}, {self.options.parties} parties | |"
        return "\n".join([title, "|---|---|", *lines])


def run(folder, options, *, tell=lambda line: None):
    """Run batches until the time is over; what came of them."""
    figures, began = Figures(options), time.monotonic()
    chance = random.Random(options.seed)  # noqa: S311  # faults, not secrets
    disk = _DISK if "full disk" in options.kinds else None
    with World(folder, options.parties, disk=disk) as world, Observer(world) as observer:
        faults = Faults(world, chance, options.kinds)
        for number in range(options.batches):
            _run_batch(world, faults, chance, figures, number, began + options.seconds)
            figures.seconds = time.monotonic() - began
            tell(f"batch {number}: {figures.done} done, {faults.total} faults so far, "
                 f"{len(world.violations)} violations, {figures.seconds:.0f} s")  # fmt: skip
            if world.violations or figures.seconds > options.seconds:
                break
        observer.look()
        checks.check_ledgers(world)
        checks.check_logs(world)
    figures.faults = dict(faults.counts)
    figures.gave_up = world.gave_up.total()
    figures.looks, figures.skipped = observer.looks, observer.skipped
    figures.no_disks = world.no_disks
    figures.violations = world.violations
    return figures


def _run_batch(world, faults, chance, figures, number, until):
    began, options = time.monotonic(), figures.options
    offers = [_offer(world, chance, f"{number}-{i}") for i in range(options.studies)]
    wanted = [offer for offer in offers if not offer.refused]
    most = faults.total + options.faults
    while faults.total < most and time.monotonic() < until:
        if checks.done(world, wanted) == len(wanted):
            break
        faults.inject()
        time.sleep(chance.uniform(0, _PAUSE_S))
    checks.settle(world, offers, seconds=options.settle_s)
    figures.studies += len(offers)
    figures.may_miss += sum(offer.study.may_miss > 0 for offer in offers)
    figures.refused += len(offers) - len(wanted)
    figures.done += checks.done(world, wanted)
    figures.verified += checks.verify(world, wanted)
    figures.longest_batch_s = max(figures.longest_batch_s, time.monotonic() - began)


def _offer(world, chance, name):
    """A study of any method, aggregation and budget, with everybody or with some."""
    members = world.members
    if chance.random() > _WITH_EVERYBODY:
        members = chance.sample(members, chance.randint(2, len(members)))
    refused = chance.random() < _REFUSED
    method = chance.choice([name for name, each in methods().items() if not each.parties])
    aggregation, may_miss = chance.choice([Aggregation.MASKED, Aggregation.PAILLIER]), 0
    if len(members) >= _ENOUGH and chance.random() < _MAY_MISS:
        # No owner is away for long, so none may be missed.
        method, aggregation, may_miss = chance.choice(_WITHOUT_TURNS), Aggregation.MASKED, 1
    return world.offer(
        name,
        refused=refused,
        members=members,
        method=method,
        aggregation=aggregation,
        may_miss=may_miss,
        epsilon=Fraction(PER_STUDY + 1) if refused else Fraction(chance.choice(_EPSILONS)),
    )


def main():
    """Read the command line, run, print the figures; the exit code."""
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--parties", type=int, default=defaults.parties)
    parser.add_argument("--seconds", type=float, default=defaults.seconds, help="of faults")
    parser.add_argument("--batches", type=int, default=defaults.batches, help="at most")
    parser.add_argument("--studies", type=int, default=defaults.studies, help="of a batch")
    parser.add_argument("--faults", type=int, default=defaults.faults, help="of a batch, at most")
    parser.add_argument(
        "--settle-s", type=float, default=defaults.settle_s, help="without a change"
    )
    parser.add_argument("--kinds", nargs="+", default=defaults.kinds, choices=list(KINDS))
    parser.add_argument("--folder", type=Path, help="Keep settings and logs in this new folder.")
    chosen = vars(parser.parse_args())
    with kept_or_temporary(chosen.pop("folder")) as folder:
        figures = run(folder, Options(**chosen), tell=partial(print, file=sys.stderr))
    print(figures.table())  # noqa: T201
    report(figures.violations, figures.options.seed)
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main())
