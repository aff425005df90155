"""A missing package is refused by the name of its extra, and pyproject.toml has that extra."""

import re
import tomllib
from pathlib import Path

import pytest

from common.errors import EXTRA_OF, InputError, naming_extras

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
DISTRIBUTIONS = {"jwt": "PyJWT", "sklearn": "scikit-learn", "grpc_reflection": "grpcio-reflection"}
PART_OF = {"adbc_driver_duckdb": "duckdb"}


def names(requirements):
    return {re.match(r"[\w-]+", each)[0] for each in requirements}


@pytest.mark.parametrize(("package", "extra"), EXTRA_OF.items())
def test_the_extra_brings_the_package_and_nothing_else_does(package, extra):
    package = PART_OF.get(package, package)
    distribution = DISTRIBUTIONS.get(package, package.replace("_", "-"))
    assert distribution in names(PROJECT["project"]["optional-dependencies"][extra])
    assert distribution not in names(PROJECT["project"]["dependencies"])


def test_a_missing_package_of_an_extra_is_named():
    words = r"a drawing: the package 'pandas' .*parley\[analysis\]"
    with pytest.raises(InputError, match=words), naming_extras("a drawing"):
        raise ModuleNotFoundError("No module named 'pandas.core'", name="pandas.core")


def test_other_missing_modules_are_programming_errors():
    with pytest.raises(ModuleNotFoundError), naming_extras("a drawing"):
        raise ModuleNotFoundError("No module named 'x'", name="x")
