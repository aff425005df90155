"""A wheelhouse installs without a network, and only as it was made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALONE = ["unshare", "--net"]  # a network namespace without any interface


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory):
    if shutil.which("unshare") is None or subprocess.run([*ALONE, "true"]).returncode:
        pytest.skip("no network namespaces here")
    sources = tmp_path_factory.mktemp("sources") / "parley"
    kept = ("common", "curator", "party", "parley", "deploy")
    for name in kept:
        shutil.copytree(ROOT / name, sources / name)
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, sources / name)
    make = ["sh", str(sources / "deploy/offline/make-wheelhouse.sh"), sys.executable]
    done = subprocess.run(make, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    unpacked = tmp_path_factory.mktemp("air gap")
    (archive,) = (sources / "dist").glob("*.tar.gz")
    shutil.unpack_archive(archive, unpacked, filter="data")
    return unpacked / "wheelhouse"


@pytest.mark.slow
def test_the_command_is_installed_without_a_network(wheelhouse, tmp_path):
    target = tmp_path / "opt" / "parley"
    install = [*ALONE, "sh", str(wheelhouse / "install.sh"), str(target), sys.executable]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(install, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert "installed: parley" in done.stdout
    tried = subprocess.run(
        [*ALONE, str(target / "bin/parley"), "synthesize", "--help"], env=environment, timeout=60
    )
    assert tried.returncode == 0


@pytest.mark.slow
def test_a_changed_wheelhouse_is_not_installed(wheelhouse, tmp_path):
    copy = tmp_path / "wheelhouse"
    shutil.copytree(wheelhouse, copy)
    with (copy / "constraints.txt").open("a") as file:
        file.write("numpy==1.0\n")
    install = ["sh", str(copy / "install.sh"), str(tmp_path / "parley")]
    done = subprocess.run(install, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "constraints.txt" in done.stdout + done.stderr
    assert not (tmp_path / "parley").exists()
