"""`parley demo` and `parley simulate --transport grpc` as real processes on loopback."""

import json
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from common.errors import LocalError
from common.report.writing import write_release
from common.schema import Schema
from common.service.database import Database
from common.study.document import Study
from parley import PrivBayes
from parley.cli.exit_codes import ExitCode
from parley.cli.main import main
from parley.reader.fitted import load
from parley.simulation.consortium import Consortium
from parley.simulation.population import demo_schema_toml, make_population
from party.countersigning import countersign
from party.ledger import Ledger, LedgerCharge
from party.state import STATE

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Schema.from_toml(demo_schema_toml())


def demo(folder, *words):
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "parley", "demo", *words], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == [], "everything but the release is gone"
    return done


def running_on(folder):
    """Command lines of processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def test_the_demonstration_replaces_an_older_one_at_a_path_with_a_space(tmp_path):
    folder = tmp_path / "a folder"
    release, comparison = folder / "my release", folder / "my release-evaluation.html"
    release.mkdir(parents=True)
    write_release(release, PrivBayes(seed=1).fit(make_population(60, seed=1), SCHEMA))
    comparison.write_text("of the older one")
    words = ("--out", "my release", "--rows", "600", "--aggregation", "masked", "--json")
    told = json.loads(demo(folder, *words).stdout)
    left = {"temporary", release.name, comparison.name}
    assert {path.name for path in folder.iterdir()} == left, "the next one finds what this one did"
    assert told["privacy"]["epsilon_delivered"] == 1.0
    assert told["privacy"]["private"]
    assert {"synthetic.csv", "report.html", "manifest.json", "privacy.json", "study.toml"} <= {
        path.name for path in release.iterdir()
    }
    study = Study.load(release / "study.toml")
    assert len(study.members) == 3
    assert study.rows == 600
    assert main(["verify", str(release), "--all-parties"]) == 0, "all four have signed it"
    assert "of the older one" not in comparison.read_text()
    assert running_on(folder) == []


@pytest.mark.slow
def test_a_simulation_over_grpc_is_a_release_like_any_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLEY_CURATOR_LISTEN", "not for the simulation")
    make_population(300, seed=5).to_csv("people.csv", index=False)
    Path("schema.toml").write_text(demo_schema_toml())
    words = ["simulate", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "r"]
    words += ["--transport", "grpc", "--aggregation", "masked", "--parties", "2", "--json"]
    assert main([*words, "--seed", "1"]) == 3
    assert not Path("r").exists()
    capsys.readouterr()
    assert main([*words, "--format", "parquet", "--rows", "50"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parties"] == {"party 1": 1.0, "party 2": 1.0}
    assert told["rows"] == 50
    assert "synthetic.parquet" in told["files"]
    assert set(told["phases"]) == set(json.loads(Path("r/transcript.json").read_text())["phases"])
    assert load(Path("r")).codes.rows == 50


def charge_more(settings, study):
    """Let an owner's ledger have more for a study than its steps cost."""
    charge = LedgerCharge(
        study=study.hex(), study_name="s", step="extra", mechanism="m", epsilon=Fraction(1, 7)
    )
    with Database(settings.folder / STATE) as file:
        Ledger(file).charge(charge, None, "2030-01-01T00:00:00+00:00")


def test_a_refusal_to_countersign_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("one", "two")):
        make_population(60, seed=seed).to_csv(f"{name}.csv", index=False)
    Path("schema.toml").write_text(demo_schema_toml())

    def contradict_first(release, settings, **words):
        if settings.folder.parent.name == "party-1":
            charge_more(settings, Study.load(release / "study.toml").digest)
        return countersign(release, settings, **words)

    monkeypatch.setattr("parley.simulation.consortium.countersign", contradict_first)
    words = ["simulate", "one.csv", "two.csv", "--schema", "schema.toml", "--epsilon", "1"]
    words += ["--out", "r", "--transport", "grpc", "--aggregation", "masked", "--method", "floor"]
    assert main([*words, "--json"]) == ExitCode.NOT_COUNTERSIGNED
    told = capsys.readouterr()
    reason = "we do not vouch for the release: our ledger has epsilon 8/7 for it, its statement"
    assert f"r: the release is made and kept, but one did not countersign it: {reason}" in told.err
    assert "two did not countersign" not in told.err
    assert list(json.loads(told.out)["refusals"]) == ["one"]
    assert main(["verify", "r"]) == 0, "the curator signed it, and it is whole"
    assert Path("r-times.json").is_file()
    capsys.readouterr()
    assert main(["verify", "r", "--all-parties"]) == ExitCode.INPUT
    told = capsys.readouterr()
    assert "countersignature of party 'one'" in told.err
    assert "party 'two'" not in told.err


