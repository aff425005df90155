"""`parley plan`: a table to choose from."""

from fractions import Fraction

import pytest


@pytest.fixture
def proposed(parley, small, tmp_path):
    """A study.toml as `parley curator study new` writes it."""
    small()
    for name in ("north", "south"):
        assert parley("keys", "init", "party", name, "--folder", name).code == 0
    words = ["curator", "study", "new", "--name", "s", "--schema", "schema.toml", "--epsilon", "1"]
    for name in ("north", "south"):
        words += ["--party", f"{name}:200:{name}/identity.pub"]
    words += ["--signer", "north/identity.key", "--aggregation", "masked", "--out", "study.toml"]
    assert parley(*words).code == 0
    return "study.toml"


def test_the_command_prints_a_table_to_choose_from_and_the_same_as_json(parley, proposed):
    done = parley("plan", proposed, "--epsilon", "0.1,1/2", "--epsilon", "4", "--runs", "2")
    assert done.code == 0
    assert "of the stand-in, not of your data" in done.out
    told = parley("plan", proposed, "--epsilon", "0.1,1/2,4", "--runs", "2", "--json").json
    assert [line["epsilon"] for line in told["epsilons"]] == [0.1, 0.5, 1.0, 4.0]
    for line in told["epsilons"]:
        assert f"{line['tvd_2']:.4f}" in done.out, "the same seed, the same forecast"
        assert set(line["parties"]) == {"north", "south"}
        assert line["parties"]["north"]["bytes_sent"] > 0
        assert sum(Fraction(phase["epsilon"]) for phase in line["phases"]) == Fraction(
            line["epsilon_exact"]
        )
    assert told["epsilons"][0]["tvd_2"] > told["epsilons"][-1]["tvd_2"]


def test_a_public_table_can_stand_in(parley, proposed):
    told = parley("plan", proposed, "--stand-in", "data.csv", "--runs", "1", "--json").json
    assert told["stand_in_rows"] == 40
    assert "data.csv" in told["stand_in"]
    assert parley("plan", proposed, "--stand-in", "nowhere.csv").code == 3


@pytest.mark.parametrize(
    "words", [("--epsilon", "0"), ("--epsilon", "0.1,,2"), ("--dependence", "2")]
)
def test_what_cannot_be_forecast_is_said(parley, proposed, words):
    assert parley("plan", proposed, *words).code == 3
    assert parley("plan", "nowhere.toml").code == 3
