"""Which statistics a release supports."""

from itertools import combinations

import numpy as np
import pandas as pd

import parley
from common.methods.subn_plus.contrasts import Contrasts
from common.release.diagnostics import Diagnostics, Measured, Verdict
from common.release.measured import _residuals, study_tables
from common.release.report.expected_error import expected_errors
from common.schema import Codes
from common.study.requests import RowsInMemory
from parley.simulation.population import demo_schema_toml, make_population


def tables_of(*measured, unrelated=None):
    every = frozenset(combinations(range(4), 2)) - {unrelated}
    return Diagnostics(("a", "b", "c", "d"), measured, every)


def measured(attributes, shape, *, deviation=1.0, exact=True, residuals=None, summable=True):
    scores = None if residuals is None else np.asarray(residuals, dtype=float)
    return Measured(
        name="step", attributes=attributes, shape=shape, deviation=deviation, rows=1_000,
        grouped=(not exact,) * len(attributes), residuals=scores, summable=summable,
        deviations=None if scores is None else np.ones(scores.size),
    )  # fmt: skip


def test_pairs_are_safe_or_to_be_used_with_care_or_absent():
    found = tables_of(
        measured((0, 1), (2, 2)),
        measured((0, 2), (2, 2), deviation=200.0),
        measured((1, 2), (2, 2), exact=False),
        measured((1, 3), (16, 8), exact=False, deviation=0.5),
        measured((0, 2, 3), (2, 2, 2), summable=False),
        measured((2, 3), (2, 2), residuals=[9, -9, -9, 9]),
    ).pairs
    assert {pair: facts.verdict for pair, facts in found.items()} == {
        (0, 1): Verdict.SAFE, (0, 2): Verdict.CARE, (1, 2): Verdict.CARE, (1, 3): Verdict.SAFE,
        (2, 3): Verdict.CARE, (0, 3): Verdict.ABSENT,
    }  # fmt: skip
    assert "do not follow" in found[2, 3].reason
    assert "in few groups" in found[1, 2].reason
    weak = tables_of(measured((0, 1), (2, 2)), unrelated=(0, 1)).pairs[0, 1]
    assert weak.verdict is Verdict.CARE
    assert "no relation" in weak.reason


def test_statistics_of_what_was_not_measured_are_flagged():
    found = tables_of(*(measured(pair, (2, 2)) for pair in ((0, 1), (0, 2), (1, 2))))
    assert found.concerns(["a"]) == found.concerns(["a", "b"]) == []
    assert "never counted together" in found.concerns(["a", "d"])[0]
    assert found.concerns(["a", "b", "c"])  # every pair was counted, the triple was not
    assert found.concerns(["a", "b", "c"], pairwise=True) == []
    assert found.triples == 0
    assert tables_of(measured((0, 1, 2), (2, 2, 2))).concerns(["a", "b", "c"]) == []


def test_residuals_show_a_model_that_does_not_follow_what_was_measured():
    """A study that measured a strong pair, beside rows in which the pair is independent."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 3_000)
    frame = pd.DataFrame({"x": first == 1, "y": first == 1})
    schema = parley.Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "boolean"\n[[attribute]]\nname = "y"\nkind = "boolean"\n'
    )
    made = parley.PrivBayes(epsilon=1, seed=1).fit(frame, schema)
    assert made.diagnose(made.sample_codes()).pairs[0, 1].verdict is Verdict.SAFE
    apart = Codes.from_columns([first, rng.permutation(first)], schema.sizes)
    facts = made.diagnose(apart).pairs[0, 1]
    assert facts.verdict is Verdict.CARE
    assert "do not follow" in facts.reason


def test_contrasts_of_rows_that_follow_are_off_by_their_noise_and_drawing():
    rng = np.random.default_rng(3)
    groups = (tuple(value // 4 for value in range(20)), (0, 1), (0, 1, 2))
    request = Contrasts(((0, 1), (0, 2), (1, 2)), groups)
    sizes, rows = (20, 2, 3), 4_000
    first = rng.integers(0, 20, rows)
    real = Codes.from_columns([first, first % 2, rng.integers(0, 3, rows)], sizes)
    noise = 1_000.0

    def spread(claimed):
        found = []
        for _ in range(20):
            drawn = real.take(rng.integers(0, rows, rows // 2))
            exact = request.answer(RowsInMemory(real))
            published = exact + rng.normal(0, noise, len(exact)).round().astype(np.int64)
            residuals, deviations = _residuals(request, published, drawn, rows, claimed**2)
            found.append(residuals / deviations)
        return float(np.mean(np.square(found)))

    assert 0.85 < spread(noise) < 1.15
    assert spread(0.7 * noise) > 1.15
    assert spread(1.3 * noise) < 0.85


def test_contrasts_tell_the_tables_of_their_pairs():
    """A study with a delta asks no table of a pair, and yet says how good each one is."""
    people = make_population(6_000, seed=1)[["age", "smoker", "chronic_illness"]]
    whole = parley.Schema.from_toml(demo_schema_toml())
    schema = parley.Schema(tuple(a for a in whole.attributes if a.name in people.columns))
    made = parley.simulate(
        [people[::2], people[1::2]], schema, epsilon=8, delta="1/1000000", method="subn+",
        aggregation="clear", seed=1,
    )  # fmt: skip
    assert any(isinstance(step.request, Contrasts) for step in made.steps)
    pairs = made.diagnostics.pairs
    assert pairs[0, 2].verdict is Verdict.SAFE
    tables = study_tables(made.study, made.steps)
    told = {error.attributes: error for error in expected_errors(tables, 2)}
    assert told.keys() == pairs.keys()
    assert 0 < told[1, 2].deviation < 100
    margins = [step for step in made.steps if step.name != "correlations"]
    assert expected_errors(tables, 1) == expected_errors(study_tables(made.study, margins), 1)
