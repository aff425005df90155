"""What one more party costs: `python -m benchmarks.parties [--most 1000] [--plot FILE]`.

First, whole studies of 3 to 1,000 parties in one process, masked, with the roles, plans and
cryptography of a deployment: the processor time and the bytes of each party, and of the curator.
The parties share 30,000 rows, so that the rows cost the same at every K. Beside it, what masks for
every pair would cost. The same studies with may_miss = 1: all messages of recovery, nobody missing.

Second, the ring of ciphertexts over links that take their time: the same sum in chunks that follow
each other through the ring, against everything in one message. The roles compute for real, one
after the other; who would be busy when is worked out from what each call took and the links'
latency, as every party has a machine of its own.

Third, what the agreement of mask keys costs for one partner, once in a study: X25519 alone, and
with seeds under ML-KEM-768; and the keys of one sum where parties may go missing. `--agreement`
measures this alone.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import itertools
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.measuring import demo_population, keep, show
from benchmarks.subn_methods import agreed, identities_of
from common.crypto.framing import frame
from common.crypto.identities.identity import Identity, LocalParty
from common.crypto.paillier.blinding import FixedBaseBlinder
from common.crypto.paillier.keys import PrivateKey, generate_key_pair
from common.crypto.sums.agreement import SeedExchange, envelopes_in
from common.crypto.sums.masks import LEAST_CONNECTIVITY, PairwiseMasks
from common.crypto.sums.plan import Aggregation, Noise, SumPlan
from common.crypto.sums.recovery import RecoverableCurator, RecoverableParty
from common.exchanges.setup import with_hybrid_masks
from common.methods.registry import run_of
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import OsRandomSource
from common.schema import Codes, Schema
from common.study.sides import Post
from parley.simulation.in_process import run_roles
from parley.simulation.population import demo_schema_toml
from tests.harness.roles import accept, delivered, make_roles, sum_curator, sum_party

PARTIES = (3, 10, 30, 100, 300, 1000)
MAY_MISS_PARTIES = (10, 100, 1000)
ROWS = 30_000
_RING_PARTIES = (3, 10, 30)
_RING_CELLS = 20_000
_LATENCIES_S = (0.005, 0.05)


@dataclass(frozen=True)
class Cost:
    """One study; seconds are of the processor."""

    parties: int
    may_miss: int
    cells: int
    party_seconds: float
    party_sent: float
    party_received: float
    study_bytes: int
    masks_seconds: float
    all_pairs_seconds: float
    curator_seconds: float
    curator_received: int


@dataclass(frozen=True)
class RingTime:
    """One sum in a ring; seconds until the curator has the total."""

    parties: int
    latency_s: float
    chunks: int
    in_chunks_s: float
    in_one_s: float


def study_cost(codes: Codes, parties: int, may_miss: int = 0) -> Cost:
    """Run a whole study; return what it costs a party on average, and the curator."""
    parts = np.array_split(np.arange(codes.rows), parties)
    tables = {f"party {i}": codes.take(part) for i, part in enumerate(parts)}
    identities = identities_of(tables)
    terms = {"aggregation": Aggregation.MASKED, "may_miss": may_miss}
    schema = Schema.from_toml(demo_schema_toml())
    study = with_hybrid_masks(agreed(schema, tables, epsilon=Fraction(1), **terms))
    roles = make_roles(study, run_of, identities, tables, sources=lambda _: _private)
    gc.freeze()  # an owner's process does not search the objects of the other owners for garbage
    run = run_roles(*roles, clock=time.process_time)
    sent = sum(phase.sent.total() for phase in run.traffic.values())
    cells = sum(step.cells for step in run.steps)
    return Cost(
        parties=parties,
        may_miss=may_miss,
        cells=cells,
        party_seconds=sum(run.seconds.values()) / parties,
        party_sent=sent / parties,
        party_received=sum(phase.received.total() for phase in run.traffic.values()) / parties,
        study_bytes=len(study.to_toml().encode()),
        masks_seconds=mask_seconds(identities, cells, everybody=False),
        all_pairs_seconds=mask_seconds(identities, cells, everybody=True),
        curator_seconds=run.curator_s,
        curator_received=sent,
    )


def _private(step: int) -> OsRandomSource:
    return OsRandomSource()


def mask_seconds(identities: dict[str, Identity], cells: int, *, everybody: bool) -> float:
    """Time one party's masks for a sum of so many cells, key agreement included."""
    order = tuple(identities)
    roster = {name: identity.public for name, identity in identities.items()}
    member = LocalParty(name=order[0], identity=identities[order[0]], roster=roster)
    colluders = len(order) - 1 if everybody else 1
    begun = time.process_time()
    PairwiseMasks.agree(member, plan_digest=bytes(32), order=order, colluders=colluders).word_masks(
        first=0, count=cells
    )
    return time.process_time() - begun


