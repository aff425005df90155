"""The container files name real commands, settings and mounts, and give no more than is needed."""

import json
import re
import textwrap
import tomllib
from pathlib import Path

import pytest
import yaml

from curator.settings import CuratorSettings, curator_settings
from parley.cli.main import main
from party.owner.policy import Policy
from party.settings import PartySettings, party_settings, source_settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
OWNERS = ("north", "east", "south")
SETTINGS = {"PARLEY_CURATOR_": CuratorSettings, "PARLEY_PARTY_": PartySettings}


def is_a_command(words, capsys):
    done = main([*words[: words.index("--config")], "--help"])
    return done == 0 and "--config" in capsys.readouterr().out


def lies_below(path, mounts):
    return any(Path(path).is_relative_to(mount) for mount in mounts)


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


@pytest.mark.parametrize("name", ["curator", *OWNERS])
def test_composed_services_are_commands_with_known_settings(services, name, capsys):
    service = services[name]
    assert is_a_command(service["command"], capsys)
    for variable in service["environment"]:
        prefix = next(prefix for prefix in SETTINGS if variable.startswith(prefix))
        assert variable.removeprefix(prefix).lower() in SETTINGS[prefix].__dataclass_fields__
    assert lies_below(service["command"][-1], [v.split(":")[1] for v in service["volumes"]])


def test_composed_services_are_confined(services):
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "ports" not in service


def test_composed_owners_share_a_network_and_a_folder_with_nobody_but_the_curator(services):
    networks = [set(services[owner]["networks"]) for owner in OWNERS]
    assert all(not (a & b) for a in networks for b in networks if a is not b)
    assert set.union(*networks) == set(services["curator"]["networks"])
    folders = {services[name]["volumes"][0].split(":")[0] for name in ("curator", *OWNERS)}
    assert len(folders) == 4


@pytest.fixture(params=["curator", "party"])
def manifest(request):
    file = DEPLOY / "kubernetes" / f"{request.param}.yaml"
    kinds = {document["kind"]: document for document in yaml.safe_load_all(file.read_text())}
    return request.param, kinds


def test_the_settings_of_the_manifests_are_read_and_point_at_mounts(manifest, tmp_path):
    role, kinds = manifest
    for name, text in kinds["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text)
    container = kinds["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    file = tmp_path / f"{role}.toml"
    read = {"curator": curator_settings, "party": party_settings}[role]
    settings = read(file, {})
    if role == "party":
        assert source_settings(settings, file, {}).kind == "postgresql"
        Policy.load(tmp_path / "policy.toml")
    paths = [value for value in tomllib.loads(file.read_text()).values() if str(value)[0] == "/"]
    assert len(paths) == 3
    assert all(lies_below(path, mounts) for path in paths)
    port = int(settings.values.metrics.rpartition(":")[2])
    assert port in [port["containerPort"] for port in container["ports"]]
    assert container["livenessProbe"]["httpGet"]["port"] == "metrics"


def test_the_pods_run_commands_without_root_and_with_a_writable_state_only(manifest, capsys):
    _, kinds = manifest
    pod = kinds["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert is_a_command(pod["containers"][0]["args"], capsys)
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
    volumes = {v["name"] for v in pod["volumes"]} | {
        claim["metadata"]["name"] for claim in kinds["StatefulSet"]["spec"]["volumeClaimTemplates"]
    }
    for container in (*pod["initContainers"], *pod["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_only_the_curator_takes_calls_from_outside(manifest):
    role, kinds = manifest
    anybody = [rule for rule in kinds["NetworkPolicy"]["spec"]["ingress"] if "from" not in rule]
    ports = [port["port"] for rule in anybody for port in rule["ports"]]
    assert ports == ([7443] if role == "curator" else [])


def test_the_image_has_all_packages_and_a_user_who_is_not_root():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{package.rstrip('*')}" for package in packages} <= set(sent)
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
    assert 'ENTRYPOINT ["parley"]' in text
    version = project["project"]["version"]
    for file in ("compose.yaml", "kubernetes/curator.yaml", "kubernetes/party.yaml"):
        images = re.findall(r"image: (\S+)", (DEPLOY / file).read_text())
        assert set(images) == {f"parley:{version}"}


CHART = DEPLOY / "helm" / "parley"
ACTION = re.compile(r"\{\{-? ?(.*?) ?-?\}\}")


def rendered(role, values):
    """A template of the chart, by the few actions that it uses."""

    def value_of(path):
        found = values
        for word in path.removeprefix(".Values.").split("."):
            found = found[word]
        return found

    def replaced(match):
        action = match[1]
        if action == f'if eq .Values.role "{role}"' or action == "end":
            return ""
        if action.startswith("toJson "):
            return json.dumps(value_of(action.removeprefix("toJson ")))
        path, *functions = action.split(" | ")
        assert functions in ([], ["trim", "indent 4"]), action
        text = str(value_of(path))
        return textwrap.indent(text.strip(), "    ") if functions else text

    return ACTION.sub(replaced, (CHART / "templates" / f"{role}.yaml").read_text())


def test_the_chart_renders_to_the_manifests(manifest):
    role, kinds = manifest
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    values["storage"] = {"curator": "20Gi", "party": "5Gi"}[role]
    made = {each["kind"]: each for each in yaml.safe_load_all(rendered(role, values))}
    assert made == kinds
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart["version"] == chart["appVersion"] == version
