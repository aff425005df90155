"""The terms of a study as options: what is typed, what is meant, and what is warned of."""

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import pytest
import typer
from typer.testing import CliRunner

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.study.members import Member
from common.study.terms import TERMS, Terms
from parley.cli.result import Result, command
from parley.cli.study_options import (
    criteria_of,
    settings_of,
    taking_terms,
    tell_decisions,
    terms_of,
    warned_of_large_epsilon,
)
from tests.harness.run_script import chain_tables, study_of


def test_settings_are_keys_and_values_and_digits_are_numbers():
    assert settings_of(["budget = 1:1", "degree=2", "x=-1", "y=a=b", "z=٣"]) == {
        "budget": "1:1", "degree": 2, "x": "-1", "y": "a=b", "z": "٣",
    }  # fmt: skip
    assert settings_of([]) == {}


@pytest.mark.parametrize("written", [["degree"], ["=2"], ["degree="], ["degree=2", "degree=3"]])
def test_a_setting_that_is_none_or_there_twice_is_refused(written):
    with pytest.raises(InputError, match="write each setting once"):
        settings_of(written)


def test_criteria_are_written_as_in_the_file():
    (found,) = criteria_of(['share = "age > 60", within = 0.01'])
    assert found["share"] == "age > 60"
    assert Fraction(found["within"]) == Fraction(1, 100), "exactly as it was typed"
    assert criteria_of([]) == []
    for wrong in ("mean = income", "x }, y = { z", ""):
        if wrong:
            with pytest.raises(InputError, match="write keys and values"):
                criteria_of([wrong])


@pytest.mark.parametrize(
    ("value", "warned"), [("8", False), ("8.01", True), ("x", False), (None, False)]
)
def test_a_large_epsilon_is_warned_of_where_it_is_typed(value, warned, capsys):
    assert warned_of_large_epsilon(value) == value
    assert ("promises next to nothing" in capsys.readouterr().err) == warned


def test_terms_are_options_of_a_command_in_the_place_of_its_parameter():
    app, seen = typer.Typer(), []

    def study(*, before: int = 1, terms: Terms, name: str = "own", after: int = 2) -> Result:
        seen.append((before, terms, name, after))
        return Result(None)

    command(app)(taking_terms(study))
    typed = ["--epsilon", "1/3", "--rows", "7", "--set", "degree=2", "--after", "5"]
    dated = [*typed, "--approve-by", "2027-06-30", "--may-miss", "2"]
    assert CliRunner().invoke(app, dated).exit_code == 0
    ((before, terms, name, after),) = seen
    assert (before, name, after) == (1, "own", 5)
    assert terms["epsilon"] == "1/3"
    assert (terms["output_rows"], terms["may_miss"]) == (7, 2)
    assert (terms["settings"], terms["criteria"]) == ({"degree": 2}, [])
    assert terms["expires"] == dt.date(2027, 6, 30)
    assert "noise" not in terms, "the profile decides"
    assert CliRunner().invoke(app, []).exit_code == 2, "epsilon has no default"


def test_every_term_is_an_option_with_its_meaning():
    app = typer.Typer()

    def study(*, terms: Terms) -> Result:
        return Result(terms)

    command(app)(taking_terms(study))
    options = {each.name: each for each in typer.main.get_command(app).params}
    assert set(TERMS) <= set(options)
    for name, term in TERMS.items():
        assert name == "method" or term.meaning in options[name].help
        assert f"--{term.key.replace('_', '-')}" in options[name].opts


def test_rows_are_at_least_one():
    with pytest.raises(InputError, match="--rows 0: ask for at least one row"):
        terms_of({"output_rows": 0})


def test_caps_that_bind_and_a_bound_above_the_claim_are_warned_of(capsys):
    tables = chain_tables(6, [400, 400])
    tell_decisions(study_of(tables, method="dp-subn", epsilon=Fraction(8)))
    assert capsys.readouterr().err == ""
    capped = (("degree", 4), ("most_parents", 2))
    tell_decisions(study_of(tables, method="dp-subn", epsilon=Fraction(8), settings=capped))
    assert "lowered from 4" in capsys.readouterr().err
    tell_decisions(study_of(tables, method="dp-subn", epsilon=Fraction(8), profile="paper"))
    assert "claims an epsilon of 8; the mechanism's bound is 10" in capsys.readouterr().err.replace(
        "\n", " "
    )


@pytest.mark.parametrize(("parties", "warned"), [(100, False), (101, True)])
def test_more_turns_than_a_minute_has_room_for_are_warned_of(capsys, parties, warned):
    names = [f"p{i}" for i in range(parties)]
    members = tuple(
        Member(name=name, rows=1, identity=Identity.generate(SeededRandomSource(name)).public)
        for name in names
    )
    study = study_of(chain_tables(2, [10]), method="dp-subn", profile="paper")
    tell_decisions(replace(study, members=members))
    assert (f"{parties} owners take a turn each" in capsys.readouterr().err) == warned