def agreement_cost(partners: int = LEAST_CONNECTIVITY) -> list[dict[str, object]]:
    """Measure a party in the middle of its partners; bytes and processor time for one of them."""
    names = tuple(f"party {number}" for number in range(partners + 1))
    identities = {name: Identity.generate(OsRandomSource()) for name in names}
    roster = {name: identity.public for name, identity in identities.items()}
    members = {n: LocalParty(name=n, identity=identities[n], roster=roster) for n in names}
    half = partners // 2
    own = names[half]
    earlier = [
        SeedExchange(members[name], bytes(32), (), (own,)).offer(OsRandomSource())
        for name in names[:half]
    ]
    begun = time.process_time()
    for name in names:
        if name != own:
            identities[own].agree(roster[name])
    classical = time.process_time()
    exchange = SeedExchange(members[own], bytes(32), names[:half], names[half + 1 :])
    sent = exchange.offer(OsRandomSource())
    exchange.secrets(b"".join(earlier))
    hybrid = time.process_time()
    return [
        {"agreement": "X25519", "ms": 1e3 * (classical - begun) / partners, "bytes": 0},
        {"agreement": "hybrid", "ms": 1e3 * (hybrid - classical) / partners,
         "bytes": len(sent) / half},
    ]  # fmt: skip


def keys_cost(partners: int = LEAST_CONNECTIVITY) -> list[dict[str, object]]:
    """Measure what may_miss = 1 adds for one partner: seeds in a study, then keys of every sum."""
    names = tuple(f"party {number}" for number in range(partners + 1))
    source = OsRandomSource()
    identities = {name: Identity.generate(source) for name in names}
    roster = {name: identity.public for name, identity in identities.items()}
    members = {n: LocalParty(name=n, identity=identities[n], roster=roster) for n in names}
    others = {name: [other for other in names if other != name] for name in names}
    halves = {n: SeedExchange(members[n], bytes(32), others[n], others[n]) for n in names}
    begun = time.process_time()
    offers = {name: half.offer(source) for name, half in halves.items()}
    sealed = {
        (name, to): envelope
        for name in names
        for to, envelope in zip(
            others[name], envelopes_in(offers[name], count=partners, what=name), strict=True
        )
    }
    seeded = {
        name: half.secrets(frame(sealed[other, name] for other in others[name]))
        for name, half in halves.items()
    }
    exchanged = time.process_time() - begun
    pairs = len(names) * partners
    return [
        {"what": "seeds, once in a study", "ms": 1e3 * exchanged / pairs,
         "bytes": len(offers[names[0]]) / partners},
        *(_keys_of_a_sum(names, parties, hybrid=hybrid)
          for hybrid, parties in ((False, members), (True, seeded))),
    ]  # fmt: skip


