"""Studies with an attribute of 20,000 values, from owners' tables to a release."""

import resource
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow
ROWS, VALUES = 2000, 20_000


def _at_most_4_gib():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize("method", ["floor", "subn+"])
def test_an_attribute_of_twenty_thousand_values_is_simulated_in_bounded_memory(tmp_path, method):
    rng = np.random.default_rng(0)
    attributes = (
        '[[attribute]]\nname = "code"\nkind = "integer"\nmin = 0\nmax = 19999\nbins = 20000\n',
        *(f'[[attribute]]\nname = "b{i}"\nkind = "boolean"\n' for i in range(3)),
    )
    (tmp_path / "schema.toml").write_text("\n".join(attributes))
    tables = ["north.csv", "east.csv", "south.csv"]
    for table in tables:
        code = np.minimum(rng.exponential(2500, ROWS).astype(int), VALUES - 1)
        bits = np.column_stack([code > limit for limit in (1000, 2000, 4000)])
        lines = [
            ",".join([str(c), *(str(bool(b)).lower() for b in row)])
            for c, row in zip(code, bits, strict=True)
        ]
        (tmp_path / table).write_text("\n".join(["code,b0,b1,b2", *lines, ""]))
    command = [
        "simulate", *tables, "--schema", "schema.toml", "--epsilon", "20", "--method", method,
        "--aggregation", "masked", "--out", "release",
    ]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "parley", *command], cwd=tmp_path, capture_output=True, text=True,
        check=False, preexec_fn=_at_most_4_gib,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    if method == "subn+":
        assert "correlations" in (tmp_path / "release" / "privacy.json").read_text()
    assert len((tmp_path / "release" / "synthetic.csv").read_text().splitlines()) == 3 * ROWS + 1
