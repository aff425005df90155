"""Secure noise replacement: a statistic grows party by party and always carries one share of noise.

[Su16, section VI-A, phase 3]. The curator holds S = v_1 + .. + v_(k-1) + eta_h; party h drew eta_h.
Party h contributes -eta_h, party k contributes v_k + eta_k, both to one secure sum, so that the
curator gets delta = v_k + eta_k - eta_h and sets S := S + delta = v_1 + .. + v_k + eta_k. Since
delta = new S - old S, the curator learns nothing beyond the new S. In the ring that is literally
the paper's step: E(-eta_h) goes to party k in an envelope; the product, freshly blinded, goes to
the curator.

What is covered, per marginal. A marginal that is new in a turn starts there and covers that
party's rows only. A marginal that was dropped keeps its statistic and its holder; when it comes
back, the holder may be far older than the previous party. So every marginal has a `Coverage`: who
holds the share that is in it now, and whose rows it covers. `Coverages` are public and pure: each
side derives them from the sequence of requests, and no message mentions them.
`Coverages.open_turn` says what has to happen; `PartyTurn.coverages` are those afterwards.

What it costs. The curator sees v_1 + eta_1, then v_1 + v_2 + eta_2, ...: FRESH noise each time,
over rows of the turns before. Theorem 5 of the paper is wrong: a turn with noise of
scale b costs each party whose rows it covers 2 * (number of its marginals that cover them) / b;
`PartyTurn.marginals_covering` is that number. And a share protects only from those who do not know
it: curator and party k together can read eta_h, and then the sum of the parties before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.errors import LocalError, PolicyError
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource

Marginal = tuple[int, ...]
"""The positions of a marginal's attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The public facts about one marginal's statistic."""

    cells: int  # of the marginal
    holder: str  # who drew the share of noise that is in it now
    parties: tuple[str, ...]  # whose rows it covers, in the order they came in
    rows: int  # how many rows those are
    share_bound: int  # the public bound of the holder's share in one cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The marginals of one turn that have the same holder: one secure sum."""

    holder: str | None  # whose shares are replaced; None for marginals that are new
    marginals: tuple[Marginal, ...]  # in the order in which they were asked for
    cells: int  # of all of them together
    share_bound: int  # the public bound of the holder's shares


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTurn:
    """One party's turn: its rows come in, its share replaces the older ones."""

    party: str
    rows: int  # of that party
    law: NoiseLaw  # of the noise in every cell
    share_bound: int  # which no share passes, except with probability 2^-128 over the turn
    groups: tuple[Group, ...]  # what has to be summed; the new marginals first
    coverages: Coverages  # once the turn is complete

    def marginals_covering(self, party: str) -> int:
        """Count the marginals released here that cover the rows of this party."""
        released = [marginal for group in self.groups for marginal in group.marginals]
        return sum(party in self.coverages.by_marginal[marginal].parties for marginal in released)

    def tables(self, group: Group, vector: NDArray[np.int64]) -> dict[Marginal, NDArray[np.int64]]:
        sizes = [self.coverages.by_marginal[marginal].cells for marginal in group.marginals]
        return dict(zip(group.marginals, np.split(vector, np.cumsum(sizes)[:-1]), strict=True))

    def limits(self, group: Group) -> dict[str, int]:
        """Return who contributes to the secure sum of one group, and the most in one cell.

        The holder contributes -eta, the party its counts + eta. Both vectors carry their noise
        already, so the sum itself adds none.
        """
        older = {} if group.holder is None else {group.holder: group.share_bound}
        return {**older, self.party: self.rows + self.share_bound}


