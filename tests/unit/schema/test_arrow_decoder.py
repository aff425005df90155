"""Numbers inside bins, along the slope of the bins around them."""

import numpy as np
import pytest

from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.arrow_decoder import decode_to_arrow
from common.schema.codes import Codes


def schema_of(kind, edges, more=""):
    return Schema.from_toml(
        f'[[attribute]]\nname = "amount"\nkind = "{kind}"\nedges = {edges}\n{more}'
    )


def decoded(schema, codes, *, arrow):
    source = SeededRandomSource(3)
    table = decode_to_arrow(schema, codes, source) if arrow else schema.decode(codes, source)
    return (table.to_pandas() if arrow else table)["amount"]


def coded(schema, codes):
    return Codes.from_columns([np.asarray(codes)], schema.sizes)


@pytest.mark.parametrize("kind", ["integer", "real"])
@pytest.mark.parametrize("arrow", [False, True])
def test_a_falling_density_falls_inside_bins(kind, arrow):
    """Exponential amounts in wide bins: the mean of the real numbers is missed by far less."""
    real = np.random.default_rng(1).exponential(1000, 60_000).clip(0, 7999)
    schema = schema_of(kind, [0, 1000, 2000, 3000, 4000, 6000, 8000])
    bins = np.digitize(real, [1000, 2000, 3000, 4000, 6000])
    codes = coded(schema, bins)
    found = decoded(schema, codes, arrow=arrow)
    assert schema.encode(found.to_frame()).columns[0].tolist() == bins.tolist()
    second = (bins == 1) | (bins == 2)
    flat = (schema.attributes[0].domain.centre(bins[second])).astype(float).mean()
    off = abs(found[second].astype(float).mean() - real[second].mean())
    assert off < 0.5 * abs(flat - real[second].mean())


@pytest.mark.parametrize("arrow", [False, True])
def test_a_flat_table_a_peak_and_the_ends_stay_flat(arrow):
    schema = schema_of("integer", [0, 100, 200, 300, 400, 500])
    for counts in ([4000] * 5, [0, 500, 9000, 500, 0]):
        codes = coded(schema, np.repeat(np.arange(5), counts))
        found = decoded(schema, codes, arrow=arrow)
        for number in np.flatnonzero(np.array(counts) >= 4000):
            inside = found[codes.columns[0] == number].astype(float) - 100 * number
            assert abs(inside.mean() - 49.5) < 4 * 29 / np.sqrt(len(inside))


@pytest.mark.parametrize("arrow", [False, True])
def test_empty_cells_are_in_no_bin(arrow):
    schema = schema_of("integer", [0, 100, 200, 300], "missing = true\n")
    codes = coded(schema, np.repeat([0, 1, 2, 3], [8000, 4000, 0, 20_000]))
    found = decoded(schema, codes, arrow=arrow)
    assert found.isna().sum() == 20_000
    inside = found[codes.columns[0] == 1].astype(float)
    assert inside.mean() < 145  # falling towards the empty bin


def test_the_density_is_the_straight_line_that_it_should_be():
    """Counts 3, 2, 1: from 5/4 to 3/4 in the middle bin, so its lower half has 9/16."""
    schema = schema_of("real", [0.0, 1.0, 2.0, 3.0])
    codes = coded(schema, np.repeat([0, 1, 2], [30_000, 20_000, 10_000]))
    found = decoded(schema, codes, arrow=False)[codes.columns[0] == 1]
    assert (found < 1.5).mean() == pytest.approx(9 / 16, abs=0.015)
