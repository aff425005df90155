"""The dependences that a release tells of: arrows of its network, or the strongest of its rows."""

import numpy as np

from common.fitted.dependences import study_dependences
from common.methods.network_model import NetworkModel, Variables, network_of
from common.methods.subn_plus.latent import LatentModel
from common.schema import Codes
from tests.harness.run_script import schema_of
from tests.unit.analysis.test_relations import NAMES, SCHEMA, codes, independent, related

NO_ARROWS = LatentModel(np.ones(1), ())


def test_a_network_is_drawn_with_its_arrows_and_what_is_chance_is_called_so():
    first = np.arange(2000) % 2
    columns = [first, first, np.random.default_rng(1).integers(0, 2, 2000)]
    rows = Codes.from_columns(columns, (2, 2, 2))
    network = NetworkModel(Variables((2, 2, 2)), network_of(((), (0,), (1,))), {})
    drawing = study_dependences(network, schema_of((2, 2, 2)), rows, in_bits=False)
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
    drawing = study_dependences(
        NO_ARROWS, schema_of((2, 2, 2)), Codes.from_columns(columns, (2, 2, 2)), in_bits=False
    )
    assert {frozenset(edge) for edge in drawing.strengths} == {
        frozenset(("a0", "a1")),
        frozenset(("a1", "a2")),
    }


def test_a_picture_of_a_model_without_arrows_has_none_that_chance_made():
    """In 1,200 independent rows the strongest pair by chance has more than 0.3 bits."""
    drawing = study_dependences(NO_ARROWS, SCHEMA, codes(independent(1_200, 1)), in_bits=False)
    assert drawing.strengths == {}
    assert "No two attributes are significantly dependent" in drawing.without_edges
    drawing = study_dependences(NO_ARROWS, SCHEMA, codes(related(1_200, 1)), in_bits=False)
    assert {frozenset(edge) for edge in drawing.strengths} == {frozenset("ab"), frozenset("cd")}
    assert sorted(drawing.names) == list(NAMES)
