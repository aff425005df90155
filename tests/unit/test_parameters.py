"""Two neighbouring parameters of one plain type are swapped without notice: keywords prevent it."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

PLAIN = {"str", "bytes", "int", "float", "bool", "Path", "Fraction"}
# Pairs whose order is the field's own, or ours everywhere: what is charged, then its delta; the key
# of a setting, then its value.
CUSTOMARY = {
    ("x", "y"), ("p", "q"), ("low", "high"), ("width", "height"), ("word", "bits"),
    ("rho", "delta"), ("epsilon", "delta"), ("divergence", "delta"), ("cost", "delta"),
    ("key", "text"), ("key", "url"), ("key", "value"), ("key", "default"),
    ("title", "lead"), ("words", "kind"), ("package", "name"),
}  # fmt: skip
ROOMS = ("common", "curator", "party", "parley")


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


def pairs(source):
    """The functions with neighbours of one plain type, and the first pair of each."""
    for name, given in functions(ast.parse(source).body):
        for one, other in pairwise(given):
            types = {ast.unparse(each.annotation) for each in (one, other) if each.annotation}
            if len(types) == 1 and types <= PLAIN and (one.arg, other.arg) not in CUSTOMARY:
                yield f"{name}({one.arg}, {other.arg})"
                break


def test_a_pair_is_found():
    source = "class A:\n def f(self, a: str, b: str): ...\ndef g(a: str, *, b: str): ..."
    assert list(pairs(source)) == ["A.f(a, b)"]


@pytest.mark.parametrize("room", ROOMS)
def test_neighbours_of_one_type_are_told_apart_by_keyword(room):
    root = Path(__file__).parents[2]
    found = [
        f"{path.relative_to(root)}: {pair}"
        for path in sorted((root / room).rglob("*.py"))
        if "v1" not in path.parts
        for pair in pairs(path.read_text(encoding="utf-8"))
    ]
    assert found == []
