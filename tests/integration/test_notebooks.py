"""The notebooks of the documentation run, cell by cell, as a kernel would run them."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
MOST_SHOWN = 2_000  # characters of what a cell shows


def cells_of(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    assert not any(cell.get("outputs") for cell in document["cells"])
    return ["".join(c["source"]) for c in document["cells"] if c["cell_type"] == "code"]


def shown(cell):
    """The cell, with its last expression printed as a kernel would show it."""
    tree = ast.parse(cell)
    if isinstance(tree.body[-1], ast.Expr) and not cell.rstrip().endswith(";"):
        last = ast.unparse(tree.body.pop().value)
        return f"{ast.unparse(tree)}\n_shown = {last}\nif _shown is not None: print(repr(_shown))\n"
    return cell


def test_there_is_one_for_the_owner_and_one_for_the_analyst():
    assert [path.stem for path in NOTEBOOKS] == ["analyst", "owner"]
    for path in NOTEBOOKS:
        for cell in cells_of(path):
            compile(cell, path.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_shows_no_more_than_a_screen(path, tmp_path):
    mark = "---- end of a cell"
    program = f"\nprint({mark!r})\n".join(shown(cell) for cell in cells_of(path))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.split(mark))) < MOST_SHOWN
    assert (tmp_path / "release/manifest.json").exists()
