"""Statistics are those of other software."""

import numpy as np
import pytest

from common.analysis import statistics as kinds
from common.analysis.statistics import of_table
from common.errors import InputError
from tests.unit.analysis.estimated import (
    SCHEMA,
    TABLE,
    value,
)


def test_statistics_are_those_that_pandas_computes():
    frame = TABLE.frame.assign(age=TABLE.numbers("age"))
    assert value(kinds.mean(SCHEMA, "age"), TABLE) == pytest.approx(frame["age"].mean())
    assert value(kinds.quantile(SCHEMA, "age", 0.9), TABLE) == pytest.approx(
        frame["age"].quantile(0.9)
    )
    by = kinds.mean(SCHEMA, "age", by="letter", where="ill = true").of(TABLE)
    expected = frame[frame["ill"]].groupby("letter")["age"].mean()
    assert {group: found for (_, group), found in by.items()} == pytest.approx(expected.to_dict())
    share = kinds.share(SCHEMA, "age >= 40", by="ill").of(TABLE)
    assert share["share of age >= 40", "true"] == pytest.approx(
        (frame["age"][frame["ill"]] >= 40).mean()
    )
    counts = kinds.count(SCHEMA, "age is missing", 1_000, by="letter").of(TABLE)
    assert sum(counts.values()) == pytest.approx(1_000 * frame["age"].isna().mean())


@pytest.mark.slow
def test_regressions_are_those_of_other_software():
    from sklearn.linear_model import LinearRegression, LogisticRegression

    frame = TABLE.frame.assign(age=TABLE.numbers("age")).dropna()
    design = np.column_stack([frame["age"], frame["letter"] == "b", frame["letter"] == "c"])
    logistic = kinds.regression(SCHEMA, "ill ~ age + letter").of(TABLE)
    found = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(design, frame["ill"])
    assert list(logistic.values())[1:] == pytest.approx(found.coef_[0].tolist(), rel=1e-3)
    linear = kinds.regression(SCHEMA, "age ~ ill + `letter`").of(TABLE)
    design = np.column_stack([frame["ill"], frame["letter"] == "b", frame["letter"] == "c"])
    assert list(linear.values())[1:] == pytest.approx(
        LinearRegression().fit(design, frame["age"]).coef_.tolist()
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: kinds.mean(SCHEMA, "letter"), "has no numbers"),
        (lambda: kinds.mean(SCHEMA, "agee"), "did you mean 'age'"),
        (lambda: kinds.mean(SCHEMA, "age", by="Letter"), "did you mean 'letter'"),
        (lambda: kinds.regression(SCHEMA, "age"), "write it like"),
        (lambda: kinds.regression(SCHEMA, "age ~ age"), "there twice"),
        (lambda: kinds.quantile(SCHEMA, "age", 2), "not in 0..1"),
        (
            lambda: of_table(lambda _: "x").of(TABLE),
            "number",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_poisson_model_of_groups_is_the_logarithm_of_their_means():
    """With one term for each group but the first, the fit has a closed form."""
    found = kinds.regression(SCHEMA, "age ~ letter", family="poisson").of(TABLE)
    numbers, letter = TABLE.numbers("age"), TABLE.column("letter")
    means = [np.nanmean(numbers[letter == code]) for code in range(3)]
    expected = [np.log(means[0]), *(np.log(each / means[0]) for each in means[1:])]
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-5)


def test_a_correlation_is_that_of_the_rows_that_have_both_numbers():
    (found,) = kinds.correlation(SCHEMA, "age, ill").of(TABLE).values()
    age, ill = TABLE.numbers("age"), TABLE.numbers("ill")
    known = ~np.isnan(age)
    assert found == pytest.approx(np.corrcoef(age[known], ill[known])[0, 1])
    (alone,) = kinds.correlation(SCHEMA, "age, ill", where="ill = true").of(TABLE).values()
    assert np.isnan(alone)  # a column that does not vary


def test_a_mean_stays_between_the_ends_of_its_column():
    assert kinds.mean(SCHEMA, "age").bounds == (0, 79)
    assert kinds.mean(SCHEMA, "ill", by="letter").bounds == (0, 1)
    assert kinds.mean(SCHEMA, "age").mean_of == "age"
    assert kinds.mean(SCHEMA, "age", by="letter").mean_of is None
    assert kinds.mean(SCHEMA, "age", where="ill = true").mean_of is None
