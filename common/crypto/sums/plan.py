"""What is public about one secure sum: its plan, and the law of its noise.

Every party and the curator hold the same `SumPlan`; each of them derives it from the approved study
and never takes a number of it from a peer. Its digest is in every key, envelope and payload of the
sum, so two sides that disagree about anything (a scale, a bound, the order of the ring, the
Paillier key) do not understand each other, instead of adding up to something else.

Noise kinds. `one-share` is the paper's: every party draws discrete Laplace noise, one share is
used. `distributed` gives each of K parties a share of which any K - t - d make up the whole noise:
no party can leave the noise out, t colluding parties cannot subtract it, and it is still whole when
d parties are missing. `none` adds
nothing: for vectors that carry their noise already, and for tests.
"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.crypto.framing import frame
from common.crypto.identities.envelope import STUDY_DIGEST_BYTES
from common.crypto.paillier.keys import PublicKey
from common.crypto.paillier.packing import Packing
from common.errors import InputError, LocalError
from common.privacy.noise_law import NoiseLaw
from common.privacy.randomness import RandomSource
from common.wording import many

_LARGEST_TOTAL = 1 << 61
_WORDS_PER_CHUNK = 1 << 16


class Aggregation(enum.StrEnum):
    """How contributions are added up."""

    PAILLIER = "paillier"  # ciphertexts multiplied in a ring of parties
    MASKED = "masked"  # words under pairwise masks, added by the curator
    CLEAR = "clear"  # in the clear: experiments in one process, NOT PRIVATE


class Noise(enum.StrEnum):
    """Where the noise of a sum comes from."""

    NONE = "none"
    ONE_SHARE = "one-share"
    DISTRIBUTED = "distributed"


@dataclass(frozen=True, kw_only=True)
class SumPlan:
    """The public description of one sum."""

    study: bytes  # the digest of the approved study
    step: int  # the number of the step; the same plan is never run twice
    parties: tuple[str, ...]  # the names, in the order of the ring
    # For each party, the largest absolute value of one of its cells (its row count, for counts of
    # rows).
    limits: tuple[int, ...]
    cells: int  # how many integers each party contributes
    noise: Noise  # where the noise comes from
    # What the sum is the answer to, as a digest: the request in full, and all that was published
    # before it. Sides that disagree about that do not understand each other.
    context: bytes = b""
    law: NoiseLaw | None = None  # of the noise in the sum; None with `Noise.NONE`
    # The t of the proofs: how many parties may pool what they know; noise and masks allow for it.
    colluders: int = 1
    # The d of the proofs: how many parties may go missing during the sum; noise and masks are made
    # for it. `recovery` says how the others finish.
    may_miss: int = 0
    # Whether the keys and boxes of a sum that may miss parties also rest on seeds that travelled
    # under ML-KEM-768 (`agreement`). The study says so, and its digest is in the plan's.
    hybrid: bool = False
    aggregation: Aggregation  # how contributions are added up
    public_key: PublicKey | None = None  # the curator's, for `Aggregation.PAILLIER` only
    # Whether ring contributions are masked modulo n, so that the curator and a ring neighbour
    # together see only the total.
    zero_sum_masks: bool = True
    chunk_ciphertexts: int = 32  # how many ciphertexts travel together

    def __post_init__(self) -> None:
        if len(self.study) != STUDY_DIGEST_BYTES:
            raise LocalError(f"a study digest has {STUDY_DIGEST_BYTES} bytes")
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise InputError("a secure sum needs parties with different names")
        if len(self.limits) != len(self.parties) or min(self.limits) < 0:
            raise InputError("a secure sum needs one limit, 0 or more, for each party")
        if self.step < 0 or self.cells < 1 or self.chunk_ciphertexts < 1:
            raise InputError("a secure sum has a step of 0 or more, and at least one cell")
        if (self.aggregation is Aggregation.PAILLIER) != (self.public_key is not None):
            raise InputError("a Paillier key belongs to aggregation 'paillier', and only there")
        self._check_noise()
        if self.total_bound >= _LARGEST_TOTAL:
            raise InputError(f"totals of up to {self.total_bound} do not fit into 64 bits")

    def _check_noise(self) -> None:
        if (self.noise is Noise.NONE) != (self.law is None):
            raise InputError(f"noise of kind {self.noise.value!r} and a noise law do not agree")
        if self.noise is Noise.ONE_SHARE and self.aggregation is Aggregation.MASKED:
            raise InputError(
                "masked aggregation cannot hide whose share is used: ask for noise 'distributed'"
            )
        if self.may_miss:
            self._check_may_miss()
        if self.noise is Noise.DISTRIBUTED and not 0 <= self.colluders < len(self.parties):
            raise InputError(
                f"{many(len(self.parties), 'party')} cannot keep distributed noise from "
                f"{self.colluders} of them: at least one party must be beyond the colluders"
            )

    def _check_may_miss(self) -> None:
        if self.aggregation is not Aggregation.MASKED or self.noise is not Noise.DISTRIBUTED:
            raise InputError("only a masked sum with distributed noise can do without a party")
        if self.may_miss < 0 or len(self.parties) <= self.colluders + 2 * self.may_miss:
            raise InputError(
                f"a sum of {len(self.parties)} parties with {self.colluders} colluders cannot do "
                f"without {self.may_miss}: at least {self.colluders + 2 * self.may_miss + 1} "
                "parties are needed"
            )

    @property
    def noise_makers(self) -> int:
        """The number of shares that make up the whole of distributed noise: K - t - d."""
        return len(self.parties) - self.colluders - self.may_miss

    @property
    def masked(self) -> bool:
        if self.aggregation is Aggregation.PAILLIER:
            return self.zero_sum_masks
        return self.aggregation is Aggregation.MASKED

    @cached_property
    def digest(self) -> bytes:
        key = b"" if self.public_key is None else self.public_key.digest
        fields = (
            "parley sum plan 3",
            self.study,
            self.step,
            self.context,
            frame(self.parties),
            frame(self.limits),
            self.cells,
            self.noise.value,
            b"" if self.law is None else framed_law(self.law),
            self.colluders,
            self.may_miss,
            self.aggregation.value,
            key,
            int(self.zero_sum_masks),
            self.chunk_ciphertexts,
        )
        return hashlib.sha256(frame(fields)).digest()

    @cached_property
    def noise_bound(self) -> int:
        """No draw of any party passes it, except with probability 2^-128 over the whole sum."""
        return 0 if self.law is None else self.law.bound(len(self.parties) * self.cells)

    @property
    def total_bound(self) -> int:
        """No honest total of a cell is larger in absolute value."""
        return sum(self.limits) + len(self.parties) * self.noise_bound

    @cached_property
    def packing(self) -> Packing:
        if self.public_key is None:
            raise LocalError(f"aggregation {self.aggregation.value!r} packs nothing")
        return Packing(
            plaintext_bits=self.public_key.plaintext_bits,
            rows=sum(self.limits),
            parties=len(self.parties),
            noise_bound=self.noise_bound,
        )

    @cached_property
    def chunk_cells(self) -> int:
        """The cells that travel together (fewer in the last chunk)."""
        if self.aggregation is Aggregation.PAILLIER:
            return self.chunk_ciphertexts * self.packing.slots
        return _WORDS_PER_CHUNK

    @property
    def chunks(self) -> int:
        return -(-self.cells // self.chunk_cells)

    def cells_of(self, chunk: int) -> slice:
        if not 0 <= chunk < self.chunks:
            raise LocalError(f"a sum of {self.chunks} chunks has no chunk {chunk}")
        return slice(chunk * self.chunk_cells, min((chunk + 1) * self.chunk_cells, self.cells))

    def limit_of(self, name: str) -> int:
        return self.limits[self.place_of(name)]

    def place_of(self, name: str) -> int:
        if name not in self._places:
            raise LocalError(f"{name!r} takes no part in this sum of {', '.join(self.parties)}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.parties)}

    def successor(self, name: str) -> str | None:
        """Return who gets a party's contribution: the next in the ring; None for the curator."""
        place = self.place_of(name) + 1
        if self.aggregation is not Aggregation.PAILLIER or place == len(self.parties):
            return None
        return self.parties[place]

    def predecessor(self, name: str) -> str | None:
        """Return whose partial product a party multiplies into; None for a party that starts."""
        place = self.place_of(name)
        if self.aggregation is not Aggregation.PAILLIER or place == 0:
            return None
        return self.parties[place - 1]


