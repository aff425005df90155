"""The settings of an owner's node, and the table that they name."""

from pathlib import Path

import pytest

from common.errors import InputError
from party.settings import party_settings, source_settings

PARTY = {"folder": Path("s"), "keys": Path("k"), "policy": Path("p"), "curator": "hub:7443"}


def test_a_value_of_the_environment_is_said_to_come_from_there():
    variables = {f"PARLEY_PARTY_{key.upper()}": str(value) for key, value in PARTY.items()}
    with pytest.raises(
        InputError, match=r"^the environment \(PARLEY_PARTY_\*\): look_again_s: nan"
    ):
        party_settings(None, {**variables, "PARLEY_PARTY_LOOK_AGAIN_S": "nan"})


def test_the_table_of_the_rows_is_relative_to_the_file_that_names_it(tmp_path):
    file = tmp_path / "party.toml"
    lines = [f'{key} = "{value}"' for key, value in PARTY.items()]
    file.write_text("\n".join([*lines, "[source]", 'kind = "csv"', 'path = "rows.csv"']))
    settings = party_settings(file, {})
    assert source_settings(settings, file, {}).address == str(tmp_path / "rows.csv")
    assert source_settings(settings, None, {}).address == "rows.csv"
    file.write_text("\n".join(lines))
    with pytest.raises(InputError, match="source"):
        source_settings(party_settings(file, {}), file, {})


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    file = tmp_path / "party.toml"
    file.write_text("".join(f'{key} = "{value}"\n' for key, value in PARTY.items()))
    variables = {"PARLEY_PARTY_CURATOR": "other:1", "PARLEY_PARTY_POLICY": "q"}
    found = party_settings(file, variables, {"curator": "flag:2"}).values
    assert (found.curator, found.policy, found.keys) == (
        "flag:2",
        Path("q"),
        tmp_path / "k",
    )
