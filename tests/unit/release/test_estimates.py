"""Estimates: what is computed, how often an interval holds the truth, and what is flagged."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import common.release.refit as refit
import common.release.replicates as replicates_module
import parley
from common.errors import InputError
from common.methods.subn_plus.contrasts import Contrasts
from common.release import statistics as kinds
from common.release.diagnostics import Diagnostics, Measured, Verdict
from common.release.estimates import estimate, pool, related, t_quantile
from common.release.measured import _residuals
from common.release.refit import RowsInMemory
from common.release.replicates import Replicates, Replicator
from common.release.report.expected_error import expected_errors
from common.release.report.study_figures import study_tables
from common.release.statistics import CodedTable, OfTable
from common.schema import Codes
from parley.simulation.population import demo_schema_toml, make_population

SCHEMA = parley.Schema.from_toml(
    """
[[attribute]]
name = "letter"
kind = "categorical"
values = ["a", "b", "c"]

[[attribute]]
name = "ill"
kind = "boolean"

[[attribute]]
name = "age"
kind = "integer"
min = 0
max = 79
bins = 80
missing = true
"""
)


def people(rows, seed=5):
    rng = np.random.default_rng(seed)
    letter = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.normal(30 + 10 * letter, 12, rows), 0, 79).astype(int)
    ill = rng.random(rows) < 1 / (1 + np.exp(3 - age / 20))
    table = pd.DataFrame({"letter": np.array(list("abc"))[letter], "ill": ill, "age": age})
    return table.assign(age=table["age"].astype("Int64").mask(rng.random(rows) < 0.05))


@pytest.fixture(scope="module")
def table():
    return CodedTable(SCHEMA, SCHEMA.encode(people(4_000)))


def value(statistic, table):
    (found,) = statistic.of(table).values()
    return found


def test_statistics_are_those_that_pandas_computes(table):
    frame = table.frame.assign(age=table.numbers("age"))
    assert value(kinds.mean(SCHEMA, "age"), table) == pytest.approx(frame["age"].mean())
    assert value(kinds.quantile(SCHEMA, "age", 0.9), table) == pytest.approx(
        frame["age"].quantile(0.9)
    )
    by = kinds.mean(SCHEMA, "age", by="letter", where="ill = true").of(table)
    expected = frame[frame["ill"]].groupby("letter")["age"].mean()
    assert {group: found for (_, group), found in by.items()} == pytest.approx(expected.to_dict())
    share = kinds.share(SCHEMA, "age >= 40", by="ill").of(table)
    assert share["share of age >= 40", "true"] == pytest.approx(
        (frame["age"][frame["ill"]] >= 40).mean()
    )
    counts = kinds.count(SCHEMA, "age is missing", 1_000, by="letter").of(table)
    assert sum(counts.values()) == pytest.approx(1_000 * frame["age"].isna().mean())


@pytest.mark.slow
def test_regressions_are_those_of_other_software(table):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    frame = table.frame.assign(age=table.numbers("age")).dropna()
    design = np.column_stack([frame["age"], frame["letter"] == "b", frame["letter"] == "c"])
    logistic = kinds.regression(SCHEMA, "ill ~ age + letter").of(table)
    found = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(design, frame["ill"])
    assert list(logistic.values())[1:] == pytest.approx(found.coef_[0].tolist(), rel=1e-3)
    linear = kinds.regression(SCHEMA, "age ~ ill + `letter`").of(table)
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
        (lambda: OfTable(lambda _: "x").of(CodedTable(SCHEMA, SCHEMA.encode(people(5)))), "number"),
    ],
)
def test_what_cannot_be_computed_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_function_rests_on_the_columns_whose_shuffling_changes_it(table):
    frame = table.frame.assign(age=table.numbers("age"))
    assert related(lambda t: t["age"].mean(), frame) == frozenset()
    assert related(lambda t: t.groupby("letter")["age"].mean(), frame) == {"letter", "age"}


def small_study(rows, seed):
    return parley.simulate(
        [rows.iloc[::2], rows.iloc[1::2]], SCHEMA,
        epsilon="0.3", method="floor", aggregation="clear", seed=seed,
    )  # fmt: skip


def covered(studies, replicates=12):
    """How often intervals of shares and a mean hold the population's values."""
    truth = CodedTable(SCHEMA, SCHEMA.encode(people(200_000, seed=0)))
    asked = [
        kinds.share(SCHEMA, "letter = c"),
        kinds.share(SCHEMA, "ill = true"),
        kinds.mean(SCHEMA, "age"),
        kinds.mean(SCHEMA, "ill", by=None),
    ]
    held = []
    for seed in range(studies):
        made = small_study(people(900, seed=100 + seed), seed)
        repeated = Replicator(made, made.released, seed, processes=1).run(replicates)
        for statistic in asked:
            (found,) = estimate(statistic, repeated)
            held.append(found.low <= value(statistic, truth) <= found.high)
    return np.mean(held)


