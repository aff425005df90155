"""Numbers within bins: what distances of marginals cannot see."""

import numpy as np
import pandas as pd
import pytest

import parley
from common.privacy.randomness import SeededRandomSource
from common.release.evaluation import compare_numbers, evaluate, far_off
from common.release.report.evaluation_page import evaluation_page

EQUAL = """
[[attribute]]
name = "debt"
kind = "integer"
min = 0
max = 99999
bins = 10

[[attribute]]
name = "weight"
kind = "real"
min = 40.0
max = 120.0
bins = 16
missing = true

[[attribute]]
name = "sex"
kind = "categorical"
values = ["F", "M"]
"""
LISTED = EQUAL.replace(
    "min = 0\nmax = 99999\nbins = 10", "edges = [0, 1, 100, 1000, 3000, 10000, 99999]"
)


def people(rows=3_000):
    rng = np.random.default_rng(3)
    debt = np.where(rng.random(rows) < 0.8, 0, rng.lognormal(6, 1, rows).astype(int))
    weight = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(75, 8, rows).clip(40, 120))
    return pd.DataFrame({"debt": debt, "weight": weight, "sex": rng.choice(["F", "M"], rows)})


def drawn(schema, table):
    """A perfect release: every marginal is right."""
    return schema.decode(schema.encode(table), SeededRandomSource(1))


def test_bins_that_hide_the_numbers_are_found_where_marginals_are_perfect():
    schema, real = parley.Schema.from_toml(EQUAL), people()
    found = evaluate(real, drawn(schema, real), schema)
    assert found.distances[0].worst == 0
    (debt,) = far_off(found.numbers)
    assert debt.name == "debt"
    assert debt.synthetic.mean > 10 * debt.real.mean
    assert debt.binned_mean == pytest.approx(debt.synthetic.mean, rel=0.1)
    assert "list edges" in debt.words()
    assert "list edges" in evaluation_page(found)
    assert found.as_json()["numbers"]["debt"]["real"]["median"] == 0


def test_edges_where_the_numbers_are_mend_it():
    schema, real = parley.Schema.from_toml(LISTED), people()
    compared = compare_numbers(real, drawn(schema, real), schema)
    assert [column.name for column in compared] == ["debt", "weight"]
    assert far_off(compared) == []


def test_noise_far_out_is_called_noise():
    schema, real = parley.Schema.from_toml(LISTED), people()
    made_up = drawn(schema, real)
    made_up.loc[:60, "debt"] = 80_000
    (debt,) = far_off(compare_numbers(real, made_up, schema))
    assert "clip = true" in debt.words()


def test_codes_have_no_numbers_to_compare():
    schema, real = parley.Schema.from_toml(EQUAL), people()
    codes = schema.encode(real)
    found = evaluate(codes, codes, schema)
    assert found.numbers == ()
    assert "no columns of numbers" in evaluation_page(found)
