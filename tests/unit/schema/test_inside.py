"""Numbers drawn inside their bins: the means that are known are met, for every kind of number."""

import numpy as np
import pandas as pd
import pytest

from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.schema.codes import Codes
from common.schema.decoder import Inside, places_of

KINDS = {
    "whole": 'kind = "integer"\nmin = 0\nmax = 79\nbins = 8',
    "two numbers": 'kind = "integer"\nmin = 0\nmax = 15\nbins = 8',
    "cents": 'kind = "real"\nmin = 0\nmax = 80\nbins = 8\ndecimals = 2',
    "measured": 'kind = "real"\nmin = 0\nmax = 0.001\nbins = 8',
    "days": 'kind = "date"\nmin = 2020-01-01\nmax = 2021-12-31\nbins = 8',
}
CLASSES = (0, 0, 0, 1, 1, 1, -1, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("means", [(0.5, 0.2, 0.7), (0.0, 1.0, 0.02), (0.99, 0.5, 0.31)])
def test_every_class_has_its_mean_and_every_number_its_bin(kind, means):
    schema = Schema.from_toml(f'[[attribute]]\nname = "x"\n{KINDS[kind]}')
    domain = schema.attributes[0].domain
    rng = np.random.default_rng(2)
    codes = rng.choice(8, 40_000, p=np.arange(1, 9) / 36)
    table = Codes.from_columns([codes], schema.sizes)
    inside = {0: Inside(CLASSES, means)}
    drawn = schema.decode(table, SeededRandomSource(1), inside)
    again = schema.encode(drawn)
    assert np.array_equal(again.columns[0], codes)
    numbers = drawn["x"] - pd.Timestamp(0) if kind == "days" else drawn["x"]
    numbers = numbers.dt.days if kind == "days" else numbers
    parts = (numbers.to_numpy() - domain.first[codes]) / domain.spans[codes]
    for number, mean in enumerate(means):
        members = np.array(CLASSES)[codes] == number
        assert parts[members].mean() == pytest.approx(mean, abs=0.012)


def test_without_knowledge_numbers_follow_the_slope_alone():
    domain = Schema.from_toml(f'[[attribute]]\nname = "x"\n{KINDS["whole"]}').attributes[0].domain
    codes = np.repeat(np.arange(8), [10, 20, 40, 80, 160, 80, 40, 20])
    uniforms = np.random.default_rng(1).random(len(codes))
    plain = places_of(domain, codes, uniforms)
    unknown = places_of(domain, codes, uniforms, Inside((-1,) * 8, (0.9,)))
    assert np.array_equal(plain, unknown)
    assert plain[codes == 2].mean() > 0.5
