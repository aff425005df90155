"""Acceptance criteria: what they ask of rows, how far a row moves them, and what is concluded."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import parley
from common.errors import InputError
from common.methods import criteria
from common.methods.criteria import UNIT, CriteriaRequest, CriterionOutcome, noise_bound
from common.methods.registry import run_of
from common.privacy import sensitivity
from common.privacy.randomness import SeededRandomSource
from common.release.verify import verify
from common.schema import Codes, Schema
from common.study.accounting import account
from common.study.criteria import read_criteria
from common.study.document import Study
from common.study.requests import encode_cells
from parley.cli.main import app
from parley.simulation.in_process import RowsInMemory
from tests.harness.run_script import drive, study_of
from tests.harness.schemas import CRITERIA as EVERY_KIND
from tests.harness.schemas import JUDGED as SCHEMA

PART = Fraction(1, 10)


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 9, count)
    income = np.where(
        rng.random(count) < 0.2, 4, np.minimum(age // 3 + rng.integers(0, 2, count), 3)
    )
    return Codes.from_columns([age, income, rng.random(count) < 0.3], SCHEMA.sizes)


def tables_of(*counts):
    return {f"p{i}": rows_of(count, i) for i, count in enumerate(counts)}


def agreed(tables, **changes):
    fields = {
        "schema": SCHEMA, "method": "floor", "epsilon": Fraction(2),
        "criteria": read_criteria(EVERY_KIND), "criteria_epsilon": PART,
    }  # fmt: skip
    return study_of(tables, **(fields | changes))


def request_of(*tables):
    schema = Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "integer"\nmin = 0\nmax = 30\nbins = 3\n'
        "missing = true\n"
        '[[attribute]]\nname = "y"\nkind = "boolean"\n[[attribute]]\nname = "z"\nkind = "boolean"\n'
    )
    return schema, CriteriaRequest(read_criteria(tables), schema)


def test_no_replaced_row_moves_a_number_by_more_than_the_unit():
    """Every table of two rows, and every replacement of one of them."""
    schema, request = request_of(
        {"mean": "x", "within": 1}, {"share": "x > 10 and y = true", "within": 1},
    )  # fmt: skip
    kinds = list(product(*map(range, schema.sizes)))
    answers = {
        pair: request.answer(RowsInMemory(Codes.from_columns(np.array(pair).T, schema.sizes)))
        for pair in product(kinds, kinds)
    }
    apart = np.array(
        [
            np.abs(answers[one, kept] - answers[other, kept])
            for one, other in product(kinds, kinds)
            for kept in kinds[::3]
        ]
    )
    assert apart.max(axis=0).max() == UNIT
    assert apart.max(axis=0).tolist() == [UNIT, UNIT, UNIT]
    moved = sensitivity.bounded(request.cells, most=UNIT)
    assert apart.sum(axis=1).max() <= moved.l1
    assert (apart**2).sum(axis=1).max() <= moved.l2_squared
    assert max(np.abs(own).max() for own in answers.values()) <= request.limit(2)


def test_numbers_are_those_of_the_rows():
    tables = tables_of(500, 700)
    study = agreed(tables, epsilon=Fraction(10**6), criteria_epsilon=Fraction(10**5))
    driven = drive(run_of(study), study, tables)
    found = criteria.verdicts(
        study, driven.steps, [encode_cells(own) for own in driven.results], driven.model
    )
    whole = [np.concatenate([own.columns[a] for own in tables.values()]) for a in range(3)]
    income = np.array([500, 1500, 2500, 3500])[whole[1][whole[1] < 4]].mean()
    share = ((whole[0] > 5) & (whole[2] == 1)).mean()
    assert found[0]["measured"] == pytest.approx(income, abs=2)
    assert found[2]["measured"] == pytest.approx(share, abs=1e-4)
    assert [each["outcome"] for each in found] == ["met"] * 3


def test_noise_passes_its_bound_once_in_twenty():
    """Coverage with power: a bound of 0.7 or 1.3 times the width is told from this one."""
    tables = tables_of(60)
    study = agreed(tables, criteria=read_criteria(EVERY_KIND[2:3]), colluders=0)
    step = drive(run_of(study), study, tables).steps[-1]
    noise = np.abs(step.law.draw(20_000, SeededRandomSource("coverage")))
    bound = noise_bound(study, step)
    outside = [(noise > factor * bound).mean() for factor in (0.7, 1.0, 1.3)]
    assert abs(outside[1] - 0.05) < 0.006
    assert outside[0] > 0.1
    assert outside[2] < 0.03


@given(st.floats(-50, 50), st.floats(0, 30), st.floats(-50, 50), st.floats(0.01, 20), st.booleans())
def test_a_verdict_is_what_holds_everywhere_in_the_interval(middle, width, model, limit, relative):
    exact = Fraction(limit).limit_denominator(1000) / (20 if relative else 1)
    criterion = replace(read_criteria([EVERY_KIND[0]])[0], limit=exact, relative=relative)
    ends = (middle - width, middle + width)
    found = criteria._judged(criterion, *ends, model).outcome
    grid = np.linspace(*ends, 400)
    over = np.abs(model - grid) - float(exact) * (np.abs(grid) if relative else 1)
    if found is CriterionOutcome.MET:
        assert over.max() <= 1e-9
    elif found is CriterionOutcome.NOT_MET:
        assert over.min() > -1e-9
    else:
        assert over.max() > -0.2 * (1 + width)
        assert over.min() < 0.2 * (1 + width)


@pytest.mark.parametrize("method", ["subn+", "floor", "dp-subn", "dp-ccbn"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
def test_criteria_are_a_part_of_the_epsilon_of_every_method(method, delta):
    if delta and method == "dp-subn":
        return
    tables = tables_of(300, 200, 400)
    study = agreed(tables, method=method, delta=delta, criteria=read_criteria(EVERY_KIND[:3]))
    driven = drive(run_of(study), study, tables)
    assert [step.name for step in driven.steps].count("criteria") == 1
    assert driven.steps[-1].name == "criteria"
    accountant, promise = account(study, driven.steps), study.promise
    assert promise.delivered(accountant.most_spent) == study.epsilon
    for name in tables:
        assert driven.steps[-1].costs[name] <= study.criteria_cost
        assert driven.steps[-1].costs[name] > Fraction(99, 100) * study.criteria_cost
    driven.fed_to(run_of(study))


@pytest.mark.parametrize("per_person", [0, 2])
def test_several_rows_of_a_person_are_protected(per_person):
    tables = tables_of(300, 200)
    study = agreed(tables, rows_per_person=per_person)
    step = drive(run_of(study), study, tables).steps[-1]
    assert step.sensitivity.l1 == max(1, per_person) * step.cells * UNIT
    assert step.costs["p0"] == PART


def frames(*counts):
    made = []
    for own in tables_of(*counts).values():
        age, income, smoker = own.columns
        made.append(
            pd.DataFrame(
                {
                    "age": 10 * age.astype(int) + 5,
                    "income": [None if code == 4 else 1000 * code + 10 for code in income.tolist()],
                    "smoker": smoker.astype(bool),
                }
            ).astype({"income": "Int64"})
        )
    return made


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "floor", "delta": 1e-6, "may_miss": 1, "drop": {"party 2": 1}},
        pytest.param({"method": "dp-subn", "encoding": "binary"}, marks=pytest.mark.slow),
        pytest.param({"method": "subn+", "delta": 1e-6}, marks=pytest.mark.slow),
    ],
)
def test_a_release_says_which_criteria_were_met_and_is_verified(tmp_path, changes):
    fitted = parley.simulate(
        frames(900, 800, 700, 900), SCHEMA, epsilon=2, criteria=EVERY_KIND, criteria_epsilon="0.5",
        aggregation="masked", **changes,
    )  # fmt: skip
    fitted.save(tmp_path / "release")
    assert not verify(tmp_path / "release", unsigned=True).problems
    told = fitted.privacy["criteria"]
    assert len(told) == len(EVERY_KIND)
    assert {each["outcome"] for each in told} <= {outcome.value for outcome in CriterionOutcome}
    shown = CliRunner().invoke(app, ["describe", str(tmp_path / "release")])
    report = (tmp_path / "release" / "report.html").read_text("utf-8")
    for each in told:
        assert f"criterion: {each['criterion']}: {each['outcome']}" in shown.output
        assert each["criterion"].replace(">", "&gt;") in report
    entry = CliRunner().invoke(app, ["describe", str(tmp_path / "release"), "--registry"])
    assert '"acceptance_criteria"' in entry.output


def test_criteria_on_the_command_line(tmp_path):
    rows, schema, out = (tmp_path / name for name in ("rows.csv", "schema.toml", "release"))
    frames(600)[0].to_csv(rows, index=False)
    schema.write_text(SCHEMA.to_toml(), encoding="utf-8")
    words = [
        "simulate", str(rows), "--schema", str(schema), "--epsilon", "2", "--out", str(out),
        "--method", "floor", "--aggregation", "masked", "--parties", "2", "--json",
        "--criterion", 'mean = "age", within = "5 %"',
        "--criterion", 'share = "smoker = true", within = 0.4',
        "--criteria-epsilon", "0.5",
    ]  # fmt: skip
    done = CliRunner().invoke(app, words)
    told = json.loads(done.stdout)["criteria"]
    assert [each["criterion"] for each in told] == [
        "mean of age within 5 %", "share of smoker = true within 0.4",
    ]  # fmt: skip
    assert f"criterion: mean of age within 5 %: {told[0]['outcome']}" in done.stderr
    agreed_on = Study.load(out / "study.toml")
    assert [each.kind for each in agreed_on.criteria] == ["mean", "share"]
    assert agreed_on.criteria_epsilon == Fraction(1, 2)
    wrong = CliRunner().invoke(app, [*words, "--overwrite", "--criterion", "mean of age"])
    assert "--criterion 'mean of age': write keys and values" in str(wrong.exception)


def test_a_changed_verdict_is_noticed(tmp_path):
    fitted = parley.simulate(
        frames(400, 300), SCHEMA, epsilon=2, method="floor", aggregation="masked",
        criteria=EVERY_KIND[:1], criteria_epsilon="0.5",
    )  # fmt: skip
    privacy = dict(fitted.privacy)
    (told,) = privacy["criteria"]
    privacy["criteria"] = [told | {"model": told["model"] * 1.001}]
    replace(fitted, privacy=privacy).save(tmp_path / "release")
    (problem, *_) = verify(tmp_path / "release", unsigned=True).problems
    assert "criteria" in str(problem)


def test_a_distance_of_0_2_is_read_and_refused_by_name():
    study = agreed(tables_of(60), criteria=read_criteria([{"distance": "0.1", "pairs": "all"}]))
    assert Study.from_toml(study.to_toml(), where="a release").digest == study.digest
    with pytest.raises(InputError, match="': distances are measured by versions up to"):
        run_of(study)
