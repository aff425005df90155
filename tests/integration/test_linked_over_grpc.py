"""Studies of people and their events over gRPC: sources of every owner, signatures of all."""

import json
import sqlite3
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from common.crypto.sums.plan import Aggregation, Noise
from common.methods.registry import methods
from common.release.verify import verify
from parley.cli.main import main
from party.journal import JournalState
from party.sources.settings import owners_table
from party.totals import Unit
from tests.harness.consortium import NAMES
from tests.harness.linked import RULED as SCHEMA
from tests.harness.linked import frames, shared_out
from tests.integration.test_every_cell_is_countersigned import Cell, check_signed, gather
from tests.integration.test_missing_parties_over_grpc import run_without_south

PEOPLE = 360


def written(folder, number, people, events):
    """The tables of an owner, each in another kind of source."""
    folder.mkdir()
    kind = ("csv", "parquet", "sqlite")[number % 3]
    if kind == "sqlite":
        with sqlite3.connect(folder / "data.db") as database:
            people.to_sql("people", database, index=False)
            events.to_sql("visits", database, index=False)
        first, second = ({"path": "data.db", "table": name} for name in ("people", "visits"))
    else:
        first, second = ({"path": f"{name}.{kind}"} for name in ("people", "visits"))
        for frame, place in ((people, first), (events, second)):
            getattr(frame, f"to_{kind}")(folder / place["path"], index=False)
    table = {"kind": kind, "person": "id"}
    return owners_table(
        {**table, **first, "events": {**table, **second}}, folder=folder, environment={}
    )


def linked_consortium(folder, cell, key, *, more=1):
    """Gather owners whose nodes read their people and visits from their own sources."""
    people, events = frames(PEOPLE)
    events = pd.concat([events] * more)
    sources = {
        name: written(folder / f"data {name}", number, *own)
        for number, (name, own) in enumerate(
            zip(NAMES, shared_out(people, events, cell.parties), strict=False)
        )
    }
    tables = {name: source.open(SCHEMA).codes() for name, source in sources.items()}
    (folder / "hub").mkdir()
    consortium = gather(folder / "hub", cell, key, tables=tables, schema=SCHEMA)
    for name, party in consortium.parties.items():
        party.check_source = sources[name].check_readable
        party.rows = lambda _, source=sources[name]: source.open(SCHEMA.forgiven(), secret=b"s")
    return consortium


USUAL = Cell("subn+", "sound", Noise.DISTRIBUTED, Aggregation.MASKED, "epsilon and delta", 1, 3)
OTHERS = [
    Cell(method.name, "sound", Noise.DISTRIBUTED, aggregation, promise, may_miss, 3)
    for method, aggregation, promise, may_miss in product(
        methods().values(), Aggregation, ("epsilon", "epsilon and delta"), (0, 1)
    )
    if method.linked and (aggregation is Aggregation.MASKED or not may_miss)
]


def check(folder, cell, key):
    consortium = linked_consortium(folder, cell, key)
    place = check_signed(consortium)
    people = pd.read_csv(place / "synthetic.csv")
    visits = pd.read_csv(place / "synthetic-visits.csv")
    assert len(people) == PEOPLE
    assert set(visits.person) <= set(people.person)
    rows = visits.merge(people, on="person")
    assert not ((rows.sex == "M") & (rows.diagnosis == "a")).any()
    statement = json.loads((place / "privacy.json").read_text())
    assert "with all of her visits" in statement["unit_of_privacy"]
    with consortium.parties["north"].context() as context:
        paid = context.ledger.totals()
    assert paid.units == (Unit.PERSON,)
    assert paid.of_people.within(consortium.study.epsilon, consortium.study.delta)


def test_owners_of_three_kinds_of_sources_release_and_sign_people_and_visits(
    tmp_path, paillier_key
):
    check(tmp_path, USUAL, paillier_key)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell for cell in OTHERS if cell != USUAL], ids=str)
def test_every_linked_cell_ends_in_a_release_that_all_parties_sign(tmp_path, paillier_key, cell):
    check(tmp_path, cell, paillier_key)


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, 5])
def test_the_others_finish_without_an_owner_that_vanished(tmp_path, paillier_key, after):
    cell = USUAL._replace(parties=4)
    consortium = linked_consortium(tmp_path, cell, paillier_key)
    try:
        ended = run_without_south(consortium, after)
        assert set(ended.values()) == {JournalState.FINISHED}
        place = Path(consortium.curator.store.record(consortium.study.digest).place)
    finally:
        consortium.curator.stop()
    assert verify(place, unsigned=True).consistency.derived
    statement = json.loads((place / "privacy.json").read_text())
    assert list(statement["missing"]) == ["south"]


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", [Aggregation.MASKED, Aggregation.PAILLIER], ids=str)
def test_what_leaves_a_node_is_as_long_whatever_the_number_of_events(
    tmp_path, paillier_key, aggregation
):
    sizes = []  # of a method whose tables do not follow from noisy ones
    for more in (1, 3):
        folder = tmp_path / str(more)
        folder.mkdir()
        cell = USUAL._replace(method="floor", aggregation=aggregation, may_miss=0)
        consortium = linked_consortium(folder, cell, paillier_key, more=more)
        check_signed(consortium)
        with consortium.parties["east"].context() as context:
            sizes.append([(each.kind, each.size) for each in context.journal.sent_log()])
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) >= 3


@pytest.mark.slow
def test_the_command_runs_a_process_for_every_owner(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA.to_toml())
    for name, (people, events) in zip(NAMES, shared_out(*frames(240), 3), strict=False):
        people.to_csv(f"{name}.csv", index=False)
        events.to_csv(f"{name}-visits.csv", index=False)
    pairs = [f"{name}.csv:{name}-visits.csv" for name in NAMES[:3]]
    words = ["--schema", "schema.toml", "--person", "id", "--epsilon", "2", "--delta", "1e-9"]
    more = ["--out", "release", "--transport", "grpc"]
    analyses = ["--analysis", 'share = "diagnosis = a", by = "sex"', "--analysis", 'mean = "age"']
    assert main(["simulate", *pairs, *words, *analyses, *more]) == 0, capsys.readouterr().err
    assert main(["verify", "release", "--all-parties"]) == 0
    assert main(["answers", "release"]) == 0
    assert "share of diagnosis = a, F:" in capsys.readouterr().out