def framed_law(law: NoiseLaw) -> bytes:
    return frame((law.name, law.scale.numerator, law.scale.denominator))


def draw_noise(plan: SumPlan, source: RandomSource) -> NDArray[np.int64]:
    """Draw one party's noise for every cell of the plan; call it once.

    Distribution: the plan's law for one-share noise; a share of it, one of K - t - d, for
    distributed noise. With probability below 2^-128 a draw does not fit: the sum is given up.
    """
    if plan.law is None:
        return np.zeros(plan.cells, dtype=np.int64)
    if plan.noise is Noise.ONE_SHARE:
        noise = plan.law.draw(plan.cells, source)
    else:
        noise = plan.law.draw_share(plan.cells, makers=plan.noise_makers, source=source)
    if int(np.abs(noise).max()) > plan.noise_bound:
        raise LocalError("a noise draw passed its 2^-128 bound: give this sum up, draw no other")
    return noise


def check_values(plan: SumPlan, name: str, values: NDArray[np.int64]) -> None:
    """Raise unless the vector is what party `name` may contribute."""
    if values.dtype != np.int64 or values.shape != (plan.cells,):
        raise LocalError(
            f"{name!r} contributes {values.dtype} of shape {values.shape}, "
            f"the plan asks for int64 of shape ({plan.cells},)"
        )
    limit = plan.limit_of(name)
    if int(values.min()) < -limit or int(values.max()) > limit:
        raise LocalError(f"a value of {name!r} is outside the +-{limit} that the plan declares")
