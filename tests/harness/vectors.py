"""Vectors of tests/vectors: what must be refused, as files that another implementation can read."""

import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "vectors"


def negative(kind):
    """Return every vector of a file of tests/vectors/negative, as parameters of a test."""
    (vectors,) = tomllib.loads((FOLDER / "negative" / f"{kind}.toml").read_text()).values()
    return [pytest.param(each, id=each["what"]) for each in vectors]
