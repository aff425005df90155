"""Privelet on a real census table, from the file to the intervals."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.census_like import ADULT, random_boxes
from common.privacy.accountant import Accountant
from common.privacy.randomness import SeededRandomSource
from common.wavelet import privelet
from common.wavelet.decisions import axes_of

BOXES = 2000


@pytest.mark.statistical
def test_intervals_hold_the_true_counts_of_the_adult_table(shared_data):
    schema = ADULT
    table = pd.read_csv(shared_data / "adult-raw.csv")[list(schema.names)]
    codes = schema.encode(table)
    release = privelet(
        codes,
        schema,
        epsilon=1,
        source=SeededRandomSource("adult"),
        accountant=Accountant({"owner": None}),
    )
    boxes = random_boxes(axes_of(schema), BOXES, seed=0)
    answers = release.box_counts(boxes)
    columns = np.stack([column.astype(np.intp) for column in codes.columns])
    truth = np.array(
        [((columns >= box[:, :1]) & (columns < box[:, 1:])).all(axis=0).sum() for box in boxes]
    )
    inside = (answers.low <= truth) & (truth <= answers.high)
    # Answers of one release share noise, so this is no binomial; the seed is fixed.
    assert 0.92 < inside.mean() < 0.98
    written = release.count("age in 20..39 and sex = Female and occupation = Sales")
    exact = (table["age"].between(20, 39) & (table["sex"] == "Female")) & (
        table["occupation"] == "Sales"
    )
    assert abs(written.value - exact.sum()) < 5 * written.standard_deviation
