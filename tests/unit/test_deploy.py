"""The sample files are complete, are read without complaint, and name real commands."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from common.service.process import ENOUGH_OPEN_FILES
from curator.settings import CuratorSettings, curator_settings
from parley.cli.main import main
from party.owner.policy import SAMPLE, Policy
from party.settings import PartySettings, party_settings, source_settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.mark.parametrize(
    ("name", "kind", "read"),
    [
        ("curator.toml", CuratorSettings, curator_settings),
        ("party.toml", PartySettings, party_settings),
    ],
)
def test_sample_settings_name_every_key_with_its_default(name, kind, read):
    file = DEPLOY / "samples" / name
    settings = read(file, {})
    written = set(tomllib.loads(file.read_text()))
    assert {field.name for field in dataclasses.fields(kind)} <= written
    for field in dataclasses.fields(kind):
        if field.name not in (
            "passphrase_file",
            "metrics",
            "dashboard_operators",
            "dashboard_oidc",
            "dashboard_oidc_secret",
            "on_event",
            "contacts",
            "releases",
        ) and not isinstance(field.default, type(dataclasses.MISSING)):
            assert getattr(settings.values, field.name) == field.default
    for line in file.read_text().splitlines():
        assert not re.match(r"^\w+ =[^#]*$", line) or line.startswith(("kind", "path")), line


def test_the_sample_source_is_understood():
    file = DEPLOY / "samples" / "party.toml"
    assert source_settings(party_settings(file, {}), file, {}).kind == "csv"


def test_the_sample_policy_is_the_documented_one():
    file = DEPLOY / "samples" / "policy.toml"
    assert file.read_text() == SAMPLE
    Policy.load(file)


def test_the_owners_of_the_trial_approve_what_its_curator_signs():
    text = (DEPLOY / "trial-setup.sh").read_text()
    written = re.search(r"policy\.toml <<TOML\n(.*?)\nTOML", text, re.DOTALL).group(1)
    policy = Policy.from_toml(written.replace("$signer", "D8SJ-VYX3-J44C-K6HW-0GG8-G1VA-16T6-04PT"))
    assert policy.automatic
    assert policy.signers


def test_a_curator_may_have_more_connections_than_a_few_strangers_can_open():
    unit = (DEPLOY / "systemd" / "parley-curator.service").read_text()
    assert f"LimitNOFILE={ENOUGH_OPEN_FILES}\n" in unit
    compose = (DEPLOY / "compose.yaml").read_text()
    assert f"nofile: {ENOUGH_OPEN_FILES}" in compose


def metrics_in(text):
    return set(re.findall(r"\bparley_[a-z_]+", text))


def test_alarms_and_board_name_metrics_that_the_page_of_operations_lists():
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text())["groups"][0][
        "rules"
    ]
    board = json.loads((DEPLOY / "monitoring" / "board.json").read_text())
    asked = [rule["expr"] for rule in rules]
    asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert all(metrics_in(expression) for expression in asked)
    assert metrics_in(" ".join(asked)) <= metrics_in(page)
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "action"}


@pytest.mark.parametrize("unit", ["parley-curator.service", "parley-party.service"])
def test_units_write_below_one_folder_and_have_limits(unit):
    lines = (DEPLOY / "systemd" / unit).read_text().splitlines()
    assert {"StateDirectory=parley", "ProtectSystem=strict", "MemoryMax=4G"} <= set(lines)
    assert not [line for line in lines if line.startswith("ReadWritePaths")]
    assert "ExecReload=/bin/kill -HUP $MAINPID" in lines


@pytest.mark.parametrize("unit", ["parley-curator.service", "parley-party.service"])
def test_units_start_commands_that_exist(unit, capsys):
    text = (DEPLOY / "systemd" / unit).read_text()
    words = re.search(r"ExecStart=\S+/parley (.*?) --config", text).group(1).split()
    assert main([*words, "--help"]) == 0
    assert "--config" in capsys.readouterr().out
