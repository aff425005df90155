"""The generated code is the contract's, and the contract explains itself."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONTRACTS = sorted((ROOT / "protos").rglob("*.proto"))


def generator(*arguments, root=ROOT):
    return subprocess.run(
        [sys.executable, root / "protos/generate.py", *arguments], capture_output=True, text=True
    )


def copy_of_the_project(folder):
    for path in [*CONTRACTS, *(ROOT / "common/wire/v1").glob("*.py*"), ROOT / "protos/generate.py"]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


def test_the_committed_code_is_what_the_contract_generates():
    pytest.importorskip("grpc_tools")
    done = generator("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_drift_is_noticed_and_repaired(tmp_path):
    pytest.importorskip("grpc_tools")
    copy_of_the_project(tmp_path)
    stub = tmp_path / "common/wire/v1/curator_pb2.pyi"
    stub.write_text(stub.read_text() + "\n")
    (tmp_path / "common/wire/v1/old_pb2.py").touch()
    check = generator("--check", root=tmp_path)
    assert check.returncode == 1
    assert "curator_pb2.pyi, old_pb2.py" in check.stderr
    assert "make protos" in check.stderr
    assert generator(root=tmp_path).returncode == 0
    assert generator("--check", root=tmp_path).returncode == 0


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.name)
def test_every_declaration_of_the_contract_has_a_comment(path):
    lines = path.read_text().splitlines()
    assert "package parley.v1;" in lines
    declaration = re.compile(
        r"\s*((message|enum|service|rpc|oneof|optional|repeated)\b|(\w+ )?\w+ = \d+;)"
    )
    for before, line in pairwise(lines):
        if declaration.match(line):
            assert before.strip().startswith("//"), f"{path.name}: no comment above {line.strip()}"
