"""Fitted models as the Python API hands them out: rows, answers, estimates with intervals, pages.

release = parley.load("release")   # or release.zip
release.sample(1000)
release.estimate(lambda table: table["income"].mean())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cached_property, partial
from html import escape
from pathlib import Path

import pandas as pd

from common.analysis.answers import Answer, Answers
from common.analysis.diagnostics import Diagnostics, diagnose
from common.analysis.estimates import CONFIDENCE, Estimate, related
from common.analysis.linked_answers import LinkedAnswers
from common.analysis.replicates import SEED, TABLES, Replicates, Replicator, shuffled
from common.analysis.statistics import CodedTable, Statistic, of_table
from common.analysis.survival import Curve, curves_of, survival
from common.analysis.views import (
    REACHED,
    TableView,
    events_view,
    first_view,
    people_view,
    rows_view,
)
from common.errors import InputError
from common.fitted import loading
from common.fitted.linked import EventsTold, LinkedFit
from common.fitted.model import NO_ROWS, DrawnModel, FittedModel
from common.fitted.privbayes import PrivBayesFit
from common.fitted.privelet import PriveletFit
from common.fitted.study import StudyFit
from common.privacy.randomness import SeededRandomSource
from common.release import folder
from common.report.network_picture import network_svg
from common.report.writing import write_release, write_report
from common.wording import Reporter, silent


class Answering(FittedModel):
    """What can be asked of a fitted model besides its rows and counts."""

    def report(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the report of a release of this model: one page, for a browser."""
        write_report(Path(path), self, overwrite=overwrite)

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What the release measured, and how well its rows follow."""
        return diagnose(self, self.released)

    @property
    def events_told(self) -> EventsTold | None:
        """What a linked release has of events; None of a single table."""
        return None

    def replicated(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> Replicates:
        """Return the release and its replicates, as codes; they are made once."""
        if not self.has_rows:
            raise InputError(NO_ROWS)
        cache = None if self.origin is None else self.origin.cache(seed)
        if (tables, seed) not in self._replicates:
            replicates = Replicator(self, self.released, seed, cache).run(tables, tell=tell)
            self._replicates[tables, seed] = replicates
        return self._replicates[tables, seed]

    @cached_property
    def _replicates(self) -> dict[tuple[int, int], Replicates]:
        return {}

    def replicates(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> list[pd.DataFrame]:
        """Make tables like the released table, each from its own refit; a seed repeats them."""
        replicates = self.replicate_frames(tables, seed=seed, tell=tell)
        return [table for frames in replicates for table in frames.values()]

    def replicate_frames(
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> list[dict[str, pd.DataFrame]]:
        """Return the tables of every replicate, by the names of a release's files."""
        replicates = self.replicated(tables, seed=seed, tell=tell)
        return [
            self.frames(codes, SeededRandomSource(f"numbers/{number}"))
            for number, codes in enumerate(replicates.tables, start=1)
        ]

    def references(self, *, seed: int = SEED) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return two large tables that `parley.pool` corrects by.

        The first has many rows of the released model. The second has the same rows with each column
        shuffled by itself, so that no column depends on another.
        """
        model, independent = self.reference_frames(seed=seed)
        return next(iter(model.values())), next(iter(independent.values()))

    def reference_frames(self, *, seed: int = SEED) -> list[dict[str, pd.DataFrame]]:
        """Return the tables of both references, by the names of a release's files."""
        if not self.has_rows:
            raise InputError(NO_ROWS)
        cache = None if self.origin is None else self.origin.cache(seed)
        model = Replicator(self, self.released, seed, cache).reference()
        source = SeededRandomSource("numbers/0")
        return [self.frames(codes, source) for codes in (model, shuffled(model))]

    def estimate(
        self,
        statistic: Statistic | Callable[[pd.DataFrame], object],
        *,
        of: str | TableView = "",
        uses: Iterable[str] | None = None,
        tables: int = TABLES,
        seed: int = SEED,
        confidence: float = CONFIDENCE,
        tell: Reporter = silent,
    ) -> list[Estimate]:
        """Estimate a statistic of the population, with an interval.

        Args:
            statistic: a function of a table that returns a number, or a Series or dict of numbers.
            of: of a linked release, the name of its events; then the table has a row an event. Else
                it has a row a person, with her number of events in a column of that name.
            uses: the columns whose relations it rests on; found out by shuffling each if None.
            tables: how many replicates to look at.
            seed: of the replicates.
            confidence: of the intervals.
            tell: told how far the work is.
        """
        view = self.view(of) if isinstance(of, str) else of
        if callable(statistic):
            statistic = self._of_table(statistic, uses, view)
        if not isinstance(statistic, Statistic):
            raise InputError(
                f"estimate: expected a function of a table, not {statistic!r:.100}. Write it like "
                'lambda table: table["income"].mean()'
            )
        replicate = partial(self.replicated, tables, seed=seed, tell=tell)
        return self._answers.of(statistic, view, replicate, tables=tables, confidence=confidence)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self, self.diagnostics, self.released)

    def view(self, of: str = "") -> TableView:
        """Return the single table that statistics are computed of: here, the rows."""
        if of:
            raise InputError(f"of: the release has no events {of!r}. Leave it out")
        return rows_view(self.schema)

    def survival_view(self, time: str, *, status: str) -> tuple[TableView, str]:
        """Return the table that has these columns, and the status as a condition on it."""
        return self.view(), status

    def survival(
        self,
        time: str,
        *,
        status: str,
        by: str | None = None,
        where: str = "",
        tables: int = TABLES,
        seed: int = SEED,
        confidence: float = CONFIDENCE,
        tell: Reporter = silent,
    ) -> list[Curve]:
        """Estimate survival after Kaplan and Meier, with intervals; `curves_svg` draws it.

        Args:
            time: a column of numbers: how long a person was watched; or, of a linked release whose
                events are ordered by an attribute, that attribute.
            status: a yes-or-no column, or a condition: what happened then. Of events, the kind of
                which a person's first event is looked for.
            by: a curve for each value of this column.
            where: only rows that satisfy this condition.
            tables: how many replicates to look at.
            seed: of the replicates.
            confidence: of the intervals.
            tell: told how far the work is.
        """
        view, happened = self.survival_view(time, status=status)
        statistic = survival(view.schema, time, status=happened, by=by, where=where)
        points = self.estimate(
            statistic, of=view, tables=tables, seed=seed, confidence=confidence, tell=tell
        )
        return list(curves_of(view.schema.attributes[view.schema.position(time)], points))

    def answers(self, *, confidence: float = CONFIDENCE) -> tuple[Answer, ...]:
        """Answer the analyses that the study declared, each with intervals."""
        return self._answers.every(confidence)

    def concerns(self, statistic: Statistic, view: TableView | None = None) -> list[str]:
        """Return the reasons why a statistic is flagged, if any."""
        return self._answers.concerns(statistic, view or self.view())

    def _of_table(
        self,
        compute: Callable[[pd.DataFrame], object],
        uses: Iterable[str] | None,
        view: TableView,
    ) -> Statistic:
        if uses is not None:
            names = frozenset(uses)
            for name in names:
                view.schema.position(name)
            return of_table(compute, names)
        table = CodedTable(view.schema, view.codes(self.released), inside=self.inside)
        return of_table(compute, related(compute, table.frame))


