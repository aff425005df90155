"""A model: what a method has learnt, which may be published, stored, and drawn from for ever."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from common.bayes.form import NetworkForm
from common.bayes.network import Network
from common.privacy.randomness import RandomSource
from common.schema.codes import Codes


class Model(ABC):
    """What a finished script has learnt: everything in it is noisy, so it may be published."""

    @abstractmethod
    def sample(self, rows: int, source: RandomSource) -> Codes:
        """Draw synthetic rows, in the study's own domains."""

    @abstractmethod
    def as_json(self) -> dict[str, object]:
        """Return the model as plain values."""

    @abstractmethod
    def form(self) -> Sequence[NetworkForm]:
        """Return the networks that the model consists of, for conditions and rules.

        A model that is no network returns none, and one whose networks are too large raises
        TooManyCells: its rows are then drawn until enough satisfy a condition, and a rare condition
        is refused.
        """

    @property
    def arrows(self) -> Network | None:
        """The network of its variables, if each is drawn given others; None for any other model."""
        return None

    @property
    def by_public_frequencies(self) -> Sequence[int]:
        """The attributes whose values are drawn by the schema's public frequencies, in cells."""
        return ()
