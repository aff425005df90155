"""commitments.json comes back as it was written, and holds nothing else."""

import json
from dataclasses import replace

import pytest

from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release.commitments_file import commitments_text, read_commitments
from common.release.contents import open_release
from common.release.verify import verify
from common.report.writing import write_release
from common.schema.decoder import decode_to_pandas
from common.study.commitments import Commitments, TableCommitment
from parley.simulation.study import run_in_process
from tests.harness.run_script import random_tables, schema_of, study_of

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
