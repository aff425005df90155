"""What docs/development.md says one has to touch: a new part is found where its file is put."""

import json
import sys
from fractions import Fraction
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest

import common.methods
import parley
import party.sources.kinds
from common.methods.registry import methods
from common.release.verify import verify
from common.schema import Schema
from parley.cli import commands
from parley.cli import main as command_line
from party.sources.kind import all_kinds
from party.sources.settings import SourceSettings

SCHEMA = Schema.from_toml(
    '[[attribute]]\nname = "a"\nkind = "categorical"\nvalues = ["x", "y", "z"]\n'
)
TABLES = [pd.DataFrame({"a": ["x", "y", "y", "z"] * 10}), pd.DataFrame({"a": ["x"] * 30})]

# A method, and a noise law of its own that nothing else has heard of: coins that are -1, 0 or 1.
METHOD = """
    from dataclasses import dataclass
    from fractions import Fraction
    from functools import partial

    from common.methods.network_model import NetworkModel, network_of, table_sets
    from common.methods.network_model import Variables
    from common.privacy import sensitivity
    from common.study.method import Method
    from common.study.requests import TableRequest
    from common.study.steps import SumStep


    @dataclass(frozen=True)
    class Coins:
        scale: Fraction = Fraction(3)
        name = "coins"
        norm = 1
        parameter = "sides"
        nominal_variance = Fraction(2, 3)

        def cost(self, sensitivity):
            return Fraction(1)

        def draw(self, count, source):
            return self.draw_share(count, makers=1, source=source)

        def draw_share(self, count, *, makers, source):
            return (source.words(count) % 3).astype("int64") - 1

        def variance(self, copies=Fraction(1)):
            return float(copies) * 2 / 3

        def mean_absolute(self, copies=Fraction(1)):
            return 2 / 3

        def bound(self, draws):
            return 1

        def times(self, factor):
            return self


    def script(study):
        variables = Variables(study.schema.sizes)
        network = network_of(((),) * len(variables.sizes))
        families = table_sets(network)
        step = SumStep(
            name="coins", phase="coins", parties=study.parties,
            request=TableRequest(tuple(families.values()), variables.sizes),
            sensitivity=sensitivity.histograms(len(families)), law=Coins(),
        )
        total = yield step
        return partial(
            NetworkModel, variables, network, {next(iter(families)): total.counts.clip(0) + 1.0}
        )


    METHOD = Method(
        name="coins", summary="toss coins", script=script, only_sums=True, place=99
    )
"""

# A method whose model nothing else has heard of: the first column, and the second given it.
PAIRS = """
    from dataclasses import dataclass

    import numpy as np

    from common.bayes.domain import Domain
    from common.bayes.form import of_attributes
    from common.bayes.model import Model
    from common.bayes.network import Network
    from common.bayes.weighting import WeightedNetwork
    from common.privacy import sensitivity
    from common.privacy.randomness import uniforms
    from common.schema.codes import Codes
    from common.study.method import Method
    from common.study.requests import TableRequest
    from common.study.steps import SumStep


    @dataclass(frozen=True, eq=False)
    class PairModel(Model):
        law: np.ndarray  # of the joint values of two attributes

        def sample(self, rows, source):
            ladder = self.law.cumsum()
            cells = np.searchsorted(ladder, uniforms(rows, source) * ladder[-1], side="right")
            return Codes.from_columns(np.unravel_index(cells, self.law.shape), self.law.shape)

        def as_json(self):
            return {"format": "pairs", "law": self.law.tolist()}

        def form(self):
            FORM


    def script(study):
        request = TableRequest(((0, 1),), study.schema.sizes)
        moved = sensitivity.histograms(1)
        promise = study.promise
        total = yield SumStep(
            name="pair", phase="pair", parties=study.parties, request=request, sensitivity=moved,
            law=promise.law(promise.budget, moved),
        )
        counts = np.maximum(total.counts, 0).reshape(study.schema.sizes) + 1e-9
        return lambda: PairModel(counts / counts.sum())


    METHOD = Method(name="pairs", summary="one pair", script=script, only_sums=True, place=98)
"""
AS_A_NETWORK = """first = self.law.sum(axis=1)
            network = Network.from_parents({0: (), 1: (0,)})
            given = (first[None, :], self.law / first[:, None])
            net = WeightedNetwork(network, Domain.flat(self.law.shape), given)
            return (of_attributes(net, self.law.shape),)"""
