"""`parley plan`: its noise is the plan's, its bytes are a run's, its error is near the truth."""

from dataclasses import replace
from fractions import Fraction
from statistics import fmean

import numpy as np
import pytest

from common.analysis.distances import marginal_sets, total_variation
from common.crypto.sums.plan import Aggregation, Noise
from common.methods.registry import run_of
from common.methods.subn_plus.totals import LARGEST
from common.methods.subn_plus.totals import NAME as TOTALS
from common.privacy.noise_law import DiscreteLaplace
from common.privacy.randomness import SeededRandomSource
from common.privacy.sampling.polya import polya_shares
from common.release.prior import replay
from common.schema import Schema
from common.schema.codes import concatenate
from parley.forecast.forecast import forecast
from parley.forecast.trial import Trial, simulated
from parley.simulation.in_process import run_study
from parley.simulation.population import demo_schema_toml, make_population
from tests.harness.run_script import identities_of, random_tables, study_of

SIZES = (2, 3, 4, 2, 5)
TABLES = random_tables(SIZES, (400, 500, 600))


def stand_in_for(study, seed=1):
    return simulated(study.schema, study.rows, seed=seed)


@pytest.mark.parametrize(
    # Not dp-ccbn: its public choices come out of the study's digest, so a trial makes others.
    ("method", "profile"),
    [("subn+", "sound"), ("floor", "sound"), ("dp-subn", "sound"), ("dp-subn", "paper"),
     ("independent", "sound")],
)  # fmt: skip
def test_the_noise_forecast_is_that_of_the_plans_own_steps(method, profile):
    study = study_of(TABLES, method=method, profile=profile, aggregation=Aggregation.CLEAR)
    stand_in = stand_in_for(study)
    found = forecast(study, stand_in, [Fraction(1)], runs=1, seed=1)
    (line,) = found.lines
    # The study's own plan, advanced by the published results, and nothing of the forecast's.
    run = Trial(study, stand_in, 1).run(Fraction(1))
    steps = replay(study, run.results).steps
    sums = {(step.phase, step.law.scale) for step in steps if step.counts_all}
    sums |= {(step.phase, step.law.scale) for step in steps if step.cells and not step.counts_all}
    told = {(each.phase, each.scale) for each in line.phases if each.scale is not None}
    assert told == sums
    assert sum(each.steps for each in line.phases) == len(steps)
    assert sum(each.cells for each in line.phases) == sum(
        step.cells for step in steps if not step.choices
    )
    spent = {}
    for step in steps:
        for party, cost in step.costs.items():
            spent[party] = spent.get(party, 0) + cost
    assert line.cost == max(spent.values())
    assert sum(each.cost for each in line.phases) >= line.cost
    assert (line.cost == 1) == (profile == "sound" or method != "dp-subn")


@pytest.mark.parametrize(
    ("method", "aggregation", "noise", "profile", "may_miss"),
    [
        ("subn+", Aggregation.MASKED, Noise.DISTRIBUTED, "sound", 0),
        ("subn+", Aggregation.MASKED, Noise.DISTRIBUTED, "sound", 1),
        ("subn+", Aggregation.PAILLIER, Noise.DISTRIBUTED, "sound", 0),
        ("independent", Aggregation.MASKED, Noise.DISTRIBUTED, "sound", 0),
        pytest.param(
            "dp-subn", Aggregation.PAILLIER, Noise.ONE_SHARE, "paper", 0, marks=pytest.mark.slow
        ),
        pytest.param(
            "subn+", Aggregation.PAILLIER, Noise.ONE_SHARE, "paper", 0, marks=pytest.mark.slow
        ),
    ],
)
def test_the_bytes_forecast_are_those_of_a_run_within_five_percent(
    method, aggregation, noise, profile, may_miss
):
    """A third of the rows stand in for all of them: sizes do not depend on rows."""
    study = study_of(
        TABLES, method=method, aggregation=aggregation, noise=noise, profile=profile,
        may_miss=may_miss, colluders=0 if may_miss else 1,
    )  # fmt: skip
    run = run_study(study, run_of, TABLES, identities_of(TABLES), source=SeededRandomSource("r"))
    thirds = [table.take(slice(None, None, 3)) for table in TABLES.values()]
    (line,) = forecast(study, concatenate(thirds), [study.epsilon], runs=1, seed=1).lines
    for party, told in line.parties.items():
        sent = sum(phase.sent[party] for phase in run.traffic.values())
        received = sum(phase.received[party] for phase in run.traffic.values())
        assert told.bytes_sent == pytest.approx(sent, rel=0.05, abs=64)
        assert told.bytes_received == pytest.approx(received, rel=0.05, abs=64)
        assert told.seconds > 0


