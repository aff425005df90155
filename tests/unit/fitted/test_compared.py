"""Residuals are as large as noise and drawing, where rows follow; larger where they do not."""

import numpy as np
import pandas as pd

import parley
from common.analysis.diagnostics import PairVerdict, diagnose
from common.fitted.compared import _residuals
from common.methods.subn_plus.requests import Contrasts
from common.schema import Codes
from common.study.requests import RowsInMemory


def test_residuals_show_a_model_that_does_not_follow_what_was_measured():
    """A study that measured a strong pair, beside rows in which the pair is independent."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 3_000)
    frame = pd.DataFrame({"x": first == 1, "y": first == 1})
    schema = parley.Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "boolean"\n[[attribute]]\nname = "y"\nkind = "boolean"\n'
    )
    made = parley.PrivBayes(epsilon=1, seed=1).fit(frame, schema)
    assert diagnose(made, made.sample_codes()).pairs[0, 1].verdict is PairVerdict.SAFE
    apart = Codes.from_columns([first, rng.permutation(first)], schema.sizes)
    facts = diagnose(made, apart).pairs[0, 1]
    assert facts.verdict is PairVerdict.CARE
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