AS_NONE = "return ()"  # no network: rows are drawn until enough satisfy a condition

SOURCE = """
    import pyarrow as pa

    from common.tables.files import FileReader
    from party.sources.kind import SHAPE, Kind
    from common.tables.reader import parts_of_stream


    class LinesReader(FileReader):
        names = ("a",)

        def parts(self, names):
            cells = self._path.read_text().split()
            return parts_of_stream([pa.RecordBatch.from_arrays([pa.array(cells)], names=["a"])])

        def read_slowly(self):
            return False

        def explain(self, error):
            raise error

        def row_numbers(self, positions):
            return positions


    class Lines(Kind):
        name = "lines"
        keys = SHAPE | {"path"}

        def reader(self, settings, schema):
            from pathlib import Path

            return LinesReader(Path(settings.address), settings.as_of)


    KINDS = (Lines(),)
"""


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Put a module into a folder that a package has as well, as if it were in the package."""

    def put(package, name, text, registry):
        (tmp_path / f"{name}.py").write_text(dedent(text))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        registry.cache_clear()

    yield put
    monkeypatch.undo()
    for registry in (methods, all_kinds):
        registry.cache_clear()
    for name in (
        "common.methods.coins",
        "common.methods.pairs",
        "party.sources.kinds.lines",
        "parley.cli.commands.hello",
    ):
        sys.modules.pop(name, None)


def test_a_method_and_a_noise_law_are_one_file(add, tmp_path):
    add(common.methods, "coins", METHOD, methods)
    made = parley.simulate(TABLES, SCHEMA, epsilon=1, method="coins", aggregation="masked", seed=1)
    made.save(tmp_path / "release")
    privacy = json.loads((tmp_path / "release" / "privacy.json").read_text())
    (step,) = privacy["steps"]
    assert step["mechanism"].startswith("coins")
    assert privacy["exact"]["epsilon_delivered"] == str(Fraction(1))
    assert "coins" in (tmp_path / "release" / "report.html").read_text()


@pytest.mark.parametrize("form", [AS_A_NETWORK, AS_NONE], ids=["network", "none"])
def test_a_method_with_a_model_of_its_own_takes_conditions_and_rules(add, tmp_path, form):
    add(common.methods, "pairs", PAIRS.replace("FORM", form), methods)
    attribute = SCHEMA.to_toml()
    ruled = Schema.from_toml(
        attribute
        + attribute.replace('"a"', '"b"')
        + '[[rule]]\nwhen = "a = x"\nthen = "not (b = z)"\n'
    )
    rng = np.random.default_rng(1)
    letters = np.array(["x", "y", "z"])
    first = rng.integers(0, 3, 3_000)
    follows = np.where(rng.random(3_000) < 0.7, first, rng.integers(0, 2, 3_000))
    table = pd.DataFrame({"a": letters[first], "b": letters[follows]})
    made = parley.simulate(
        [table[::2], table[1::2]], ruled, epsilon=5, method="pairs", aggregation="clear", seed=1
    )
    rows = made.sample(4_000, where="b = z")
    assert set(rows["b"]) == {"z"}
    assert "x" not in set(rows["a"]), "the rule holds under a condition"
    assert (rows["a"] == "z").mean() > 0.95
    drawn = made.sample(4_000)
    assert not ((drawn["a"] == "x") & (drawn["b"] == "z")).any()
    assert abs((drawn["a"] == "x").mean() - 1 / 3) < 0.05
    made.save(tmp_path / "release")
    assert verify(tmp_path / "release", unsigned=True).derived


def test_a_source_is_one_file(add, tmp_path):
    add(party.sources.kinds, "lines", SOURCE, all_kinds)
    (tmp_path / "rows.txt").write_text("x\ny\ny\n")
    table = {"kind": "lines", "path": "rows.txt"}
    source = SourceSettings.from_table(table, folder=tmp_path, environment={}).open(SCHEMA)
    (counts,) = source.count([(0,)])
    assert counts.tolist() == [1, 2, 0]


def test_a_command_is_a_module_and_a_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "hello.py").write_text(
        "from parley.cli import console\n"
        "from parley.cli.commands import new_app\n\n"
        "app = new_app()\n\n\n"
        "@app.command()\n"
        "def hello() -> None:\n"
        "    console.result('hello')\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.setitem(command_line.COMMANDS["To see it work"], "hello", "Say hello.")
    assert command_line.main(["hello"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert command_line.main(["--help"]) == 0
    assert "Say hello." in capsys.readouterr().out