@pytest.mark.slow
def test_the_error_forecast_is_near_the_truth_when_the_stand_in_is_the_data():
    schema = Schema.from_toml("[[attribute]]".join(demo_schema_toml().split("[[attribute]]")[:6]))
    codes = schema.encode(make_population(3000, seed=5).iloc[:, :5])
    parts = {f"p{i}": codes.take(slice(i, None, 3)) for i in range(3)}
    study = replace(study_of(parts, method="subn+", aggregation=Aggregation.CLEAR), schema=schema)
    epsilons = [Fraction(1, 5), Fraction(2)]
    found = forecast(study, codes, epsilons, runs=4, seed=1)
    whole = concatenate(list(parts.values()))
    for line in found.lines:
        real = []
        for number in range(4):
            run = run_study(
                replace(study, epsilon=line.epsilon), run_of, parts, identities_of(parts),
                source=SeededRandomSource(f"real {number}"),
            )  # fmt: skip
            synthetic = run.model.sample(3000, SeededRandomSource(f"rows {number}"))
            real.append(fmean(total_variation(whole, synthetic, marginal_sets(5, order=2))))
        assert line.distances["2-way"] == pytest.approx(fmean(real), rel=0.25)
    assert found.lines[0].distances["2-way"] > 1.5 * found.lines[1].distances["2-way"]
    assert found.without_noise["2-way"] < found.lines[1].distances["2-way"]


def test_more_rows_than_the_stand_in_has_mean_noise_in_proportion():
    """A tenth of the rows, each counted ten times; what is told is of the real study."""
    many = study_of(TABLES, method="floor", aggregation=Aggregation.CLEAR)
    members = tuple(replace(each, rows=10 * each.rows) for each in many.members)
    many = replace(many, members=members)
    stand_in = simulated(many.schema, 1500, seed=1)
    (line,) = forecast(many, stand_in, [Fraction(1)], runs=1, seed=1).lines
    (phase,) = line.phases
    assert (phase.scale, phase.sensitivity, line.cost) == (10, 10, 1)
    few = replace(many, members=study_of(TABLES).members, epsilon=Fraction(10))
    (same,) = forecast(few, stand_in, [Fraction(10)], runs=1, seed=1).lines
    assert line.floor["2-way"] == pytest.approx(same.floor["2-way"], rel=0.5)


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(22), Fraction(10_000)])
def test_the_expected_noise_of_one_draw_is_the_closed_form(scale):
    q = np.exp(-1 / float(scale))
    assert DiscreteLaplace(scale).mean_absolute() == pytest.approx(2 * q / (1 - q * q), rel=1e-6)


def test_the_expected_noise_of_all_shares_is_their_average():
    shares = polya_shares(Fraction(20), 3 * 100_000, SeededRandomSource("shares"), parties=2)
    total = shares.reshape(3, -1).sum(axis=0)
    assert DiscreteLaplace(Fraction(20)).mean_absolute(Fraction(3, 2)) == pytest.approx(
        np.abs(total).mean(), 0.02
    )


def test_noise_in_totals_of_places_is_told_in_rows_at_the_end_of_a_bin():
    schema = Schema.of({name: {"kind": "real", "min": 0, "max": 90, "bins": 4} for name in "abc"})
    rows = simulated(schema, 4_000, seed=1)
    study = study_of({"p0": rows}, schema=schema, method="subn+", aggregation=Aggregation.CLEAR)
    (line,) = forecast(study, rows, [Fraction(4)], runs=1, seed=1).lines
    (phase,) = [phase for phase in line.phases if phase.phase == TOTALS]
    law = DiscreteLaplace(phase.scale)
    assert phase.noise_per_cell == pytest.approx(law.mean_absolute(Fraction(1)) / LARGEST)
    assert phase.noise_per_cell < rows.rows / 8
