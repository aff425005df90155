"""What a study releases: its drawing, its defaults, its file and its refits."""

import json
from dataclasses import replace

import pytest

import parley
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from tests.harness.people import SMOKERS as SCHEMA
from tests.harness.people import smokers as table_of


def simulated():
    table = table_of(600)
    return parley.simulate(
        [table[::2], table[1::2]],
        SCHEMA,
        epsilon=20,
        method="floor",
        aggregation="clear",
        seed=1,
    )


def test_as_many_rows_are_made_as_the_study_says_or_as_there_are():
    made = simulated()
    assert len(made.sample()) == made.rows == 600
    few = replace(made, study=replace(made.study, output_rows=70))
    assert len(few.sample()) == few.output_rows == 70


def test_a_refit_is_the_studys_script_on_other_rows():
    made = simulated()
    codes = SCHEMA.encode(table_of(600).assign(sex="F"))
    again = made.refit(codes, SeededRandomSource(2))
    assert (again.sample(300)["sex"] == "F").mean() > 0.95
    assert 0.3 < (made.sample(300)["sex"] == "F").mean() < 0.7
    assert again.study == made.study


def test_a_saved_release_is_loaded_with_its_rows_and_its_statement(tmp_path):
    made = simulated()
    made.save(tmp_path / "release")
    again = parley.load(tmp_path / "release")
    assert again.privacy == made.privacy
    assert again.count("sex = F").share == made.sample_codes().columns[1].tolist().count(0) / 600


@pytest.mark.parametrize(
    "phases",
    [None, 5, [], {"margins": 5}, {"margins": {"rounds": 1}},
     {"margins": {"rounds": 1, "bytes_sent": [1], "bytes_received": {}}},
     {"margins": {"rounds": 1, "bytes_sent": {"a": "x"}, "bytes_received": {}}}],
)  # fmt: skip
def test_a_release_without_the_phases_of_its_transcript_is_refused(tmp_path, phases):
    simulated().save(tmp_path / "release")
    path = tmp_path / "release" / "transcript.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"phases": phases}))
    with pytest.raises(InputError, match=r"release: transcript\.json: not a transcript"):
        parley.load(tmp_path / "release").report(tmp_path / "report.html")
