"""Options that commands share: what is typed, what is meant, and what is warned of."""

from dataclasses import replace
from fractions import Fraction

import pytest
import typer
from typer.testing import CliRunner

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.schema import Schema
from common.study.members import Member
from parley.cli.options import (
    Terms,
    criteria_of,
    delimiter_of,
    load_schema,
    settings_of,
    signer_of,
    taking_terms,
    tell_decisions,
    warned_of_large_epsilon,
)
from tests.harness.deployed_folder import NORTH
from tests.harness.run_script import chain_tables, study_of


def test_settings_are_keys_and_values_and_digits_are_numbers():
    assert settings_of(["budget = 1:1", "degree=2", "x=-1", "y=a=b", "z=٣"]) == {
        "budget": "1:1", "degree": 2, "x": "-1", "y": "a=b", "z": "٣",
    }  # fmt: skip
    assert settings_of(None) == {}


@pytest.mark.parametrize("written", [["degree"], ["=2"], ["degree="], ["degree=2", "degree=3"]])
def test_a_setting_that_is_none_or_there_twice_is_refused(written):
    with pytest.raises(InputError, match="write each setting once"):
        settings_of(written)


def test_criteria_are_written_as_in_the_file():
    (found,) = criteria_of(['share = "age > 60", within = 0.01'])
    assert found["share"] == "age > 60"
    assert Fraction(found["within"]) == Fraction(1, 100), "exactly as it was typed"
    assert criteria_of(None) == []
    for wrong in ("mean = income", "x }, y = { z", ""):
        if wrong:
            with pytest.raises(InputError, match="write keys and values"):
                criteria_of([wrong])


@pytest.mark.parametrize(
    ("written", "meant"), [(None, None), (";", ";"), ("tab", "\t"), ("TAB", "\t"), ("\\t", "\t")]
)
def test_a_delimiter_is_one_character_or_a_tab(written, meant):
    assert delimiter_of(written) == meant


def test_a_delimiter_of_two_characters_is_refused():
    with pytest.raises(InputError, match="'::': it is not one character"):
        delimiter_of("::")


@pytest.mark.parametrize(
    ("value", "warned"), [("8", False), ("8.01", True), ("x", False), (None, False)]
)
def test_a_large_epsilon_is_warned_of_where_it_is_typed(value, warned, capsys):
    assert warned_of_large_epsilon(value) == value
    assert ("promises next to nothing" in capsys.readouterr().err) == warned


def test_terms_are_options_of_a_command_in_the_place_of_its_parameter():
    app, seen = typer.Typer(), []

    def command(*, before: int = 1, terms: Terms, after: int = 2):
        seen.append((before, terms, after))

    app.command()(taking_terms(command))
    typed = ["--epsilon", "1/3", "--rows", "7", "--set", "degree=2", "--after", "5"]
    assert CliRunner().invoke(app, typed).exit_code == 0
    ((before, terms, after),) = seen
    assert (before, terms.epsilon, terms.rows, after) == (1, "1/3", 7, 5)
    chosen = terms.chosen()
    assert (chosen["output_rows"], chosen["settings"], chosen["criterion"]) == (
        7,
        {"degree": 2},
        [],
    )
    assert "rows" not in chosen
    assert CliRunner().invoke(app, []).exit_code == 2, "epsilon has no default"


def test_a_schema_that_was_read_off_the_data_is_warned_of(tmp_path, capsys):
    path = tmp_path / "schema.toml"
    text = '[[attribute]]\nname = "a"\nkind = "boolean"\n'
    path.write_text(text)
    assert load_schema(path) == Schema.from_toml(text)
    assert capsys.readouterr().err == ""
    path.write_text(f"# NOT PRIVATE YET: read off the data\n{text}")
    load_schema(path)
    assert "still says NOT PRIVATE YET" in capsys.readouterr().err


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


def test_without_a_key_a_release_has_no_signer():
    assert signer_of(None, "", None) is None


def test_keys_under_a_passphrase_need_it_where_they_are_used(parley, small, monkeypatch):
    folder = small()
    secret = folder / "secret.txt"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    words = ("keys", "init", "curator", "hub", "--host", "localhost", "--folder", "k")
    assert parley(*words, "--passphrase-file", "secret.txt").code == 0
    assert b"ENCRYPTED" in (folder / "k" / "authority.key").read_bytes()
    assert parley("keys", "init", "party", "north", "--folder", "n").code == 0
    told = parley("keys", "request", "--folder", "n").out.split()[1]
    approve = ("keys", "approve", "n/party.csr", "--folder", "k", "--fingerprint", told)
    done = parley(*approve)
    assert done.code == 3
    assert "authority.key: it is under a passphrase" in done.err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "battery staple")
    assert "passphrase is wrong" in parley(*approve).err
    monkeypatch.setenv("PARLEY_PASSPHRASE", "correct horse")
    assert parley(*approve).code == 0
    assert "identity" in parley("keys", "show", "--folder", "k").out


def test_a_passphrase_is_changed_and_removed(parley, place, monkeypatch):
    for name, words in (("old", "correct horse"), ("new", "battery staple")):
        (place.folder / name).write_text(words)
        (place.folder / name).chmod(0o600)
    change = ("keys", "passphrase", "--folder", "north/keys")
    assert parley(*change, "--new-passphrase-file", "old").code == 0
    done = parley("party", "review", "study.toml", *NORTH)
    assert "identity.key: it is under a passphrase" in done.err
    assert parley(*place.words()).code == 0
    monkeypatch.setenv("PARLEY_PARTY_PASSPHRASE_FILE", "old")
    assert parley("party", "review", "study.toml", *NORTH).code == 0
    (place.folder / "old").chmod(0o604)
    assert "open to every user" in parley("party", "review", "study.toml", *NORTH).err
    (place.folder / "old").chmod(0o600)
    wrong = parley(*change, "--passphrase-file", "new", "--remove")
    assert "passphrase is wrong" in wrong.err
    assert parley(*change, "--passphrase-file", "old", "--new-passphrase-file", "new").code == 0
    assert parley(*change, "--passphrase-file", "new", "--remove").code == 0
    assert "mode 0600 only" in parley(*change, "--remove").out