@dataclass(frozen=True, slots=True)
class Coverages:
    """The coverage of every marginal ever released: who holds its share, whose rows are in it."""

    by_marginal: Mapping[Marginal, Coverage] = field(default_factory=dict)

    def open_turn(
        self, *, party: str, rows: int, marginals: Mapping[Marginal, int], law: NoiseLaw
    ) -> PartyTurn:
        """Return what has to happen when these marginals are asked of this party.

        `marginals` has the number of cells of each marginal, in the order of the request.
        """
        if not marginals:
            raise LocalError("a turn has at least one marginal")
        bound = law.bound(sum(marginals.values()))
        after = {
            marginal: self._extended(marginal, cells, party=party, rows=rows, share_bound=bound)
            for marginal, cells in marginals.items()
        }
        return PartyTurn(
            party=party,
            rows=rows,
            law=law,
            share_bound=bound,
            groups=self._groups(marginals),
            coverages=Coverages({**self.by_marginal, **after}),
        )

    def _extended(
        self, marginal: Marginal, cells: int, *, party: str, rows: int, share_bound: int
    ) -> Coverage:
        """Return the coverage of one marginal once this party's rows and share are in it."""
        before = self.by_marginal.get(marginal)
        if before is not None and before.cells != cells:
            raise LocalError(f"marginal {marginal} had {before.cells} cells, now {cells}")
        parties, rows_before = ((), 0) if before is None else (before.parties, before.rows)
        if party in parties:
            raise LocalError(f"marginal {marginal} covers the rows of {party!r} already")
        return Coverage(
            cells=cells,
            holder=party,
            parties=(*parties, party),
            rows=rows_before + rows,
            share_bound=share_bound,
        )

    def _groups(self, marginals: Mapping[Marginal, int]) -> tuple[Group, ...]:
        """Group new marginals first, then those of each holder in the order of the request."""
        by_holder: dict[str | None, list[Marginal]] = {None: []}
        for marginal in marginals:
            before = self.by_marginal.get(marginal)
            by_holder.setdefault(before.holder if before else None, []).append(marginal)
        return tuple(
            Group(
                holder=holder,
                marginals=tuple(names),
                cells=sum(marginals[name] for name in names),
                share_bound=max(
                    (self.by_marginal[name].share_bound for name in names if holder), default=0
                ),
            )
            for holder, names in by_holder.items()
            if names
        )


class ShareKeeper:
    """The shares one party drew and still has in the curator's statistics. Secret."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shares: dict[Marginal, NDArray[np.int64]] = {}

    def answer(
        self,
        turn: PartyTurn,
        counts: Mapping[Marginal, NDArray[np.int64]],
        source: RandomSource,
    ) -> list[NDArray[np.int64]]:
        """Return counts plus fresh shares, one vector for each group of the turn.

        Distribution: independent noise of `turn.law` in every cell. Call it once.
        """
        if turn.party != self._name:
            raise LocalError(f"it is the turn of {turn.party!r}, not of {self._name!r}")
        if any(m in self._shares for group in turn.groups for m in group.marginals):
            raise LocalError(f"{self._name!r} has answered this turn already")
        vectors = []
        for group in turn.groups:
            exact = np.concatenate([counts[marginal].reshape(-1) for marginal in group.marginals])
            noise = turn.law.draw(group.cells, source)
            if int(np.abs(noise).max()) > turn.share_bound:
                raise LocalError("a noise draw passed its 2^-128 bound: give this turn up")
            self._shares.update(turn.tables(group, noise))
            vectors.append(exact.astype(np.int64) + noise)
        return vectors

    def hand_over(self, group: Group) -> NDArray[np.int64]:
        """Return -eta for every cell of the group: the holder's vector in its secure sum.

        A share is handed over once, else PolicyError: taken out of two different sums, it would
        tell the curator how those differ without it.
        """
        if group.holder != self._name or any(m not in self._shares for m in group.marginals):
            raise PolicyError(
                f"{self._name!r} holds no share to hand over for {group.marginals}: "
                "each share is handed over once"
            )
        return -np.concatenate([self._shares.pop(marginal) for marginal in group.marginals])

    def __repr__(self) -> str:
        return f"ShareKeeper({self._name!r}, {len(self._shares)} shares)"


class Statistics:
    """The curator's side: for each marginal the noisy sum over the rows it covers."""

    def __init__(self) -> None:
        self._sums: dict[Marginal, NDArray[np.int64]] = {}

    def apply(self, turn: PartyTurn, totals: Sequence[NDArray[np.int64]]) -> None:
        """Add what the secure sums of a turn's groups gave."""
        for group, total in zip(turn.groups, totals, strict=True):
            for marginal, part in turn.tables(group, total).items():
                before = self._sums.get(marginal)
                if (before is None) != (group.holder is None):
                    raise LocalError(f"the statistic of {marginal} does not match its coverage")
                self._sums[marginal] = part.copy() if before is None else before + part

    def __getitem__(self, marginal: Marginal) -> NDArray[np.int64]:
        """Return the noisy counts, shape (cells,); its coverage says of which rows."""
        return self._sums[marginal]
