"""Range counts of a schema with rules: impossible cells count 0, and no answer gets worse."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from common.schema import Schema
from common.wavelet.noisy_matrix import PossibleBoxes

SCHEMA = Schema.from_toml(
    '[[attribute]]\nname = "age"\nkind = "integer"\nmin = 0\nmax = 31\nbins = 16\n'
    '[[attribute]]\nname = "job"\nkind = "categorical"\nvalues = ["none", "farm", "office"]\n'
    'hierarchy = { idle = ["none"], work = ["farm", "office"] }\n'
    '[[attribute]]\nname = "hours"\nkind = "integer"\nmin = 0\nmax = 7\nbins = 8\n'
    '[[rule]]\nwhen = "age < 16"\nthen = "job = none"\n'
    '[[rule]]\nwhen = "job = none"\nthen = "hours < 1"\n'
)


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 32, rows)
    job = np.where(age < 16, "none", rng.choice(["none", "farm", "office"], rows))
    hours = np.where(job == "none", 0, rng.integers(0, 8, rows))
    return pd.DataFrame({"age": age, "job": job, "hours": hours})


def test_an_impossible_range_has_no_rows_and_no_noise():
    fitted = parley.Privelet(epsilon=0.1, seed=1).fit(people(500), SCHEMA)
    for query in ("age < 16 and job = farm", "job = none and hours > 0", "age < 8 and job in work"):
        found = fitted.count(query)
        assert (found.value, found.standard_deviation, found.low, found.high) == (0, 0, 0, 0)
    assert fitted.count("age > 15 and job = farm").standard_deviation > 0
    assert fitted.diagnostics.measured[0].deviation > 0


@pytest.mark.parametrize("method", ["privelet+", "privelet", "privelet*"])
def test_answers_without_noise_are_the_true_counts(method):
    table = people(3000)
    fitted = parley.Privelet(epsilon=30, method=method, seed=1).fit(table, SCHEMA)
    for query, expected in {
        "age < 20 and job in work": ((table.age < 20) & (table.job != "none")).sum(),
        "hours > 2": (table.hours > 2).sum(),
        "job = none": (table.job == "none").sum(),
        "age < 16 and hours > 3": 0,
        "": 3000,
    }.items():
        assert abs(fitted.count(query).value - expected) < 8


def test_rules_make_no_answer_worse_and_intervals_keep_their_promise():
    plain, queries = SCHEMA.without_rules(), ["age < 20 and job = farm", "hours > 2 and age > 7"]
    table = people(2000)
    farmers, workers = (table.age < 20) & (table.job == "farm"), (table.hours > 2) & (table.age > 7)
    true = [farmers.sum(), workers.sum()]
    inside = []
    for seed in range(100):
        ruled = parley.Privelet(epsilon=0.5, seed=seed).fit(table, SCHEMA).counts(queries)
        inside.append((ruled.low <= true) & (true <= ruled.high))
    free = parley.Privelet(epsilon=0.5, seed=0).fit(table, plain).counts(queries)
    assert (ruled.standard_deviations <= free.standard_deviations).all()
    assert ruled.standard_deviations[0] < free.standard_deviations[0]
    covered = np.mean(inside)
    assert 0.91 < covered < 0.99


@given(st.integers(0, 2**32))
def test_only_impossible_cells_are_cut_off(seed):
    """Brute force over all cells of random boxes, under random rules about two attributes each."""
    rng = np.random.default_rng(seed)
    sizes, fixed = (5, 3, 4), frozenset({1})
    rules = [
        (pair, rng.random([sizes[a] for a in pair]) < rng.choice([0.2, 0.5, 0.9]))
        for pair in ((0, 1), (2, 0), (1, 2))[: rng.integers(1, 4)]
    ]
    box = np.array([sorted(rng.choice(size + 1, 2, replace=False)) for size in sizes])
    (small,) = PossibleBoxes(tuple(rules), fixed).shrink(box[None])
    inside = [
        cell
        for cell in product(*(range(*ends) for ends in box))
        if all(table[tuple(cell[a] for a in pair)] for pair, table in rules)
    ]
    empty = (small[:, 0] == small[:, 1]).any()
    assert not (empty and inside)
    for place, (low, high) in enumerate(small):
        assert box[place, 0] <= low <= high <= box[place, 1]
        assert all(low <= cell[place] < high for cell in inside)
        if not empty and place in fixed:
            assert (low, high) == tuple(box[place])
    if len(rules) == 1 and not empty:  # of one rule, nothing is left at an end
        pair, _ = rules[0]
        for place in set(pair) - fixed:
            assert {small[place, 0], small[place, 1] - 1} <= {cell[place] for cell in inside}
