"""Distances, dependence, classification and numbers against answers known by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import parley
from common.analysis.diagnostics import dependence
from common.analysis.distances import evaluate_linked
from common.analysis.evaluation import compare_numbers, evaluate, far_off
from common.bayes.contingency import cramers_v
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.report.evaluation_page import evaluation_page
from common.schema import Codes, Schema
from common.schema.linked import encode_linked
from tests.harness.linked import SCHEMA as LINKED
from tests.harness.linked import frames


def schema_of(sizes):
    return Schema.from_toml(
        "".join(
            f'[[attribute]]\nname = "{"abcdefgh"[i]}"\nkind = "categorical"\n'
            f"values = {[str(v) for v in range(size)]}\n"
            for i, size in enumerate(sizes)
        )
    )


def codes_of(rows, sizes):
    return Codes.from_columns([np.array(c) for c in zip(*rows, strict=True)], sizes)


def test_a_table_is_at_no_distance_from_itself():
    rows = [(i % 2, i % 3, i % 2) for i in range(60)]
    table = codes_of(rows, (2, 3, 2))
    found = evaluate(table, table, schema_of((2, 3, 2))).as_json()
    assert (found["tvd_1"], found["tvd_2"], found["tvd_3"]) == (0.0, 0.0, 0.0)
    assert found["dependence_difference"] == 0.0


def test_disjoint_tables_are_at_distance_one():
    zeros, ones = codes_of([(0, 0)] * 20, (2, 2)), codes_of([(1, 1)] * 20, (2, 2))
    found = evaluate(zeros, ones, schema_of((2, 2)))
    assert [d.average for d in found.distances] == [1.0, 1.0]
    assert "tvd_3" not in found.as_json()


def test_the_worst_marginal_is_named():
    good = codes_of([(i % 2, i % 2) for i in range(20)], (2, 2))
    bad = codes_of([(i % 2, 0) for i in range(20)], (2, 2))
    one_way = evaluate(good, bad, schema_of((2, 2))).distances[0]
    assert one_way.worst_attributes == ("b",)
    assert (one_way.worst, one_way.average) == (0.5, 0.25)


def test_dependence_is_one_for_a_copy_and_zero_for_independence():
    grid = [(a, b, a) for a in range(3) for b in range(4)] * 5
    found = dependence(codes_of(grid, (3, 4, 3)))
    assert found[0, 2] == pytest.approx(1.0)
    assert found[0, 1] == pytest.approx(0.0)


def test_cramers_v_of_a_known_table():
    # chi square = 100 (30 * 35 - 20 * 15)^2 / (50 * 50 * 45 * 55) = 9.0909
    assert cramers_v(np.array([[30, 20], [15, 35]])) == pytest.approx((9.090909 / 100) ** 0.5)


def test_a_constant_attribute_has_no_dependence():
    assert cramers_v(np.array([[5, 7], [0, 0]])) == 0.0


def test_a_classifier_finds_a_copy_in_good_rows_and_not_in_shuffled_ones():
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2, 500)
    real = Codes.from_columns([bits, bits], (2, 2))
    shuffled = Codes.from_columns([bits, rng.permutation(bits)], (2, 2))
    schema = schema_of((2, 2))
    (good,) = evaluate(real, real, schema, ["b"]).classifications
    (bad,) = evaluate(real, shuffled, schema, ["b"]).classifications
    assert good.trained_on_synthetic == 0.0
    assert bad.trained_on_real == 0.0
    assert bad.trained_on_synthetic > 0.2


def test_rows_that_all_say_the_same_still_give_an_error_rate():
    real = codes_of([(i % 2, i % 2) for i in range(40)], (2, 2))
    flat = codes_of([(i % 2, 1) for i in range(40)], (2, 2))
    (found,) = evaluate(real, flat, schema_of((2, 2)), ["b"]).classifications
    assert found.trained_on_synthetic == pytest.approx(0.5)


def test_an_unknown_target_is_named():
    table = codes_of([(0, 1)] * 20, (2, 2))
    with pytest.raises(InputError, match="'wealth'"):
        evaluate(table, table, schema_of((2, 2)), ["wealth"])


def test_too_few_rows_are_refused():
    table = codes_of([(0, 1)] * 9, (2, 2))
    with pytest.raises(InputError, match="10 rows"):
        evaluate(table, table, schema_of((2, 2)))


EQUAL = """
attribute = [
  { name = "debt", kind = "integer", min = 0, max = 99999, bins = 10 },
  { name = "weight", kind = "real", min = 40.0, max = 120.0, bins = 16, missing = true },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]
"""
LISTED = EQUAL.replace(
    "min = 0, max = 99999, bins = 10", "edges = [0, 1, 100, 1000, 3000, 10000, 99999]"
)


def people(rows=3_000):
    rng = np.random.default_rng(3)
    debt = np.where(rng.random(rows) < 0.8, 0, rng.lognormal(6, 1, rows).astype(int))
    weight = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(75, 8, rows).clip(40, 120))
    return pd.DataFrame({"debt": debt, "weight": weight, "sex": rng.choice(["F", "M"], rows)})


def drawn(schema, table):
    """A perfect release: every marginal is right."""
    codes = replace(schema.encode(table), places=())  # rows are drawn from codes alone
    return schema.decode(codes, SeededRandomSource(1))


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


def test_people_with_their_events_are_compared_like_codes_of_both():
    real, drawn = frames(80), frames(60, seed=1)
    synthetic = [own.rename(columns={"id": "person"}) for own in drawn]
    in_order = synthetic[1].sort_values(["person", "day"]).drop(columns="day")
    found = parley.evaluate(real, (synthetic[0], in_order), LINKED, person="id")
    assert (found.rows_real, found.rows_synthetic) == (80, 60)
    assert "60 synthetic people against 80 real people" in repr(found)
    assert "next event: average distance" in repr(found)
    codes = [encode_linked(LINKED, *own, person="id") for own in (real, drawn)]
    assert found.as_json()["linked"] == evaluate_linked(*codes, LINKED).as_json()
    assert [n.name for n in found.numbers] == ["age"]


def test_one_table_of_a_linked_schema_is_refused_and_so_is_a_pair_of_another():
    people, events = frames(30)
    with pytest.raises(InputError, match=r"real: the schema has .events.. Hand over .people, ev"):
        evaluate(people, (people, events), LINKED, person="id")
    with pytest.raises(InputError, match="name the column that joins"):
        evaluate((people, events), (people, events), LINKED)
    with pytest.raises(InputError, match=r"it has no .events."):
        evaluate((people, events), people, LINKED.people)
