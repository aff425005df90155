"""docs/failure.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "failure.md").read_text())


def test_every_test_that_the_page_names_exists():
    missing = [
        f"{file}::{name}"
        for file, name in NAMED
        if not (ROOT / file).exists() or f"def {name}(" not in (ROOT / file).read_text()
    ]
    assert len(NAMED) > 40
    assert missing == []


def test_every_test_of_failure_over_a_network_is_on_the_page():
    files = ("network_namespaces", "clock_jumps", "full_disk", "deliveries")
    paths = [ROOT / "tests" / "integration" / f"test_{file}.py" for file in files]
    for path in (*paths, ROOT / "tests" / "chaos" / "test_chaos.py"):
        tests = set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE))
        assert tests <= {name for _, name in NAMED}
