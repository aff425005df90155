"""A small table and what a report knows of it."""

from xml.etree import ElementTree

import numpy as np
import pytest

import parley
from common.privacy.randomness import SeededRandomSource
from common.schema import Codes

SCHEMA = parley.Schema.from_toml(
    """
attribute = [
  { name = "letter", kind = "categorical", values = ["a", "b", "c"] },
  { name = "<b>number</b>", kind = "integer", min = 0, max = 63, bins = 64 },
]
"""
)


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(1)
    letter = rng.integers(0, 3, 1_000)
    return Codes.from_columns([letter, (letter * 20 + rng.integers(0, 20, 1_000))], SCHEMA.sizes)


@pytest.fixture(scope="module")
def table(codes):
    return SCHEMA.decode(codes, SeededRandomSource(1))


@pytest.fixture(scope="module")
def fitted(table):
    edges = [("letter", SCHEMA.names[1])]
    return parley.PrivBayes(epsilon=20, encoding="vanilla", required=edges).fit(table, SCHEMA)


def parse(svg):
    return ElementTree.fromstring(svg)  # noqa: S314  our own output


def local(element):
    return element.tag.rsplit("}", 1)[-1]
