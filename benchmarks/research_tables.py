"""The four research tables of the PrivBayes papers: python -m benchmarks.research_tables FOLDER.

The tables are public but not ours to ship. The command downloads their sources, or takes them from
a folder (--sources) for a machine without a network, codes them, writes FOLDER, and compares every
file with the checksum of the one that the figures of this project were made from. Then run the
benchmarks with RESEARCH_TABLES=FOLDER; without it they look into ../shared/data beside the project,
and skip what is absent with a word. Hierarchies are public knowledge: binary trees over the bins of
numbers, and groups of related labels.

| table | source |
|---|---|
| NLTCS, ACS, BR2000 | github.com/caicre/PrivMRF, the commit below: coded tables, hierarchies |
| Adult | UCI Machine Learning Repository, data set 2: adult.data and adult.test |
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
import urllib.request
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

_PRIVMRF = (
    "https://raw.githubusercontent.com/caicre/PrivMRF/12f2cae3f1784281cee7e8e201560882332f60bb"
)
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_TIMEOUT_S = 60.0

Files = Mapping[str, bytes]
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("RESEARCH_TABLES", _BESIDE))

Target = tuple[str, int, Callable[[NDArray[Any]], NDArray[np.bool_]]]  # name, column, is positive


@dataclass(frozen=True, slots=True)
class Source:
    """A file to download.

    Attributes:
        name: of the file, in the folder of --sources, too.
        address: where it is.
        digest: SHA-256; None where only what is made of it is checked.
    """

    name: str
    address: str
    digest: str | None = None


SOURCES = (
    Source("nltcs.csv", f"{_PRIVMRF}/preprocess/nltcs.csv",
           "31d23617ba74786d2d163c9c31a841e11e5a5f5f8266918d8021ec4e562684b4"),
    Source("acs.csv", f"{_PRIVMRF}/preprocess/acs.csv",
           "89e337a3431f9b3f76d84142cb048495fec93ff10018b1f38b25a19491582cc8"),
    Source("br2000.csv", f"{_PRIVMRF}/data/br2000.csv",
           "63d851b4cd7ee5ad18e346739f28013316aa575550a32b5841ebcd9566cddb71"),
    Source("br2000_hierarchy.json", f"{_PRIVMRF}/preprocess/br2000_hierarchy.json",
           "719417cabf9eba614be24b1d56fd4163fdd634834c7787440d0c5ac414aa99cd"),
    Source("adult.data", f"{_UCI}/adult.data"),
    Source("adult.test", f"{_UCI}/adult.test"),
)  # fmt: skip
MADE = {
    "nltcs.csv": "ee6d9b1130e7b859f9a2729273fa0830df1841f26ae35576cdad9e466c0833c6",
    "acs.csv": "395a6fc68141add3c7bba5f973cd0fac4d3f9f43c591bc3848741b3cd2922ee7",
    "br2000.csv": "7fb9d97b3eea583614d1ff12cdef2c51acf60166f80118b41a28383955fbd85f",
    "adult.csv": "90ce256488ed02100e1bdcf9cc1986e2baa98986a78b7b0ed942032cb9b22814",
}
"""SHA-256 of the tables that the figures of this project were made from."""

BR2000_SIZES = (2, 7, 22, 10, 16, 2, 2, 2, 2, 4, 16, 2, 16, 2)
NUMBERS = {
    "age": (17, 90),
    "fnlwgt": (12285, 1490400),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}
BINS = 16
LABELS = {
    "workclass": "Private,Self-emp-not-inc,Self-emp-inc,Federal-gov,Local-gov,State-gov,"
    "Without-pay,Never-worked",
    "education": "Bachelors,Some-college,11th,HS-grad,Prof-school,Assoc-acdm,Assoc-voc,9th,"
    "7th-8th,12th,Masters,1st-4th,10th,Doctorate,5th-6th,Preschool",
    "marital-status": "Married-civ-spouse,Divorced,Never-married,Separated,Widowed,"
    "Married-spouse-absent,Married-AF-spouse",
    "occupation": "Tech-support,Craft-repair,Other-service,Sales,Exec-managerial,Prof-specialty,"
    "Handlers-cleaners,Machine-op-inspct,Adm-clerical,Farming-fishing,Transport-moving,"
    "Priv-house-serv,Protective-serv,Armed-Forces",
    "relationship": "Wife,Own-child,Husband,Not-in-family,Other-relative,Unmarried",
    "race": "White,Asian-Pac-Islander,Amer-Indian-Eskimo,Other,Black",
    "sex": "Female,Male",
    "native-country": "United-States,Cambodia,England,Puerto-Rico,Canada,Germany,"
    "Outlying-US(Guam-USVI-etc),India,Japan,Greece,South,China,Cuba,Iran,Honduras,Philippines,"
    "Italy,Poland,Jamaica,Vietnam,Mexico,Portugal,Ireland,France,Dominican-Republic,Laos,Ecuador,"
    "Taiwan,Haiti,Columbia,Hungary,Guatemala,Nicaragua,Scotland,Thailand,Yugoslavia,El-Salvador,"
    "Trinadad&Tobago,Peru,Hong,Holand-Netherlands",
    "salary": "<=50K,>50K",
}
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "salary",
)  # fmt: skip


def adult_rows(files: Files) -> pd.DataFrame:
    """Return the rows of both files without unknown values, the training rows first."""
    parts = [
        pd.read_csv(
            io.BytesIO(files[name]), names=list(ADULT), skipinitialspace=True, na_values="?",
            comment="|",
        )
        for name in ("adult.data", "adult.test")
    ]  # fmt: skip
    rows = pd.concat(parts).dropna()
    rows["salary"] = rows["salary"].str.rstrip(".")
    return rows.reset_index(drop=True)


def coded_adult(rows: pd.DataFrame) -> pd.DataFrame:
    """Labels by their place, numbers in 16 bins of equal width."""
    columns = {}
    for name in ADULT:
        if name in NUMBERS:
            low, high = NUMBERS[name]
            above = (rows[name].to_numpy(np.int64) - low) * BINS
            # A value on the edge of two bins is in the lower one: the ceiling, minus one.
            columns[name] = np.clip(-(-above // (high - low)) - 1, 0, BINS - 1)
        else:
            place = {label: code for code, label in enumerate(LABELS[name].split(","))}
            columns[name] = rows[name].map(place).to_numpy()
    return pd.DataFrame(columns)


def made_of(files: Files) -> dict[str, str]:
    """Make every file of the folder that these sources allow, as text."""
    made: dict[str, str] = {}
    for name in ("nltcs", "acs", "br2000"):
        if f"{name}.csv" in files:
            rows = pd.read_csv(io.BytesIO(files[f"{name}.csv"]))
            rows.columns = [f"a{place}" for place in range(rows.shape[1])]
            sizes = BR2000_SIZES if name == "br2000" else (2,) * rows.shape[1]
            made[f"{name}.csv"] = rows.to_csv(index=False, lineterminator="\n")
            made[f"{name}-domain.json"] = _json(dict(zip(rows.columns, sizes, strict=True)))
    if "br2000_hierarchy.json" in files:
        made["hierarchies/br2000_hierarchy.json"] = files["br2000_hierarchy.json"].decode()
    if "adult.data" in files and "adult.test" in files:
        rows = adult_rows(files)
        made["adult-raw.csv"] = rows.to_csv(index=False, lineterminator="\n")
        made["adult.csv"] = coded_adult(rows).to_csv(index=False, lineterminator="\n")
        described: dict[str, object] = {
            name: {"range": list(NUMBERS[name]), "bins": BINS}
            if name in NUMBERS
            else LABELS[name].split(",")
            for name in ADULT
        }
        made["adult-labels.json"] = _json(described)
        made["adult-domain.json"] = _json(
            {n: BINS if n in NUMBERS else len(LABELS[n].split(",")) for n in ADULT}
        )
    return made


def _json(value: object) -> str:
    return json.dumps(value, indent=0) + "\n"


def gathered(folder: Path | None) -> tuple[dict[str, bytes], list[str]]:
    """Read the sources from the network or a folder; return what was wrong with the others."""
    files, wrong = {}, []
    for source in SOURCES:
        try:
            data = _read(source, folder)
        except OSError as error:
            wrong.append(f"{source.name}: cannot be had: {error}. Its address: {source.address}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if source.digest not in (None, found):
            wrong.append(f"{source.name}: has SHA-256 {found}, not {source.digest}. Left out")
            continue
        files[source.name] = data
    return files, wrong


def _read(source: Source, folder: Path | None) -> bytes:
    if folder is not None:
        return (folder / source.name).read_bytes()
    with urllib.request.urlopen(source.address, timeout=_TIMEOUT_S) as answer:  # noqa: S310
        return bytes(answer.read())


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
    """Return the tables found, and the names of those that are not there."""
    loaders = {"nltcs": _nltcs, "acs": _acs, "adult": _adult, "br2000": _br2000}
    found = [load() for name, load in loaders.items() if (DATA / f"{name}.csv").is_file()]
    return found, [name for name in loaders if not (DATA / f"{name}.csv").is_file()]


def read_codes(name: str) -> tuple[Codes, list[str]]:
    """Return a coded table and the names of its columns."""
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
    """Make a tree from nested tuples of labels; without groups it is flat."""
    if groups is None:
        return Hierarchy.flat(labels)

    def node(part: Any) -> Node:  # noqa: ANN401 (a label, or nested tuples of labels)
        if isinstance(part, str):
            return leaf(part, labels.index(part))
        return Node("", tuple(node(each) for each in part))

    return Hierarchy(node(groups))


def _declared(tree: Mapping[str, Any]) -> Node:
    """Make a tree from nested objects with `value_list` (leaves) and `node_list` (groups)."""
    leaves = [leaf(str(code), code) for code in tree["value_list"]]
    return Node(str(tree["name"]), (*leaves, *(_declared(each) for each in tree["node_list"])))


def main() -> int:
    """Read the command line; 1 if a table is missing or is not the one of the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.research_tables", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, help="to write the tables to")
    parser.add_argument("--sources", type=Path, help="a folder that has the sources already")
    given = parser.parse_args()
    files, wrong = gathered(given.sources)
    for name, text in made_of(files).items():
        path = given.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        found = hashlib.sha256(text.encode()).hexdigest()
        if MADE.get(name, found) != found:
            wrong.append(f"{name}: has SHA-256 {found}, the figures were made from {MADE[name]}")
        print(f"{found}  {path}")
    for words in wrong:
        print(f"wrong: {words}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
