"""The benchmark of studies: its short cut against the roles, its cells, and its ranks."""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest

from benchmarks import subn_cells
from benchmarks.peers import MARGINAL_PEERS, PeerError, rho_of
from benchmarks.subn_cells import Cell, Kept, cells, measure, ranks_of, variants, worse
from benchmarks.subn_data import ONE_SMALL, POPULATION, RANDOM, factorised, setting_of, split_rows
from benchmarks.subn_methods import (
    CENTRAL,
    METHODS,
    QuickCopy,
    can_promise,
    study_of,
    synthetic_rows,
)
from common.privacy.randomness import SeededRandomSource
from common.schema.codes import Codes, concatenate

PLACE = ("adult", "whole", "1", "0")


def codes(rows=900):
    rng = np.random.default_rng(3)
    first = rng.integers(0, 4, rows)
    columns = [first, first // 2, rng.integers(0, 3, rows), (first + rng.integers(0, 2, rows)) % 4]
    return Codes.from_columns(columns, [4, 2, 3, 4])


def study(label, epsilon="1", delta="0"):
    tables = split_rows(codes(), 3, RANDOM, seed=0)
    setting = setting_of("made up", codes())
    terms = {"delta": Fraction(delta)}
    return study_of(setting, tables, Fraction(epsilon), METHODS[label], **terms), tables


@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_quick_noise_has_the_variance_of_the_protocols(delta):
    """Neither 0.7 nor 1.3 times the variance would pass."""
    agreed, tables = study("floor", delta=delta)
    drawn = []
    for seed in range(150):
        copy = QuickCopy(agreed, tables, SeededRandomSource(f"{seed}"))
        copy.model()
        step = copy.steps[0]
        drawn.append(copy.results[0] - step.request.answer(copy.rows(*step.parties)))
    expected = step.law.variance(agreed.noise_shares(3))
    assert step.law.norm == (2 if delta != "0" else 1)
    assert 0.8 < np.var(drawn) / expected < 1.25


@pytest.mark.parametrize("label", ["floor", "dp-subn paper", "independent", CENTRAL])
def test_without_noise_every_method_comes_close_to_the_margins(label):
    _, tables = study("floor")
    promise = {"epsilon": Fraction(10**5), "delta": Fraction(0)}
    made = synthetic_rows(setting_of("x", codes()), tables, label, seed="s", **promise)
    assert made.rows == codes().rows
    assert subn_cells.distances(codes(), made, run=0)["tvd1"] < 0.06


def test_a_method_is_run_where_it_can_keep_the_promise():
    able = {label for label in (*METHODS, CENTRAL, *MARGINAL_PEERS) if can_promise(label, "1e-9")}
    sums = {"floor", "subn+", "subn+, dependence expected"}
    assert able == {*sums, "MST, central, delta", "AIM, central, delta"}
    pure = {label for label in (*METHODS, CENTRAL, *MARGINAL_PEERS) if can_promise(label, "0")}
    assert pure == {*METHODS, CENTRAL, "MST, central, pure", "AIM, central, pure"}


def test_peers_stand_in_the_cells_of_their_promise(monkeypatch):
    monkeypatch.setattr(subn_cells, "is_here", lambda table: table == POPULATION)
    asked = subn_cells.parser().parse_args(
        ["--tables", "nltcs", POPULATION, "--variants", "2000", "--epsilons", "1", "--peers"]
    )
    found = {(cell.method, cell.delta) for cell in cells(asked)}
    assert ("AIM, central, delta", "1e-9") in found
    assert ("AIM, central, delta", "0") not in found
    assert ("AIM, central, pure", "0") in found
    assert {cell.table for cell in cells(asked)} == {POPULATION}
    assert len(found) == 1 + 3 + 2 + 4  # a second sample, three pure, two with delta, four peers


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_rho_is_worth_its_promise_and_more_than_by_the_simple_rule(epsilon):
    """rho + 2 sqrt(rho log(1 / delta)) is the epsilon of the simple rule [Bun16]."""
    rho = rho_of(epsilon, 1e-9)
    assert epsilon < rho + 2 * sqrt(rho * log(1e9)) < 1.3 * epsilon
    assert rho_of(epsilon, 1e-6) > rho


def test_values_become_codes_in_their_order_and_many_numbers_bins():
    frame = pd.DataFrame({"text": ["b", "a", "b", "c"], "number": [7, -1, 3, 7]})
    found = factorised(frame)
    assert found.sizes == (3, 3)
    assert [list(column) for column in found.columns] == [[1, 0, 1, 2], [2, 0, 1, 2]]
    many = factorised(pd.DataFrame({"x": np.random.default_rng(1).permutation(1000)}))
    assert many.sizes == (100,)
    assert set(np.bincount(many.columns[0])) == {10}


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        (RANDOM, [300, 300, 300]),
        (ONE_SMALL, [50, 425, 425]),
        ("by column 1", np.bincount(codes().columns[1]).tolist()),
    ],
)
def test_every_row_has_one_owner(split, sizes):
    tables = split_rows(codes(), 3, split, seed=1)
    assert [table.rows for table in tables.values()] == sizes
    together = concatenate(list(tables.values()))
    assert sorted(zip(*together.columns, strict=True)) == sorted(zip(*codes().columns, strict=True))