@pytest.fixture
def small(tmp_path):
    """Makes a consortium of two owners with few rows."""

    def make(**options):
        tables = {name: make_population(60, seed=seed) for seed, name in enumerate(("one", "two"))}
        terms = {"epsilon": "1", "aggregation": "masked", **options}
        return Consortium(tmp_path, tables, SCHEMA, terms)

    return make


def check_logs(tmp_path):
    """Everybody has stopped, and has logged for machines."""
    logs = {path.parent.name: path.read_text() for path in tmp_path.glob("*/log.jsonl")}
    assert set(logs) == {"curator", "party-1", "party-2"}
    messages = [json.loads(line)["message"] for line in logs["curator"].splitlines()]
    assert messages[-1] == "stopped"
    for log in logs.values():
        assert all(json.loads(line)["time"] for line in log.splitlines())


@pytest.mark.slow
def test_an_owner_fetches_a_study_and_countersigns_for_scripts_and_everybody_stops_when_asked(
    small, tmp_path, monkeypatch, capsys
):
    own = ["--json", "--config", str(tmp_path / "party-1" / "party.toml")]
    with small() as consortium:
        place = consortium.run(timeout_s=120)
        monkeypatch.setenv("PARLEY_PARTY_CURATOR", consortium.address)
        file, digest = tmp_path / "fetched.toml", consortium.study.digest.hex()
        assert main(["party", "fetch", digest[:9], "--out", str(file), *own]) == 0
        fetched = json.loads(capsys.readouterr().out)
    check_logs(tmp_path)
    assert (place / "privacy.json").is_file()
    assert main(["party", "countersign", str(place), *own]) == 0  # again is harmless
    signed = json.loads(capsys.readouterr().out)
    assert (fetched["study"], fetched["file"]) == (digest, str(file))
    assert Study.load(file).signer == fetched["signer"]
    assert (signed["role"], signed["name"]) == ("party", "one")
    assert (place / "signatures" / f"{signed['fingerprint']}.json").exists()


def test_a_process_that_fails_is_told_with_the_end_of_its_log_and_nobody_is_left(small, tmp_path):
    with small() as consortium:
        (tmp_path / "party-2" / "source.parquet").unlink()
        with pytest.raises(LocalError) as failure:
            consortium.run(timeout_s=120)
    assert "the end of the log of 'two'" in str(failure.value)
    assert "source.parquet" in str(failure.value)
    assert running_on(tmp_path) == []


def test_a_study_that_takes_too_long_is_given_up_and_nobody_is_left(small, tmp_path):
    with (
        small() as consortium,
        pytest.raises(LocalError, match=r"in time|too long"),
    ):
        consortium.run(timeout_s=0.0)
    assert running_on(tmp_path) == []


ABANDONED = """
import os, pathlib, signal, sys
from parley.simulation.consortium import Consortium
from parley.simulation.population import demo_schema_toml, make_population
from common.schema import Schema
tables = {"one": make_population(60, seed=0), "two": make_population(60, seed=1)}
terms = {"epsilon": "1", "aggregation": "masked"}
schema = Schema.from_toml(demo_schema_toml())
folder = pathlib.Path(sys.argv[1])
log = folder / "curator" / "log.jsonl"

def tell(fraction, doing):
    if log.exists() and "listening" in log.read_text():
        os.kill(os.getpid(), signal.SIGKILL)

Consortium(folder, tables, schema, terms).run(timeout_s=60, tell=tell)
"""


def test_a_parent_that_is_killed_leaves_nobody_behind(tmp_path):
    folder = tmp_path / "abandoned"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ABANDONED, str(folder)], cwd=ROOT, capture_output=True, timeout=120
    )
    assert done.returncode == -9, done.stderr
    for _ in range(600):
        if not running_on(folder):
            break
        time.sleep(0.1)
    assert running_on(folder) == []
    assert "stopped" in (folder / "curator" / "log.jsonl").read_text().splitlines()[-1]
