"""Two neighbouring parameters of one plain type are swapped without notice: keywords prevent it."""

import ast
from itertools import pairwise

import pytest

from tests.harness.sources import ROOMS, parsed, sources

PLAIN = {"str", "bytes", "int", "float", "bool", "Path", "Fraction"}
# Pairs whose order is the field's own, or ours everywhere: what is charged, then its delta; the key
# of a setting, then its value.
CUSTOMARY = {
    ("x", "y"), ("p", "q"), ("low", "high"), ("width", "height"), ("word", "bits"),
    ("rho", "delta"), ("epsilon", "delta"), ("divergence", "delta"), ("cost", "delta"),
    ("key", "text"), ("key", "url"), ("key", "value"), ("key", "default"),
    ("title", "lead"), ("words", "kind"), ("package", "name"),
}  # fmt: skip


def functions(body, owner=""):
    """Public functions and methods, with the parameters that may be given by position."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, f"{node.name}.")
        if isinstance(node, ast.FunctionDef) and (
            not node.name.startswith("_") or node.name == "__init__"
        ):
            given = [*node.args.posonlyargs, *node.args.args]
            yield f"{owner}{node.name}", given[bool(owner) :]


def pairs(tree):
    """The functions with neighbours of one plain type, and the first pair of each."""
    for name, given in functions(tree.body):
        for one, other in pairwise(given):
            types = {ast.unparse(each.annotation) for each in (one, other) if each.annotation}
            if len(types) == 1 and types <= PLAIN and (one.arg, other.arg) not in CUSTOMARY:
                yield f"{name}({one.arg}, {other.arg})"
                break


def test_a_pair_is_found():
    source = "class A:\n def f(self, a: str, b: str): ...\ndef g(a: str, *, b: str): ..."
    assert list(pairs(ast.parse(source))) == ["A.f(a, b)"]


@pytest.mark.parametrize("room", ROOMS)
def test_neighbours_of_one_type_are_told_apart_by_keyword(room):
    found = [f"{path}: {pair}" for path in sources(room) for pair in pairs(parsed(path))]
    assert found == []
