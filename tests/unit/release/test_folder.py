"""The release folder is written whole or not at all."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release.contents import FolderContents, open_release
from common.release.folder import (
    RESULTS,
    STATEMENT,
    commitments_text,
    new_folder,
    read_commitments,
    read_json,
    read_results,
    write_json,
    write_results,
    write_table,
)
from common.release.verify import verify
from common.report.writing import write_release
from common.schema.decoder import decode_to_pandas
from common.study.commitments import Commitments, TableCommitment
from parley.simulation.study import run_in_process
from tests.harness.run_script import random_tables, schema_of, study_of


def test_a_finished_block_becomes_the_folder(tmp_path):
    with new_folder(tmp_path / "out", overwrite=False) as folder:
        write_json(folder / STATEMENT, {"private": True})
        write_table(folder, pd.DataFrame({"a": [1, 2]}), "csv")
    assert read_json(tmp_path / "out", STATEMENT) == {"private": True}
    assert (tmp_path / "out" / "synthetic.csv").read_text() == "a\n1\n2\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_error_in_the_block_leaves_nothing(tmp_path):
    def interrupted():
        with new_folder(tmp_path / "out", overwrite=False) as folder:
            write_json(folder / STATEMENT, {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_an_error_keeps_the_release_that_was_there(tmp_path):
    with new_folder(tmp_path / "out", overwrite=False) as folder:
        write_json(folder / STATEMENT, {"first": True})
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", overwrite=True):
        raise RuntimeError
    assert read_json(tmp_path / "out", STATEMENT) == {"first": True}


def test_a_release_is_replaced_only_when_asked(tmp_path):
    with new_folder(tmp_path / "out", overwrite=False) as folder:
        write_json(folder / STATEMENT, {"first": True})
    with (
        pytest.raises(InputError, match="overwrite=True"),
        new_folder(tmp_path / "out", overwrite=False),
    ):
        pass
    with new_folder(tmp_path / "out", overwrite=True) as folder:
        write_json(folder / STATEMENT, {"second": True})
    assert read_json(tmp_path / "out", STATEMENT) == {"second": True}


def test_a_folder_that_is_not_a_release_is_never_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with (
        pytest.raises(InputError, match="not a release"),
        new_folder(tmp_path / "out", overwrite=True),
    ):
        pass
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is a file"), new_folder(tmp_path / "out", overwrite=True):
        pass


@pytest.mark.parametrize("content", ["", "[1]", "{", "\xff"])
def test_a_damaged_json_file_is_named(tmp_path, content):
    (tmp_path / STATEMENT).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=STATEMENT):
        read_json(tmp_path, STATEMENT)


def test_parquet_keeps_types(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "when": pd.to_datetime(["2024-01-01", "2024-02-01"])})
    path = write_table(tmp_path, table, "parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(path), table)


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_results_come_back_and_are_refused_when_cut(tmp_path_factory, results):
    path = tmp_path_factory.mktemp("results") / RESULTS
    write_results(path, results)
    data = path.read_bytes()
    assert read_results(FolderContents(path.parent)) == tuple(results)
    for wrong in (data[:-1], data + b"x", b"x" + data):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=RESULTS):
            read_results(FolderContents(path.parent))


STUDY = replace(study_of(random_tables((2, 3), (40, 50))), commitments=True)
COMMITMENTS = Commitments(
    {
        name: TableCommitment(bytes([place]) * 32, bytes(64))
        for place, name in enumerate(("p0", "p1"))
    },
    ((b"a" * 32, b"b" * 32), (b"c" * 32,)),
)


def read(folder, text, study=STUDY):
    (folder / "commitments.json").write_text(text)
    with open_release(folder) as contents:
        return read_commitments(contents, study)


def test_it_comes_back(folder):
    assert read(folder, commitments_text(COMMITMENTS)) == COMMITMENTS
    assert read(folder, "", replace(STUDY, commitments=False)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"note": "of a row"}, {"tables": []}, {"tables": {"p0": {}}},
        {"contributions": [["zz"]]}, {"contributions": [[1]]}, {"contributions": None},
        {"contributions": [["AA"]]},
    ],
)  # fmt: skip
def test_anything_else_is_refused(folder, change):
    document = json.loads(commitments_text(COMMITMENTS)) | change
    with pytest.raises(InputError, match=r"commitments\.json"):
        read(folder, json.dumps(document, indent=2) + "\n")


def test_a_release_that_lacks_it_is_refused(folder):
    with open_release(folder) as contents, pytest.raises(InputError, match=r"commitments\.json"):
        read_commitments(contents, STUDY)


def forged_signature(commitments):
    first = commitments.tables["p0"]
    tables = {**commitments.tables, "p0": replace(first, value=bytes(32))}
    return replace(commitments, tables=tables)


def one_too_few(commitments):
    first, *rest = commitments.contributions
    return replace(commitments, contributions=(first[1:], *rest))


def none_at_all(commitments):
    return None


@pytest.mark.parametrize("forge", [None, forged_signature, one_too_few, none_at_all])
def test_a_release_verifies_with_the_owners_own_commitments_only(tmp_path, forge):
    schema = schema_of((2, 3))
    source = SeededRandomSource("cells")
    rows = {
        name: decode_to_pandas(schema, codes, source)
        for name, codes in random_tables((2, 3), (40, 50)).items()
    }
    terms = {"epsilon": 1, "method": "floor", "commitments": True}
    fitted = run_in_process(rows, schema, terms, seed=1)
    if forge is not None:
        fitted = replace(fitted, commitments=forge(fitted.commitments))
    write_release(tmp_path, fitted)
    problems = verify(tmp_path, unsigned=True).problems
    assert {each.file for each in problems} == (set() if forge is None else {"commitments.json"})