def _keys_of_a_sum(
    names: tuple[str, ...], members: Mapping[str, LocalParty], *, hybrid: bool
) -> dict[str, object]:
    """Time keys, boxes and masks of a sum of one cell."""
    plan = SumPlan(
        study=bytes(32), step=0, cells=1, noise=Noise.DISTRIBUTED, may_miss=1, hybrid=hybrid,
        law=DiscreteLaplace(Fraction(1)), aggregation=Aggregation.MASKED, parties=names,
        limits=(1,) * len(names),
    )  # fmt: skip
    curator = RecoverableCurator(plan, members[names[0]].roster)
    source, spent, sent = OsRandomSource(), 0.0, 0
    parties = {}
    for name in names:
        begun = time.process_time()
        parties[name] = RecoverableParty(plan, members[name], source=source)
        offer = parties[name].offer()
        spent += time.process_time() - begun
        sent = len(offer)
        curator.take_offer(name, offer)
    relayed = curator.relay(())
    for name in names:
        begun = time.process_time()
        parties[name].take_boxes(relayed[name], ())
        parties[name].contribute(np.ones(1, np.int64), source=source)
        spent += time.process_time() - begun
    partners = len(names) - 1
    what = "hybrid" if hybrid else "X25519"
    return {
        "what": f"keys of a sum, {what}", "ms": 1e3 * spent / len(names) / partners,
        "bytes": sent / partners,
    }  # fmt: skip


def ring_time(key: PrivateKey, parties: int, latency_s: float) -> RingTime:
    """Time a sum in chunks of 32 ciphertexts, and in one message."""
    chunked = _ring_plan(key, parties, 32)
    whole = _ring_plan(key, parties, chunked.packing.plaintexts_for(_RING_CELLS))
    return RingTime(
        parties, latency_s, chunked.chunks,
        in_chunks_s=ring_seconds(chunked, key, latency_s),
        in_one_s=ring_seconds(whole, key, latency_s),
    )  # fmt: skip


def _ring_plan(key: PrivateKey, parties: int, chunk: int) -> SumPlan:
    return SumPlan(
        study=bytes(32), step=0, cells=_RING_CELLS, noise=Noise.DISTRIBUTED,
        law=DiscreteLaplace(Fraction(100)),
        aggregation=Aggregation.PAILLIER, public_key=key.public_key,
        parties=tuple(f"party {i}" for i in range(parties)), limits=(1000,) * parties,
        chunk_ciphertexts=chunk,
    )  # fmt: skip


def ring_seconds(plan: SumPlan, key: PrivateKey, latency_s: float) -> float:
    """Return when the last chunk is decrypted: roles compute one at a time, links only delay.

    An envelope goes by way of the curator, so it takes the latency twice. What a party does before
    anything arrives (its own ciphertexts) is ready at the start.
    """
    source = OsRandomSource()
    identities = {name: Identity.generate(source) for name in plan.parties}
    roster = {name: identity.public for name, identity in identities.items()}
    blinder = FixedBaseBlinder(key.public_key, source)
    curator = sum_curator(plan, private_key=key, source=source)
    values = np.arange(plan.cells, dtype=np.int64) % 1000
    roles = {}
    for name in plan.parties:
        member = LocalParty(name=name, identity=identities[name], roster=roster)
        roles[name] = sum_party(plan, member, values, source=source, blinder=blinder)
    free, order = defaultdict[str, float](float), itertools.count()
    arrivals: list[tuple[float, int, str, Post]] = []

    def send(sender: str, post: Post, at: float) -> None:
        hops = 2 if post.to else 1
        heapq.heappush(arrivals, (at + hops * latency_s, next(order), sender, post))

    first, begun = plan.parties[0], time.process_time()
    posts = roles[first].begin()
    free[first] = time.process_time() - begun
    for number, post in enumerate(posts, start=1):  # each leaves as soon as it is made
        send(first, post, free[first] * number / len(posts))
    while arrivals:
        at, _, sender, post = heapq.heappop(arrivals)
        who, begun = post.to or "curator", time.process_time()
        if post.to:
            answers = roles[who].receive(delivered(post, sender))
        else:
            answers = []
            accept(curator, sender, post)
        free[who] = max(free[who], at) + time.process_time() - begun
        for answer in answers:
            send(who, answer, free[who])
    curator.result()
    return free["curator"]


