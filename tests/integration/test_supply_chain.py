"""What is handed out can be made again: the wheel to the byte, the bill of materials by name."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"(?:file|https?|git)\W{0,2}://|(?<![\w.])/(?:\w+/)+\w")


def run(words, **options):
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(sources, target, **environment):
    make = ["sh", sources / "deploy/make-wheel.sh", sys.executable, target]
    umask = {"umask": 0o077} if environment else {}
    run(make, env={**os.environ, **environment}, **umask)
    (wheel,) = target.glob("parley-*.whl")
    return wheel


@pytest.fixture
def clone(tmp_path):
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("not a git checkout, so there is no commit to build")
    run(["git", "clone", "--quiet", "--shared", ROOT, tmp_path / "clone"])
    return tmp_path / "clone"


def test_two_builds_of_a_commit_are_the_same_bytes_and_those_of_another_are_not(clone, tmp_path):
    leftover = clone / "common" / "leftover.py"  # not committed, so in no wheel
    leftover.write_text("value = 1\n")
    first = built(ROOT, tmp_path / "one")
    second = built(clone, tmp_path / "two", TZ="Asia/Tokyo", LC_ALL="C")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(second) as archive:
        assert "common/leftover.py" not in archive.namelist()
        assert len({each.date_time for each in archive.infolist()}) == 1
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    run(["git", "-C", clone, "add", "common/leftover.py"])
    run(["git", "-C", clone, *identity, "commit", "--quiet", "-m", "Add a module"])
    assert built(clone, tmp_path / "three").read_bytes() != first.read_bytes()


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "deploy" / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_names_what_runs_and_no_tool_of_developers(script):
    names = set(script.runtime_graph())
    assert {"parley", "numpy", "phe", "cryptography", "cffi"} <= names
    assert not names & {"pytest", "ruff", "cyclonedx-bom", "hypothesis", "pyspark"}


def test_places_are_left_out_at_any_depth(script):
    nested = {"a": [{"externalReferences": [{"url": "https://example.org"}], "name": "x"}]}
    assert script.without_places(nested) == {"a": [{"name": "x"}]}


@pytest.mark.slow
def test_the_bill_of_materials_has_every_pinned_version_and_no_place(tmp_path):
    for name in ("one", "two"):
        run([sys.executable, ROOT / "deploy/sbom.py", tmp_path / name])
    text = (tmp_path / "one").read_text()
    assert text == (tmp_path / "two").read_text()
    document = json.loads(text)
    assert (document.pop("$schema"), document["bomFormat"])[1] == "CycloneDX"
    assert not ADDRESS.findall(json.dumps(document))
    pins = set((ROOT / "constraints.txt").read_text().lower().split("\n"))
    versions = {f"{each['name']}=={each['version']}".lower() for each in document["components"]}
    assert len(versions) > 30
    assert versions <= pins
    (phe,) = [each for each in document["components"] if each["name"] == "phe"]
    assert phe["licenses"][0]["license"]["id"] == "GPL-3.0-only"
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert any(ref.startswith("numpy==") for ref in edges["root-component"])
