"""A wheel of the sources installs by itself and brings the whole command, without the sources."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("common", "curator", "party", "parley", "pyproject.toml", "README.md", "LICENSE")


def run(words, **options):
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=600, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built of a copy: building leaves files beside the sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, copy / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    run([*pip, "-w", copy / "dist", copy])
    (made,) = (copy / "dist").glob("parley-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs a program of an environment of its own; the dependencies are those of this one."""
    home = tmp_path_factory.mktemp("installed") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", home])
    pip = [sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "-q"]
    run([*pip, "--no-deps", "--no-index", wheel])
    # As a path, not as an environment: the editable installation there is not found this way.
    libraries = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    return lambda program, *words, cwd: run(
        [home / "bin" / program, *words], env=libraries, cwd=cwd
    )


def test_the_wheel_has_what_the_services_show_and_nothing_of_the_tests(wheel):
    assert wheel.stat().st_size < 1_500_000  # the README says 1 MB
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tracked = run(["git", "ls-files", "common", "curator", "party", "parley"], cwd=ROOT)
    assert set(tracked.split()) - {"common/README.md"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs"))]


def test_the_installed_command_runs_without_the_sources(installed, tmp_path):
    found = installed("python", "-c", "import parley; print(parley.__file__)", cwd=tmp_path)
    assert "venv" in found
    assert str(ROOT) not in found
    assert installed("parley", "--version", cwd=tmp_path).split()[-1].startswith("0.")
    installed("parley", "demo", "--rows", "600", "--out", "demo", cwd=tmp_path)
    assert (tmp_path / "demo" / "manifest.json").exists()
    installed("parley", "schema", "infer", "demo/synthetic.csv", cwd=tmp_path)