class Known(Kept):
    """Values that no file holds."""

    def __init__(self, values):
        self.runs = {
            Cell(*PLACE[:2], epsilon, "0", method): {run: {"tvd2": each} for run, each in runs}
            for (epsilon, method), runs in values.items()
        }


def test_ranks_count_cells_that_every_method_has():
    kept = Known(
        {
            ("1", "floor"): [(0, 0.2), (1, 0.2)],
            ("1", "subn+"): [(0, 0.1), (1, 0.2)],
            ("4", "floor"): [(0, 0.1)],
            ("4", "subn+"): [(0, 0.2)],
            ("10", "subn+"): [(0, 0.1)],
        }
    )
    wanted = [
        Cell(*PLACE[:2], epsilon, "0", method)
        for epsilon in ("1", "4", "10")
        for method in ("floor", "subn+")
    ]
    assert ranks_of(wanted, kept) == {("subn+", "0"): [1, 2], ("floor", "0"): [2, 1]}


def test_worse_than_the_floor_is_more_than_noise():
    assert worse([0.30, 0.31, 0.29], [0.2, 0.21, 0.19], "tvd2")
    assert not worse([0.22, 0.18, 0.21], [0.2, 0.21, 0.19], "tvd2")
    assert not worse([0.30, 0.31, 0.29], [0.2, 0.21, 0.19], "boosting")
    assert worse([0.60, 0.61, 0.59], [0.7, 0.71, 0.69], "logistic")


@pytest.mark.slow  # loads the classifiers' library
def test_classifiers_learn_from_rows_like_the_held_back_ones(monkeypatch):
    monkeypatch.setattr(subn_cells, "whole", lambda table: codes(4000))
    found = measure(Cell("made up", "2000", "-", "0", subn_cells.SECOND_SAMPLE, "1"), 0)
    assert found["boosting"] > 0.99 < found["logistic"]
    assert found["svm"] < 0.01
    noise = measure(Cell("made up", "2000", "-", "0", subn_cells.SECOND_SAMPLE, "2"), 0)
    assert 0.4 < noise["boosting"] < 0.6


def test_a_finished_run_is_kept_and_a_failing_peer_skipped(monkeypatch, tmp_path, capsys):
    def refuse(*_, **__):
        raise PeerError("a peer: stopped after 1 s")

    monkeypatch.setattr(subn_cells, "CACHE", tmp_path / "cells.jsonl")
    monkeypatch.setattr(subn_cells, "TABLES", ("made up",))
    monkeypatch.setattr(subn_cells, "is_here", lambda table: True)
    monkeypatch.setattr(subn_cells, "whole", lambda table: codes())
    monkeypatch.setattr(subn_cells, "peer_rows", refuse)
    words = ["--tables", "made up", "--variants", "whole", "--epsilons", "1", "--deltas", "0",
             "--only-distances"]  # fmt: skip
    subn_cells.main([*words, "--methods", "floor", "MST, central, pure", "--runs", "1"])
    assert "stopped after 1 s" in capsys.readouterr().out
    kept = Kept().runs
    assert sorted(cell.method for cell in kept) == ["floor", subn_cells.SECOND_SAMPLE]
    monkeypatch.setattr(subn_cells, "measure", refuse)
    subn_cells.main([*words, "--methods", "floor", "--runs", "1"])
    assert Kept().runs == kept


def test_samples_are_smaller_than_the_table(monkeypatch):
    monkeypatch.setattr(subn_cells, "whole", lambda table: codes(5000))
    assert variants("nltcs") == ["whole", "2000", "few", "shuffled"]
    assert variants("br2000") == ["whole", "2000", "few", "shuffled", "widened"]
    wide = subn_cells.rows_of("br2000", "widened", run=0)
    assert wide.width == 8
    monkeypatch.setattr(subn_cells, "FEW_COLUMNS", 2)
    few = {subn_cells.rows_of("br2000", "few", run=run).sizes for run in range(9)}
    assert len(few) > 2
    assert {len(sizes) for sizes in few} == {2}
    alone = subn_cells.rows_of("br2000", "shuffled", run=0)
    assert abs(np.corrcoef(alone.columns[0], alone.columns[1])[0, 1]) < 0.1