def test_intervals_hold_the_truth_and_would_not_without_noise_in_the_replicates(monkeypatch):
    """Seeds are fixed: 25 studies, 100 intervals of nominal 95 %."""
    assert 0.9 <= covered(25) <= 1.0
    monkeypatch.setattr(refit, "draw_noise", lambda plan, _: np.zeros(plan.cells, dtype=np.int64))
    assert covered(10) < 0.85


PAIR = parley.Schema.from_toml(
    """
[[attribute]]
name = "smokes"
kind = "boolean"

[[attribute]]
name = "ill"
kind = "boolean"
"""
)


def related_rows(excess, rows=40_000):
    """Half of the rows smoke, half are ill; both are true in a quarter of them and the excess."""
    both = round(rows * (0.25 + excess))
    smokes = np.repeat([0, 1], rows // 2)
    ill = np.concatenate([np.arange(rows // 2) < both, np.arange(rows // 2) >= both])
    return Codes.from_columns([smokes, ill.astype(np.int64)], PAIR.sizes)


@pytest.mark.parametrize(("kept", "expected"), [(0.5, 0.1), (1.0, 0.05), (0.1, 0.15)])
def test_a_relation_that_replicates_weaken_is_taken_to_be_weakened_before(kept, expected):
    """The release shows an excess of 0.05; a correction by more than three times is a guess."""
    scatter = np.array([-2, -1, 0, 1, 2]) * 1e-3
    repeated = Replicates(
        PAIR, related_rows(-0.05), related_rows(-0.05),
        tuple(related_rows(-0.05 * kept + each) for each in scatter), 40_000,
    )  # fmt: skip
    (found,) = estimate(kinds.share(PAIR, "smokes = true and ill = true"), repeated)
    assert found.estimate == pytest.approx(0.25 + expected, abs=0.01)
    assert found.standard_error >= abs(found.estimate - 0.3)
    (alone,) = estimate(kinds.share(PAIR, "ill = true"), repeated)
    assert alone.estimate == pytest.approx(0.5)


def test_replicates_are_the_same_in_several_processes(monkeypatch):
    made = small_study(people(300), 1)
    told = []
    alone = Replicator(made, made.released, 3, processes=1).run(7)
    monkeypatch.setattr(replicates_module, "_WORTH_S", 1e-9)
    shared = Replicator(made, made.released, 3, processes=3)
    found = shared.run(7, tell=lambda fraction, doing: told.append(fraction))
    for one, other in zip(alone.tables, found.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))
    assert told == sorted(told)
    assert told[-1] == 1


def test_replicates_scatter_as_samples_of_people_do_where_a_model_draws_in_strata():
    rows = people(1_000)[["ill"]]
    schema = parley.Schema(tuple(a for a in SCHEMA.attributes if a.name in rows.columns))
    made = parley.simulate(
        [rows[::2], rows[1::2]], schema, epsilon=1_000, method="subn+", aggregation="clear", seed=1
    )
    asked = kinds.share(schema, "ill = true")
    (found,) = estimate(asked, Replicator(made, made.released, 1, processes=1).run(60))
    sampling = math.sqrt(found.estimate * (1 - found.estimate) / 1_000)
    assert 0.75 < found.standard_error / sampling < 1.35  # in strata it would be a hundredth


def test_pooling_is_the_rule_for_fully_synthetic_tables():
    estimates, variances = [1.0, 2.0, 4.0, 5.0], [0.5, 0.5, 0.5, 0.5]
    found = pool(estimates, variances)
    between = np.var(estimates, ddof=1)
    assert found.estimate == 3.0
    assert found.standard_error == pytest.approx(math.sqrt(1.25 * between - 0.5))
    assert found.degrees_of_freedom == pytest.approx(3 * (1 - 0.5 / (1.25 * between)) ** 2)
    assert found.high - 3 == pytest.approx(
        t_quantile(found.degrees_of_freedom, 0.95) * found.standard_error
    )
    assert pool(estimates).standard_error == pytest.approx(math.sqrt(1.25 * between))
    assert pool([1.0, 1.0], [0.5, 0.5]).standard_error == pytest.approx(math.sqrt(0.5))
    for wrong in (([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(InputError):
            pool(*wrong)


def test_pooled_intervals_hold_the_truth_where_the_rule_for_partly_synthetic_tables_does_not():
    """The model's error has variance 4, the drawing of a table 1; the truth is 0."""
    rng = np.random.default_rng(2)
    tables, held, other = 20, 0, 0
    for _ in range(1_000):
        model = rng.normal(0, 2)
        estimates = model + rng.normal(0, 2, tables) + rng.normal(0, 1, tables)
        found = pool(estimates, np.ones(tables))
        held += found.low <= 0 <= found.high
        half = t_quantile(tables - 1, 0.95) * math.sqrt(1 + np.var(estimates, ddof=1) / tables)
        other += abs(estimates.mean()) <= half
    assert 930 <= held <= 985
    assert other < 800


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
