"""What the papers describe, asked for on the command line: it is obeyed, told, or refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

from common.analysis.evaluation import evaluate, noisy_majority
from common.schema import Codes, Schema

SCHEMA = """
attribute = [
  { name = "age", kind = "integer", min = 0, max = 63 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
]
"""
SYNTHESIZE = ("synthesize", "data.csv", "--schema", "schema.toml", "--out", "out", "--json")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{rng.integers(0, 64)},{'FM'[rng.integers(0, 2)]}" for _ in range(300)]
    (tmp_path / "data.csv").write_text("age,sex\n" + "\n".join(lines) + "\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def test_the_attributes_that_privelet_leaves_alone_are_named(table, parley):
    words = (*SYNTHESIZE, "--method", "privelet", "--epsilon", "1", "--overwrite")
    alone = parley(*words, "--untransformed", "sex")
    assert alone.code == 0
    report = (table / "out" / "report.html").read_text()
    assert "age: haar, sex: untransformed" in report
    assert parley(*words, "--untransformed", "none").code == 0
    assert "sex: untransformed" not in (table / "out" / "report.html").read_text()
    refused = parley(*words, "--untransformed", "sex", "--variant", "basic")
    assert refused.code != 0
    assert "has no choice of attributes" in refused.err
    assert parley(*words, "--untransformed", "height").code != 0


def test_privelet_that_transforms_nothing_says_so(table, parley):
    words = (*SYNTHESIZE, "--method", "privelet", "--epsilon", "1", "--overwrite")
    nothing = parley(*words, "--untransformed", "age", "--untransformed", "sex")
    assert "transforms no attribute here" in nothing.err
    assert "transforms no attribute here" in (table / "out" / "report.html").read_text()
    assert "transforms no attribute" not in parley(*words, "--untransformed", "sex").err
    assert "transforms no attribute" not in parley(*words, "--variant", "basic").err


def test_privbayes_as_printed(table, parley):
    words = (*SYNTHESIZE, "--epsilon", "4", "--score", "R", "--overwrite")
    assert parley(*words).code == 0
    tight = json.loads((table / "out" / "privacy.json").read_text())
    assert parley(*words, "--consistency", "off", "--sensitivity", "printed").code == 0
    printed = json.loads((table / "out" / "privacy.json").read_text())
    assert json.loads((table / "out" / "model.json").read_text())["model"]["consistency"] is False

    def largest(privacy):
        return max(s["sensitivities"]["owner"] for s in privacy["steps"] if "choice" in s["step"])

    assert largest(printed) == pytest.approx(3 * 300 + 2)  # in count units
    assert largest(tight) < largest(printed)


def test_a_cap_of_privbayes_is_told_and_lifted(table, parley):
    words = (*SYNTHESIZE, "--epsilon", "50", "--encoding", "binary", "--overwrite")
    capped = parley(*words, "--most-candidate-cells", "20")
    assert "lowered from" in capped.err
    assert "--most-candidate-cells" in (table / "out" / "report.html").read_text()
    assert "lowered from" not in parley(*words).err


def test_the_noisy_majority_is_wrong_as_often_as_its_noise_says():
    """Of 60 and 40 rows at epsilon 1/10: P(noise turns them) by the exact law, within 4 %."""
    column = np.repeat([0, 1], [60, 40])
    codes = Codes.from_columns([column], [2])
    found = noisy_majority(codes, codes, 0, Fraction(1, 10))
    q = np.exp(-1 / 20)
    k = np.arange(-2000, 2001)
    law = (1 - q) / (1 + q) * q ** np.abs(k)
    difference = np.convolve(law, law)  # of the two counts' noise, from -4000 on
    turned = difference[4000 + 21 :].sum()  # a tie goes to the first value
    assert found == pytest.approx(0.4 + 0.2 * turned, abs=0.008)
    assert noisy_majority(codes, codes, 0, Fraction(10**6)) == pytest.approx(0.4)


def test_evaluate_has_both_losses_and_the_noisy_majority(table, parley):
    words = ("evaluate", "data.csv", "data.csv", "--schema", "schema.toml", "--target", "sex")
    found = parley(*words, "--loss", "hinge", "--majority-epsilon", "1", "--json").json
    assert set(found["classification"]["sex"]) == {
        "trained_on_real", "trained_on_synthetic", "majority", "noisy_majority"
    }  # fmt: skip
    assert "noisy_majority" not in parley(*words, "--json").json["classification"]["sex"]
    assert parley(*words, "--loss", "huber").code != 0


def test_hinge_and_squared_hinge_are_different_classifiers():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 8, (600, 4))
    y = (x.sum(axis=1) + rng.normal(0, 4, 600) > 14).astype(int)
    codes = Codes.from_columns([*x.T, y], [8, 8, 8, 8, 2])
    schema = Schema.from_toml(
        "".join(
            f'[[attribute]]\nname = "a{i}"\nkind = "categorical"\n'
            f"values = {[str(v) for v in range(size)]}\n"
            for i, size in enumerate(codes.sizes)
        )
    )
    rates = {
        loss: evaluate(codes, codes, schema, ["a4"], loss=loss).classifications[0]
        for loss in ("hinge", "squared-hinge")
    }
    assert rates["hinge"].trained_on_real < 0.5
    assert rates["hinge"] != rates["squared-hinge"]
