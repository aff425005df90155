"""`parley replicate`: other tables that the same counts could have given."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import parley as api
from common.release import replicates
from common.release.replicates import Replicator


@pytest.mark.slow
def test_another_process_makes_the_same_tables(made_releases, monkeypatch):
    fitted = api.load(made_releases / "privbayes")
    alone = Replicator(fitted, fitted.released, processes=1).run(5)
    monkeypatch.setattr(replicates, "_WORTH_S", 0.0)
    shared = Replicator(fitted, fitted.released, processes=2).run(5)
    for one, other in zip(alone.tables, shared.tables, strict=True):
        assert all(map(np.array_equal, one.columns, other.columns))


def test_replicate_writes_tables_that_a_seed_repeats(parley, releases):
    words = ["replicate", "study", "--tables", "5", "--seed", "7"]
    assert parley(*words, "--out", "one").code == 0
    shutil.rmtree("study.replicates")
    assert parley(*words, "--out", "two").code == 0
    assert parley(*words, "--out", "three", "--format", "parquet").code == 0
    names = [f"table-0{number}.csv" for number in range(1, 6)]
    assert sorted(each.name for each in Path("one").iterdir()) == names
    for name in names:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert Path("one", names[0]).read_bytes() != Path("one", names[1]).read_bytes()
    assert len(pd.read_parquet("three/table-05.parquet")) == 1_500
    assert parley(*words, "--out", "one").code == 3
    assert parley(*words, "--out", "study/tables").code == 3
    assert parley("replicate", "study", "--tables", "1", "--out", "four").code == 3
    assert not Path("four").exists()
