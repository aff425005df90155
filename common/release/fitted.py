"""What every fitted model can do: make synthetic rows, at no further cost."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import pandas as pd

from common.bayes.privbayes.model import PrivBayesModel
from common.errors import InputError
from common.methods.conditional import ConditionalModel, Draw
from common.privacy.randomness import RandomSource, source_of
from common.release import folder
from common.release.asking import Askable, Origin
from common.release.columns import Columns
from common.release.diagnostics import Diagnostics
from common.release.model_count import ModelCount, model_count
from common.release.report.released import NetworkDrawing
from common.schema import Codes, Schema
from common.schema.cell_weights import CellWeights, weights_of
from common.schema.conditions import parse
from common.study.steps import Model
from common.wording import many

_SHOWN = 8  # names of columns
_BLOCK_ROWS, _BLOCKS = 1 << 16, 16  # about a million rows for an answer
FORMAT = "parley model 1"


def in_short(made: Askable, rows: int, privacy: Mapping[str, object]) -> str:
    """What a model or a release is, in a few lines."""
    names = made.schema.names
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    private = "" if privacy["private"] else ", NOT PRIVATE"
    return (
        f"{type(made).__name__}: {many(rows, 'row')}, {many(len(names), 'column')}, "
        f"epsilon {privacy['epsilon_delivered']:g}{private}\n  columns: {shown}\n"
        "  sample() draws rows; count(...) and estimate(...) answer"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedModel(Askable):
    """What was released of real rows under differential privacy: all of it may be published."""

    schema: Schema  # the public domains
    privacy: dict[str, object]  # the privacy statement, as in privacy.json
    columns: Columns  # the columns of the real table, or of the owners'
    seed: int | None = None  # of a run that is not private
    origin: Origin | None = None  # the release that it was read from, if it was

    def __repr__(self) -> str:
        return in_short(self, self.rows, self.privacy)

    def report(self, path: Path | str) -> None:
        """Write the report of a release of this model: one page, for a browser, in a new file."""
        from common.release.writing import write_release  # it writes every kind of model

        folder.check_file(Path(path), overwrite=False)
        with tempfile.TemporaryDirectory(prefix="parley-") as scratch:
            write_release(Path(scratch), self)  # type: ignore[arg-type]  # one of its kinds
            text = (Path(scratch) / folder.REPORT).read_text(encoding="utf-8")
        folder.write_file(Path(path), text)

    @property
    def learnt(self) -> FittedModel:
        """The model itself; a release read from a folder has it here."""
        return self

    @cached_property
    def released(self) -> Codes:
        """The rows of the release that it was read from, else rows drawn once."""
        return self.sample_codes() if self.origin is None else self.origin.released

    @abstractmethod
    def diagnose(self, synthetic: Codes) -> Diagnostics:
        """What was measured, and how well these rows follow."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The public number of real rows, of all owners together."""

    @abstractmethod
    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own; called from several threads."""

    @abstractmethod
    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition, exactly and at no cost."""

    @abstractmethod
    def refit(self, rows: Codes, source: RandomSource) -> FittedModel:
        """What would have been released of these rows: the same method, with fresh noise."""

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """The content of model.json, as plain JSON values."""

    @property
    def output_rows(self) -> int:
        """How many synthetic rows are made by default."""
        return self.rows

    def sample_codes(self, rows: int | None = None, *, where: str = "") -> Codes:
        """Synthetic rows as codes of the schema; see `sample`."""
        wanted = self.output_rows if rows is None else rows
        if wanted < 0:
            raise InputError(f"cannot sample {wanted} rows: give 0 or more")
        condition = weights_of(parse(where, self.schema), self.schema.sizes)
        draw = self.given(condition) if condition else self.draw
        return draw(wanted, source_of(self.seed, "rows"))

    def decode(self, codes: Codes) -> pd.DataFrame:
        """Codes as a table like the real one."""
        table = self.schema.decode(codes, source_of(self.seed, "numbers"))
        return self.columns.shape(table, self.schema)

    def sample(self, rows: int | None = None, *, where: str = "") -> pd.DataFrame:
        """Any number of synthetic rows, by default `output_rows`; they cost nothing.

        Args:
            rows: how many.
            where: a condition that every row satisfies, like "age >= 65 and sex = Female"; see
                `common.schema.query`. Rows have the model's distribution given the condition.

        Raises:
            InputError: the condition is not understood, or no row of the model satisfies it.
        """
        return self.decode(self.sample_codes(rows, where=where))


class DrawnModel(FittedModel):
    """A fitted model that answers by rows drawn from it."""

    @property
    @abstractmethod
    def noise(self) -> Mapping[str, float]:
        """The deviation of the count of one value of each attribute of which it is known."""

    @property
    @abstractmethod
    def _drawn_from(self) -> Model | PrivBayesModel:
        """What rows are drawn from, rules aside."""

    @abstractmethod
    def drawing(self) -> NetworkDrawing:
        """The network, or the strongest dependences."""

    @cached_property
    def _possible(self) -> ConditionalModel:
        return ConditionalModel(self._drawn_from, self.schema.possible)

    def draw(self, rows: int, source: RandomSource) -> Codes:
        """Synthetic rows from a source of one's own."""
        return self._possible.sample(rows, source)

    def given(self, condition: Sequence[CellWeights]) -> Draw:
        """What draws the rows that satisfy a condition."""
        return self._possible.given(condition)

    def count(self, query: str) -> ModelCount:
        """How many rows satisfy a query, by about a million rows drawn from the model.

        Args:
            query: like "age in 20..39 and sex = Female"; see `common.schema.query`.
        """
        source = source_of(self.seed, "count")
        blocks = (self.draw(_BLOCK_ROWS, source) for _ in range(_BLOCKS))
        return model_count(query, self.schema, blocks, rows=self.rows, noise=self.noise)

    def network_svg(self) -> str:
        """The drawing as a picture, strong edges thick."""
        return self.drawing().svg()

    def _repr_html_(self) -> str:
        words = escape(repr(self)).replace("\n", "<br>")
        return f"<div><p>{words}</p>{self.network_svg()}</div>"