def tables(costs: list[Cost], recoverable: list[Cost], rings: list[RingTime]) -> None:
    """Print what a study costs, what it costs that a party may be missing, and the rings."""
    show(
        [
            {
                "K": c.parties, "ms": 1e3 * c.party_seconds, "ms of masks": 1e3 * c.masks_seconds,
                "all pairs would be": 1e3 * c.all_pairs_seconds, "kB sent": c.party_sent / 1e3,
                "kB received": c.party_received / 1e3, "study kB": c.study_bytes / 1e3,
                "curator s": c.curator_seconds,
                "curator ms/party": 1e3 * c.curator_seconds / c.parties,
            }
            for c in costs
        ],
        f"One masked study by subn+ of {ROWS:,} rows; processor time, per party",
    )  # fmt: skip
    plain = {cost.parties: cost for cost in costs}
    figures = ("party_seconds", "party_sent", "party_received", "curator_seconds")
    show(
        [
            {"K": own.parties}
            | {each: getattr(own, each) for each in figures}
            | {f"{e}, times": getattr(own, e) / getattr(plain[own.parties], e) for e in figures}
            for own in recoverable
        ],
        "The same with may_miss = 1, and as a multiple of may_miss = 0",
    )
    show(
        [asdict(each) | {"ratio": each.in_one_s / each.in_chunks_s} for each in rings],
        f"Ring of packed ciphertexts, {_RING_CELLS:,} cells: until the total is in",
    )


def plot(costs: list[Cost], path: Path) -> None:
    """Cost per party over K, as a picture."""
    import matplotlib as mpl  # only where a picture is asked for

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    k = [c.parties for c in costs]
    left.loglog(k, [1e3 * c.party_seconds for c in costs], "o-", label="whole study")
    left.loglog(k, [1e3 * c.masks_seconds for c in costs], "s-", label="masks")
    left.loglog(k, [1e3 * c.all_pairs_seconds for c in costs], ":", label="masks for all pairs")
    left.set(xlabel="parties", ylabel="ms of processor time per party")
    right.loglog(k, [c.party_sent / 1e3 for c in costs], "o-", label="sent")
    right.loglog(k, [c.party_received / 1e3 for c in costs], "s-", label="received")
    right.loglog(k, [c.study_bytes / 1e3 for c in costs], ":", label="the study itself, once")
    right.set(xlabel="parties", ylabel="kB per party")
    for axes in (left, right):
        axes.legend()
        axes.grid(visible=True, which="both", alpha=0.2)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description="what one more party costs")
    parser.add_argument("--most", type=int, default=PARTIES[-1])
    parser.add_argument("--plot", type=Path, help="a picture of the cost per party")
    parser.add_argument("--agreement", action="store_true", help="only of mask keys")
    options = parser.parse_args()
    agreement = agreement_cost()
    show(agreement, "Agreement of mask keys, for one partner and a whole study")
    may_miss = keys_cost()
    show(may_miss, "Where parties may go missing, for one partner")
    if options.agreement:
        return
    _, codes = demo_population(ROWS)
    study_cost(codes, 3)  # compiles what is compiled on first use
    costs = [study_cost(codes, parties) for parties in PARTIES if parties <= options.most]
    recoverable = [study_cost(codes, k, 1) for k in MAY_MISS_PARTIES if k <= options.most]
    key = generate_key_pair(2048, OsRandomSource())
    rings = [ring_time(key, k, latency) for k in _RING_PARTIES for latency in _LATENCIES_S]
    tables(costs, recoverable, rings)
    print(f"Up to {LEAST_CONNECTIVITY} partners share masks with a party.")
    keep("parties", {"studies": [*costs, *recoverable], "rings": rings, "agreement": agreement,
                     "may_miss": may_miss})  # fmt: skip
    if options.plot:
        plot(costs, options.plot)


if __name__ == "__main__":
    main()
