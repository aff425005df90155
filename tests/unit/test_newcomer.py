"""What docs/development.md says one has to touch: a new part is found where its file is put."""

import json
import sys
from fractions import Fraction
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest

import common.exchanges
import common.methods
import common.privacy.laws
import parley
import party.sources.kinds
from common.methods.registry import methods
from common.privacy.noise_law import laws_paid_in
from common.release.verify import verify
from common.schema import Schema
from common.study.requests import read_cells
from common.wire import codec
from curator.role import CuratorRole
from parley.cli import commands
from parley.cli import main as command_line
from party.sources.settings import SourceSettings, all_kinds

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
    from common.exchanges.sums import sum_step


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
        step = sum_step(
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

# A law that nothing else has heard of, with less noise than the others (and no proof).
LAW = """
    from dataclasses import dataclass

    from common.privacy.laws.discrete_laplace import DiscreteLaplace


    @dataclass(frozen=True)
    class Halves(DiscreteLaplace):
        name = "halves"

        @classmethod
        def costing(cls, cost, *, sensitivity):
            return cls(DiscreteLaplace.costing(cost, sensitivity=sensitivity).scale / 2)

        def cost(self, sensitivity):
            return sensitivity.l1 / self.scale / 2


    LAW = Halves
"""

# A method whose model nothing else has heard of: the first column, and the second given it.
PAIRS = """
    from dataclasses import dataclass

    import numpy as np

    from common.bayes.domain import Domain
    from common.bayes.form import of_attributes
    from common.bayes.form import Model
    from common.bayes.network import Network
    from common.bayes.weighting import WeightedNetwork
    from common.privacy import sensitivity
    from common.privacy.randomness import uniforms
    from common.schema.codes import Codes
    from common.study.method import Method
    from common.study.requests import TableRequest
    from common.exchanges.sums import sum_step


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
        total = yield sum_step(
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


# An exchange of two rounds: who is here, and then each party's own noisy counts, one by one.
EXCHANGE = """
    import numpy as np

    from common.errors import RemoteProtocolError
    from common.study.requests import encode_cells, read_cells
    from common.study.sides import CuratorSide, PartySide, Post
    from common.study.steps import Exchange


    class OneByOne(Exchange):
        counts_all = True

        def canonical(self, step):
            return b"one by one " + step.name.encode() + step.request.canonical

        def party(self, context):
            return Teller(context)

        def curator(self, context):
            return Adder(context.step)

        def without_rows(self, step, source):
            return np.zeros(step.cells, np.int64)

        def in_one_place(self, step, place):
            return step.request.answer(place.rows(*step.parties))

        def read(self, step, study, data):
            return read_cells(data, step.cells)

        def check(self, step, result):
            pass

        def owners_with(self, step, party):
            return 1


    class Teller(PartySide):
        def __init__(self, context):
            self.context, self.told = context, False

        @property
        def awaits(self):
            return () if self.told else ("all are here",)

        @property
        def done(self):
            return self.told

        def begin(self):
            return [Post(round="here", payload=(), of_rows=False)]

        def receive(self, message):
            step, source = self.context.step, self.context.source
            self.told = True
            noisy = step.request.answer(self.context.data) + step.law.draw(step.cells, source)
            return [Post(round="counts", payload=(encode_cells(noisy),))]


    class Adder(CuratorSide):
        def __init__(self, step):
            self.step, self.here, self.counts = step, set(), {}

        @property
        def awaits(self):
            return ("counts",) if len(self.here) == len(self.step.parties) else ("here",)

        @property
        def waiting_for(self):
            return tuple(set(self.step.parties) - set(self.counts))

        @property
        def done(self):
            return not self.waiting_for

        def receive(self, sender, message):
            if message.round == "counts":
                self.counts[sender] = read_cells(*message.parts(bytes), self.step.cells)
                return []
            self.here.add(sender)
            if "here" in self.awaits:
                return []
            return [Post(round="all are here", payload=(), to=name) for name in self.here]

        def result(self):
            return encode_cells(sum(self.counts.values()))
"""
WITH_EXCHANGE = METHOD.replace(
    "        total = yield step\n",
    "        from dataclasses import replace\n"
    "        from common.exchanges.one_by_one import OneByOne\n"
    "        total = yield replace(step, exchange=OneByOne())\n",
)

SOURCE = """
    import pyarrow as pa

    from common.tables.files import FileReader
    from party.sources.settings import SHAPE, SourceKind
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


    class Lines(SourceKind):
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
    for registry in (methods, all_kinds, laws_paid_in):
        registry.cache_clear()
    for name in (
        "common.methods.coins",
        "common.methods.pairs",
        "common.privacy.laws.halves",
        "common.exchanges.one_by_one",
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


def test_a_noise_law_is_one_file(add):
    add(common.privacy.laws, "halves", LAW, laws_paid_in)
    terms = {"epsilon": 1, "method": "floor", "aggregation": "masked", "seed": 1}
    made = parley.simulate(TABLES, SCHEMA, **terms)
    (step,) = made.privacy["steps"]
    assert step["mechanism"] == "halves on a secure sum"
    assert step["scale"] == 1.0
    assert made.privacy["exact"]["epsilon_delivered"] == "1"
    (with_delta,) = parley.simulate(TABLES, SCHEMA, delta="1/1000000", **terms).steps
    assert with_delta.law.name == "Skellam", "halves are paid in epsilon"


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
    assert verify(tmp_path / "release", unsigned=True).consistency.derived


def test_an_exchange_is_one_file(add, tmp_path, monkeypatch):
    """Its rounds are carried, charged and replayed by roles that have never heard of it."""
    add(common.methods, "coins", WITH_EXCHANGE, methods)
    add(common.exchanges, "one_by_one", EXCHANGE, methods)
    sent = []

    def travelled(message):
        sent.append(message.round)
        return codec.TO_CURATOR.decode(codec.TO_CURATOR.encode(message))

    receive = CuratorRole.receive
    monkeypatch.setattr(
        CuratorRole, "receive", lambda self, name, each: receive(self, name, travelled(each))
    )
    terms = {"epsilon": 1, "method": "coins", "aggregation": "clear", "seed": 1}
    made = parley.simulate(TABLES, SCHEMA, **terms)
    assert sent == ["here", "here", "counts", "counts"]
    (result,) = made.results
    exact = np.array([10 + 30, 20, 10])
    assert np.abs(read_cells(result, 3) - exact).max() <= 2, "a coin of each owner"
    made.save(tmp_path / "release")
    assert parley.load(tmp_path / "release").steps[0].owners_with("party 1") == 1


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
