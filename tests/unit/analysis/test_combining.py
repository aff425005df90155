"""One interval from the model's and the direct one: bounds, quantiles, misfit, coverage."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from common.analysis.combining import combined, misfit_of, model_part, quantile
from common.analysis.direct import Direct, DirectIntervals
from common.privacy.randomness import SeededRandomSource
from tests.unit.analysis.test_direct import (
    LAW,
    VALUES,
    correlation,
    margins,
    repeated,
    rows_of,
    table_of,
)

TERMS = {"error": 0.01, "misfit": 0.2, "freedom": 19, "confidence": 0.95}
CASES = [(narrow, bias) for narrow in (0.2, 0.5, 0.9) for bias in (0.0, 0.3, 1.0, 4.0)]


def mean_square(part, narrow, bias, correlated):
    """Of the error of a mixture, if the direct estimate has the deviation 1."""
    noise = (part * narrow) ** 2 + (1 - part) ** 2 + 2 * part * (1 - part) * correlated * narrow
    return noise + (part * bias) ** 2


@pytest.mark.parametrize(("narrow", "bias"), CASES)
def test_the_mixture_is_the_best_under_the_worst_correlation_of_errors(narrow, bias):
    misfit = bias**2 + (1 - narrow) ** 2  # as large as the least noise lets it be
    part, deviation = model_part(narrow=narrow, wide=1.0, misfit=misfit)
    for correlated in (-1.0, 0.0, narrow, 1.0):  # `narrow`: an efficient model [Hausman]
        assert mean_square(part, narrow, bias, correlated) <= deviation**2 + 1e-12
    others = [mean_square(x, narrow, bias, 1.0) for x in np.linspace(0, 1, 201)]
    assert deviation**2 == pytest.approx(min(others), abs=1e-4)
    assert deviation <= 1


def test_without_a_misfit_that_is_known_or_a_narrower_model_the_sums_speak_alone():
    assert model_part(narrow=0.5, wide=1.0, misfit=math.inf) == (0.0, 1.0)
    assert model_part(narrow=1.0, wide=1.0, misfit=0.1) == (0.0, 1.0)


@pytest.mark.parametrize("ranges", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("freedom", [5, 19])
def test_the_quantile_holds_a_value_anywhere_in_the_range_and_no_less_would(freedom, ranges):
    reach = quantile(freedom, confidence=0.95, ranges=ranges)
    places = np.linspace(0, ranges, 11)
    held = stats.t.cdf(reach + places, freedom) - stats.t.cdf(places - ranges - reach, freedom)
    assert held.min() == pytest.approx(0.95, abs=1e-9)
    one_sided, two_sided = stats.t.ppf([0.95, 0.975], freedom)
    assert one_sided <= reach <= two_sided + 1e-9
    assert quantile(freedom, confidence=0.95, ranges=math.inf) == pytest.approx(one_sided)


def test_a_model_outside_of_the_direct_interval_has_no_part():
    direct = Direct(0.5, 0.1, 0.45, 0.55)
    both = combined(-0.5, direct, **TERMS)
    assert both.estimate == 0.5
    assert both.deviation == 0.1
    agreed = combined(0.48, direct, **TERMS)
    assert agreed.high - agreed.low < both.high - both.low


@pytest.mark.parametrize("correlated", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("wrong", [0.0, 0.5, 2.0])
def test_intervals_hold_on_average_whatever_the_bias_and_the_correlation(correlated, wrong):
    """Half of the pairs have a bias, of one size: far from a normal one."""
    rng, narrow, pairs = np.random.default_rng(3), 0.4, 4000
    shared, own = rng.normal(size=(2, pairs))
    model = narrow * (correlated * shared + math.sqrt(1 - correlated**2) * own)
    model += wrong * rng.choice([-1.0, 0.0, 0.0, 1.0], pairs)
    misfit = float(np.mean((shared - model) ** 2))
    found = [
        combined(
            m, Direct(d, 1.0, d, d), error=narrow, misfit=misfit, freedom=1000, confidence=0.95
        )
        for m, d in zip(model.tolist(), shared.tolist(), strict=True)
    ]
    assert np.mean([own.low <= 0 <= own.high for own in found]) > 0.93
    widths = np.array([own.high - own.low for own in found])
    assert widths.max() <= 2 * quantile(1000, confidence=0.95) + 1e-9
    if not wrong and correlated:
        assert np.median(widths) < 0.8 * 2 * 1.96


def test_the_misfit_is_near_one_for_noise_alone_and_large_for_a_model_that_is_wrong():
    made, rng = repeated(), np.random.default_rng(1)

    def misfit(truth):
        noise = rng.laplace(0, math.sqrt(LAW.variance() / 2), (VALUES, VALUES))
        measured = (table_of((made.released, truth), noise), *margins())
        return misfit_of(DirectIntervals(measured, made), correlation())

    alone = 1 + 2 * math.sqrt(2)  # two deviations of one square
    right = [misfit(made.released) / alone for _ in range(100)]
    assert 0.5 < np.mean(right) < 1.2  # the spread also allows for sampling, which is not drawn
    assert misfit(rows_of(99, 40_000, slope=0.5)) > 10 * alone


def test_the_model_is_no_witness_of_what_was_not_published_or_not_fitted_again():
    made = repeated()
    measured = (table_of((made.released, made.released), 0.0), *margins())
    assert misfit_of(DirectIntervals(measured, made), correlation()) == 0
    assert misfit_of(DirectIntervals(tuple(margins()), made), correlation()) == math.inf
    redrawn = replace(made, refitted=False)
    assert misfit_of(DirectIntervals(measured, redrawn), correlation()) == math.inf


def test_the_noise_of_a_weighted_sum_is_that_of_noise_drawn_again():
    made = repeated()
    measured = (table_of((made.released, made.released), 0.0), *margins())
    known = DirectIntervals(measured, made).table((0, 1))
    weights = np.multiply.outer(*(np.arange(size) - (size - 1) / 2 for size in known.table.shape))
    source = SeededRandomSource("noise")
    sums = [float((weights * (known.again(source) - known.table)).sum()) for _ in range(400)]
    inside = np.maximum(known.table, 0)
    sampled = ((weights**2 * inside).sum() - (weights * inside).sum() ** 2) / 4_000
    assert np.std(sums) == pytest.approx(math.hypot(known.noise_of(weights), math.sqrt(sampled)),
                                         rel=0.1)  # fmt: skip
