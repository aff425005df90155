"""What a method counts: the attributes in their own domains, or their bits as in the paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from common.privacy import sensitivity
from common.privacy.promise import Promise
from common.schema.codes import bit_count
from common.study.document import Study
from common.study.requests import Attributes, Counts, PartyRows, TableRequest, rows_in_bits
from common.study.script import Script, summed
from common.study.steps import SumStep


@dataclass(frozen=True, slots=True)
class Variables:
    """The columns a method works on.

    Attributes:
        attribute_sizes: the domain sizes of the study's attributes.
        in_bits: whether each attribute is taken apart into bits.
    """

    attribute_sizes: tuple[int, ...]
    in_bits: bool = False

    @classmethod
    def of(cls, study: Study) -> Variables:
        return cls(tuple(study.schema.sizes), study.encoding == "binary")

    @property
    def sizes(self) -> tuple[int, ...]:
        if not self.in_bits:
            return self.attribute_sizes
        return (2,) * sum(bit_count(size) for size in self.attribute_sizes)

    def request(self, sets: Iterable[Attributes]) -> TableRequest:
        return TableRequest(tuple(sets), self.sizes, self.in_bits)

    def rows(self, data: PartyRows) -> PartyRows:
        """A party's rows in these variables."""
        return rows_in_bits(data) if self.in_bits else data

    def sum_tables(
        self,
        sets: Iterable[Attributes],
        *,
        name: str,
        phase: str,
        parties: tuple[str, ...],
        promise: Promise,
        cost: Fraction,
    ) -> Script[list[Counts]]:
        """Noisy tables of the rows of some parties together, at a cost to each."""
        request = self.request(sets)
        moved = sensitivity.histograms(len(request.sets))
        step = SumStep(
            name=name,
            phase=phase,
            parties=parties,
            request=request,
            sensitivity=moved,
            law=promise.law(cost, moved),
        )
        return (yield from summed(step))
