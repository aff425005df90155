"""The four research tables of the PrivBayes papers, where they are on this machine.

They are public but not ours to ship: `benchmarks.research_tables` makes them from what can be
downloaded. They are looked for in the folder that RESEARCH_TABLES names, or else in ../shared/data
beside the project, and what is absent is skipped with a word. Hierarchies are public knowledge:
binary trees over the bins of numbers, and groups of related labels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from common.bayes.privbayes.decisions import Encoding
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, Node, binary_tree, leaf

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("RESEARCH_TABLES", _BESIDE))

Target = tuple[str, int, Callable[[NDArray[Any]], NDArray[np.bool_]]]  # name, column, is positive

_EDUCATION = (
    (("Preschool", "1st-4th", "5th-6th", "7th-8th"), ("9th", "10th", "11th", "12th")),
    (("HS-grad", "Some-college"), ("Assoc-acdm", "Assoc-voc")),
    (("Bachelors",), ("Masters", "Prof-school", "Doctorate")),
)
_GROUPS: Mapping[str, Sequence[Any]] = {
    "workclass": (
        "Private",
        ("Self-emp-not-inc", "Self-emp-inc"),
        ("Federal-gov", "Local-gov", "State-gov"),
        ("Without-pay", "Never-worked"),
    ),
    "education": _EDUCATION,
    "marital-status": (
        ("Married-civ-spouse", "Married-AF-spouse"),
        "Never-married",
        ("Divorced", "Separated", "Widowed", "Married-spouse-absent"),
    ),
    "occupation": (
        ("Exec-managerial", "Prof-specialty", "Tech-support"),
        ("Adm-clerical", "Sales"),
        ("Other-service", "Protective-serv", "Priv-house-serv", "Armed-Forces"),
        (
            "Craft-repair",
            "Machine-op-inspct",
            "Transport-moving",
            "Handlers-cleaners",
            "Farming-fishing",
        ),
    ),
    "relationship": (
        ("Husband", "Wife"),
        ("Own-child", "Other-relative"),
        ("Not-in-family", "Unmarried"),
    ),
}
_POST_SECONDARY = {"Bachelors", "Assoc-acdm", "Assoc-voc", "Masters", "Prof-school", "Doctorate"}


@dataclass(frozen=True)
class Dataset:
    """A coded table with what the experiments need to know about it.

    Args:
        name: how the papers call it.
        codes: the rows.
        hierarchies: one per attribute.
        encoding: the papers' recommendation for it.
        orders: the sizes of the marginals that are compared.
        targets: the four classification tasks.
        max_parents: a cap on the degree, as in the reference figures.
    """

    name: str
    codes: Codes
    hierarchies: tuple[Hierarchy, ...]
    encoding: Encoding
    orders: tuple[int, int]
    targets: tuple[Target, ...]
    max_parents: int | None


def available() -> tuple[list[Dataset], list[str]]:
    """The tables found, and the names of those that are not there."""
    loaders = {"nltcs": _nltcs, "acs": _acs, "adult": _adult, "br2000": _br2000}
    found = [load() for name, load in loaders.items() if (DATA / f"{name}.csv").is_file()]
    return found, [name for name in loaders if not (DATA / f"{name}.csv").is_file()]


def read_codes(name: str) -> tuple[Codes, list[str]]:
    """A coded table and the names of its columns."""
    frame = pd.read_csv(DATA / f"{name}.csv")
    domains = json.loads((DATA / f"{name}-domain.json").read_text())
    names = [str(column) for column in frame.columns]
    columns = [frame[column].to_numpy() for column in names]
    return Codes.from_columns(columns, [domains[column] for column in names]), names


def _bits(name: str, columns: Sequence[int], tasks: Sequence[str], max_parents: int) -> Dataset:
    codes, names = read_codes(name)
    return Dataset(
        name=name.upper(),
        codes=codes,
        hierarchies=tuple(Hierarchy.flat(["0", "1"]) for _ in names),
        encoding=Encoding.BINARY,
        orders=(3, 4),
        targets=tuple((t, c, lambda v: v == 1) for t, c in zip(tasks, columns, strict=True)),
        max_parents=max_parents,
    )


def _nltcs() -> Dataset:
    return _bits("nltcs", (15, 2, 10, 3), ("outside", "money", "bathing", "travel"), 6)


def _acs() -> Dataset:
    return _bits("acs", (3, 4, 9, 18), ("dwelling", "mortgage", "generations", "school"), 4)


def _adult() -> Dataset:
    codes, names = read_codes("adult")
    described = json.loads((DATA / "adult-labels.json").read_text())
    hierarchies = []
    for name, size in zip(names, codes.sizes, strict=True):
        if isinstance(described[name], dict):  # a number in bins
            hierarchies.append(_binned(size))
        else:
            hierarchies.append(_taxonomy(described[name], _GROUPS.get(name)))
    degrees = [described["education"].index(label) for label in sorted(_POST_SECONDARY)]
    never = described["marital-status"].index("Never-married")
    return Dataset(
        name="Adult",
        codes=codes,
        hierarchies=tuple(hierarchies),
        encoding=Encoding.HIERARCHICAL,
        orders=(2, 3),
        targets=(
            ("female", names.index("sex"), lambda v: v == described["sex"].index("Female")),
            ("salary", names.index("salary"), lambda v: v == 1),
            ("degree", names.index("education"), lambda v: np.isin(v, degrees)),
            ("never married", names.index("marital-status"), lambda v: v == never),
        ),
        max_parents=None,
    )


def _br2000() -> Dataset:
    codes, _ = read_codes("br2000")
    trees = DATA / "hierarchies" / "br2000_hierarchy.json"
    declared = json.loads(trees.read_text()) if trees.is_file() else []
    hierarchies = []
    for column, size in enumerate(codes.sizes):
        if size >= 16:
            hierarchies.append(_binned(size))
        elif declared and declared[column]["node_list"]:
            hierarchies.append(Hierarchy(_declared(declared[column])))
        else:
            hierarchies.append(Hierarchy.flat([str(i) for i in range(size)]))
    return Dataset(
        name="BR2000",
        codes=codes,
        hierarchies=tuple(hierarchies),
        encoding=Encoding.HIERARCHICAL,
        orders=(2, 3),
        targets=(
            ("Catholic", 7, lambda v: v == 1),
            ("car", 1, lambda v: v > 0),
            ("child", 3, lambda v: v > 0),
            ("older than 20", 4, lambda v: v >= 3),
        ),
        max_parents=None,
    )


def _binned(size: int) -> Hierarchy:
    return Hierarchy(binary_tree([str(i) for i in range(size)]))


def _taxonomy(labels: Sequence[str], groups: Sequence[Any] | None) -> Hierarchy:
    """A tree from nested tuples of labels; without groups it is flat."""
    if groups is None:
        return Hierarchy.flat(labels)

    def node(part: Any) -> Node:  # noqa: ANN401 (a label, or nested tuples of labels)
        if isinstance(part, str):
            return leaf(part, labels.index(part))
        return Node("", tuple(node(each) for each in part))

    return Hierarchy(node(groups))


def _declared(tree: Mapping[str, Any]) -> Node:
    """A tree from nested objects with `value_list` (leaves) and `node_list` (groups)."""
    leaves = [leaf(str(code), code) for code in tree["value_list"]]
    return Node(str(tree["name"]), (*leaves, *(_declared(each) for each in tree["node_list"])))
