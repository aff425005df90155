"""What a study releases: its drawing, its defaults, its file and its refits."""

import json
from dataclasses import replace

import numpy as np
import pytest

import parley
from common.errors import InputError
from common.methods.network_model import NetworkModel, Variables, network_of
from common.privacy.randomness import SeededRandomSource
from common.release.fitted_study import study_drawing
from common.schema import Codes
from tests.harness.people import SMOKERS as SCHEMA
from tests.harness.people import smokers as table_of
from tests.harness.run_script import schema_of


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


def test_a_network_is_drawn_with_its_arrows_and_what_is_chance_is_called_so():
    first = np.arange(2000) % 2
    columns = [first, first, np.random.default_rng(1).integers(0, 2, 2000)]
    codes = Codes.from_columns(columns, (2, 2, 2))
    network = NetworkModel(Variables((2, 2, 2)), network_of(((), (0,), (1,))), {})
    drawing = study_drawing(network, schema_of((2, 2, 2)), codes)
    assert list(drawing.strengths) == [("a0", "a1"), ("a1", "a2")]
    assert drawing.strengths["a0", "a1"] > 0.99
    assert drawing.notes["a0", "a1"] == "1.000 bits"
    assert drawing.notes["a1", "a2"].endswith("not significant")


def test_a_model_without_arrows_is_drawn_as_its_strongest_tree():
    """Three columns in a chain: the pair of the ends is weaker than either link."""
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 2, 4000)]
    for _ in range(2):
        columns.append(np.where(rng.random(4000) < 0.15, 1 - columns[-1], columns[-1]))
    drawing = study_drawing(object(), schema_of((2, 2, 2)), Codes.from_columns(columns, (2, 2, 2)))
    assert {frozenset(edge) for edge in drawing.strengths} == {
        frozenset(("a0", "a1")),
        frozenset(("a1", "a2")),
    }