class Pictured(Answering, DrawnModel):
    """A fitted model with a picture of its dependences."""

    def network_svg(self) -> str:
        """Return the network as a picture, strong edges thick."""
        network = self.dependences(self.released)
        return "" if network is None else network_svg(network)

    def _repr_html_(self) -> str:
        words = escape(repr(self)).replace("\n", "<br>")
        return f"<div><p>{words}</p>{self.network_svg()}</div>"


class FittedStudy(Pictured, StudyFit):
    """The outcome of a study of one or several owners."""

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write a release folder, which `parley.load` reads and `parley verify` checks."""
        with folder.new_folder(Path(path), overwrite=overwrite) as scratch:
            write_release(scratch, self)


class FittedLinkedStudy(LinkedFit, FittedStudy):
    """The outcome of a study of people and their events."""

    def sample(  # type: ignore[override]  # two tables, where a study of rows has one
        self, rows: int | None = None, *, where: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw people and their events, both with a column `person`; see `sample_linked`."""
        return self.sample_linked(rows, where=where)

    def replicates(  # type: ignore[override]
        self, tables: int = TABLES, *, seed: int = SEED, tell: Reporter = silent
    ) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
        """Make people and events like the released ones, each pair from its own refit."""
        replicates = self.replicate_frames(tables, seed=seed, tell=tell)
        return [_pair(frames) for frames in replicates]

    def references(  # type: ignore[override]
        self, *, seed: int = SEED
    ) -> tuple[tuple[pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, pd.DataFrame]]:
        """Return two large pairs of tables that `parley.pool` corrects by."""
        model, independent = self.reference_frames(seed=seed)
        return _pair(model), _pair(independent)

    def view(self, of: str = "") -> TableView:
        """Return people with their number of events; or, `of` the events' name, events."""
        events = self.schema.events
        if of and (events is None or of != events.name):
            raise InputError(f"of: {of!r} is not what the events are called. Write their name")
        return events_view(self.schema) if of else people_view(self.schema)

    def survival_view(self, time: str, *, status: str) -> tuple[TableView, str]:
        """Return people; with the time of their first event of a kind, if events have the time."""
        events = self.schema.events
        if events is None or time != events.order or time in self.schema.names:
            return self.view(), status
        return first_view(self.schema, status), REACHED

    @cached_property
    def _answers(self) -> Answers:
        return LinkedAnswers(self, self.diagnostics, self.released_linked)


def _pair(frames: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    people, events = frames.values()
    return people, events


class FittedPrivBayes(Pictured, PrivBayesFit):
    """A model of one owner's table, by PrivBayes."""


class FittedPrivelet(Answering, PriveletFit):
    """Noisy counts of every cell of one owner's table, by Privelet."""


Loaded = FittedPrivBayes | FittedPrivelet | FittedStudy


def load(path: Path | str) -> Loaded:
    """Load the model in a file that `save` wrote, or the release in a folder or a .zip.

    The model of a study of several owners is derived when something asks for it.

    Raises:
        InputError: there is none, or it is damaged.
    """
    fit = loading.load(path)
    known = {field.name: getattr(fit, field.name) for field in fields(fit)}
    match fit:
        case LinkedFit():
            return FittedLinkedStudy(**known)
        case StudyFit():
            return FittedStudy(**known)
        case PrivBayesFit():
            return FittedPrivBayes(**known)
        case PriveletFit():
            return FittedPrivelet(**known)
