"""What a report shows of a model: edges with their strength, shares, names of bits."""

import numpy as np
import pytest

import parley
from common.bayes.postprocessing import mutual_information
from tests.unit.report.conftest import SCHEMA


def test_mutual_information_of_known_tables():
    assert mutual_information(np.eye(4)) == pytest.approx(2.0)
    assert mutual_information(np.ones((3, 5))) == pytest.approx(0.0)
    assert mutual_information(np.zeros((2, 2))) == 0.0
    assert mutual_information(np.array([[1.0, -3.0], [0.0, 1.0]])) == pytest.approx(1.0)


def test_an_arrow_is_not_sold_for_a_dependence(fitted):
    assert "Noise, too, can draw arrows." in fitted.dependences(fitted.released).caption


def test_edges_carry_their_strength(fitted):
    drawing = fitted.dependences(fitted.released)
    assert list(drawing.strengths) == [("letter", "<b>number</b>")]
    # The number tells the letter, but for noise: nearly log2(3) bits.
    assert max(drawing.strengths.values()) == pytest.approx(np.log2(3), abs=0.3)


def test_bits_are_named_after_their_attribute(table):
    bits = parley.PrivBayes(encoding="binary").fit(table, SCHEMA)
    assert bits.variable_names[:3] == ["letter bit 1", "letter bit 2", "<b>number</b> bit 1"]
    assert bits.shares == [None, None]
    assert bits.network_svg().count("<g>") == 2 + 6


def test_noisy_shares_are_near_the_real_ones(fitted, codes, table):
    truth = np.bincount(codes.columns[0], minlength=3) / codes.rows
    ranges = parley.Privelet(epsilon=20).fit(table, SCHEMA)
    for shares in (fitted.shares[0], ranges.shares[0]):
        assert shares == pytest.approx(truth, abs=0.05)
