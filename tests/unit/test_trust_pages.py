"""Pages that an auditor relies on name files and tests that exist, and nothing that was made up."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "docs/audit.md", "docs/commitments.md", "docs/threat-model.md", "docs/theorem.md",
    "docs/attacks.md", "docs/proofs.md", "docs/failure.md", "SECURITY.md",
)  # fmt: skip
PATH = re.compile(
    r"`((?:common|curator|party|parley|tests|benchmarks|deploy)/[\w./-]+)(?:::(\w+))?`"
)


def named(text):
    """The files, and the tests in them, that a page names in code spans."""
    return [(match[1], match[2]) for match in PATH.finditer(text)]


def unknown(text):
    for path, test in named(text):
        target = ROOT / path
        if not target.exists() or (test and f"def {test}(" not in target.read_text()):
            yield f"{path}::{test}" if test else path


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_test_that_a_page_names_exists(page):
    assert list(unknown((ROOT / page).read_text())) == []


def test_a_name_that_does_not_exist_is_noticed():
    text = "`party/nowhere.py`, `tests/unit/test_house.py::test_nothing`, `party/role.py`"
    assert list(unknown(text)) == ["party/nowhere.py", "tests/unit/test_house.py::test_nothing"]


def test_every_test_of_failure_over_a_network_is_on_its_page():
    known = {test for _, test in named((ROOT / "docs/failure.md").read_text())}
    files = ("network_namespaces", "clock_jumps", "full_disk", "deliveries")
    paths = [ROOT / "tests" / "integration" / f"test_{file}.py" for file in files]
    for path in (*paths, ROOT / "tests" / "chaos" / "test_chaos.py"):
        assert set(re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)) <= known


def test_the_tour_has_ten_files_in_order():
    lines = re.findall(r"^\| (\d+) \| `([^`]+)` \|", (ROOT / "docs/audit.md").read_text(), re.M)
    assert [int(number) for number, _ in lines] == list(range(1, 11))
    length = sum(len((ROOT / path).read_text().splitlines()) for _, path in lines)
    assert length < 4_000  # the page says how much there is to read


def test_every_line_of_the_theorem_has_a_module_and_a_test():
    """The table of the theorem: a line without both would be a claim that nothing holds."""
    text = (ROOT / "docs/theorem.md").read_text()
    table = text.partition("## Which line is held by what")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if re.match(r"\| \w\d", line)]
    assert len(rows) >= 10
    for row in rows:
        paths = [path for path, _ in named(row)]
        assert [path for path in paths if path.startswith("tests/")], row
        assert [path for path in paths if not path.startswith("tests/")], row
    lines = set(re.findall(r"^\| (\w\d+) \|", table, re.M))
    stated = set(re.findall(r"\*\*\(([A-Z]\d+)\)", text))
    assert stated == lines


def test_the_citation_is_of_this_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert str(citation["version"]) == project["version"]
    assert citation["license"] == project["license"]
    assert set(citation) >= {"cff-version", "message", "title", "authors"}


def test_no_page_makes_up_an_address():
    for page in ("SECURITY.md", "CONTRIBUTING.md", "CITATION.cff"):
        text = (ROOT / page).read_text()
        assert not re.findall(r"https?://|[\w.]+@[\w.]+\.\w+", text), page
