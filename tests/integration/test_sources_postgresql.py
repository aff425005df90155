"""A real PostgreSQL server, started here on a Unix socket: read in streams, never written."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError, PolicyError
from common.marginals import count
from common.schema import Schema
from common.schema.codes import Codes, concatenate
from common.tables import reader
from party.sources import SourceSettings
from party.sources.kinds import databases
from tests.harness.cells import every_kind
from tests.harness.people import schema_of
from tests.harness.postgresql import running_server, server_programs

PASSWORD = "correct-horse"
ROWS = 150_000
SCHEMA = schema_of("sex", "age", "income", "since", "smokes", "ward", called={"smokes": "Smoker?"})
TABLES = f"""
CREATE TYPE place AS ENUM ('north', 'south');
CREATE TABLE people AS SELECT
    i AS id,
    CASE i % 3 WHEN 0 THEN 'F' WHEN 1 THEN 'M' END AS sex,
    (i * 7 % 100)::smallint AS age,
    (i * 31 % 10000 / 100.0)::numeric(6, 2) AS income,
    date '2000-01-01' + i * 13 % 9000 AS since,
    i % 5 = 0 AS "Smoker?",
    (ARRAY['north', 'south'])[1 + i % 2]::place AS ward
FROM generate_series(1, {ROWS}) AS i;
CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}';
GRANT SELECT ON people TO reader;
CREATE SEQUENCE touched;
GRANT ALL ON SEQUENCE touched TO reader
"""  # noqa: S608  # our own numbers


@pytest.fixture(scope="module")
def server():
    """A server of its own: `server.uri(user)`, `server.execute(statement)`."""
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server here: install the package postgresql")
    with running_server(programs, PASSWORD) as server:
        server.execute(*TABLES.split(";"))
        yield server


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks smaller than the table of these tests."""
    monkeypatch.setattr(reader, "CHUNK_ROWS", 1 << 14)
    options = {"postgresql": {"adbc.postgresql.batch_size_hint_bytes": 1 << 19}}
    monkeypatch.setattr(databases, "_STATEMENT_OPTIONS", options)


def settings(server, *, uri=None, **table):
    return SourceSettings.from_table(
        {"kind": "postgresql", "uri_env": "DATABASE", **(table or {"table": "people"})},
        folder=Path("/"),
        environment={"DATABASE": uri or server.uri("reader")},
    )


def expected_counts(sets):
    i = np.arange(1, ROWS + 1)
    sex = np.array([0, 1, 2])[i % 3]
    codes = Codes.from_columns(
        [
            sex,
            i * 7 % 100 // 10,
            SCHEMA.attributes[2].domain.assign(i * 31 % 10000 / 100)[0],
            SCHEMA.attributes[3].domain.assign(10957 + i * 13 % 9000)[0],
            i % 5 == 0,
            i % 2,
        ],
        SCHEMA.sizes,
    )
    return count(codes, sets)


@pytest.mark.parametrize("held", [1 << 28, 0], ids=["held", "streamed"])
def test_a_table_gives_exact_counts(server, held):
    sets = [(), (0, 1), (2, 3), (4, 5, 0)]
    opened = settings(server).open(SCHEMA, held_bytes=held)
    assert opened.rows == ROWS
    for _ in range(2):
        for table, wanted in zip(opened.count(sets), expected_counts(sets), strict=True):
            assert np.array_equal(table, wanted)


TYPED = {
    "text": ["'1'", "'1.0'", "'0x1F'", "'n/a'", "''", "'2024-01-31'", "'9223372036854775808'"],
    "char(12)": ["'1'", "'n/a'", "'2024-01-31'"],
    "numeric": ["1", "1.0", "1.00", "0.5", "'NaN'", "'Infinity'", "12345678901", "1e40"],
    "float8": ["1", "0.5", "12345678901", "'NaN'", "'-Infinity'", "'-0'", "1e19"],
    "float4": ["1", "0.1", "'NaN'"],
    "bigint": ["1", "31", "9223372036854775807", "20240131"],
    "boolean": ["true", "false"],
    "date": ["'2024-01-31'", "'infinity'", "'-infinity'", "'5874897-01-01'", "'4713-01-01 BC'"],
    "timestamp": ["'2024-01-31 12:30:15.5'", "'infinity'", "'-infinity'", "'294276-01-01'"],
    "timestamptz": ["'2024-01-31 12:30:15+01'", "'infinity'"],
    "interval": ["'1 month'", "'30 days'"],
    "bytea": ["'1'", r"'\xff'", "'a'"],
    "jsonb": ["'1'", "'1.0'", "'true'", "'\"a\"'"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'"],
    "int[]": ["'{1}'", "'{}'"],
    "point": ["'(1,2)'"],
}


SLOWLY = [pytest.param(kind, marks=pytest.mark.slow) for kind in TYPED if kind != "numeric"]


@pytest.mark.parametrize("kind", ["numeric", *SLOWLY])
def test_no_cell_has_a_part_in_the_code_of_another(server, kind):
    schema = every_kind()
    same = ", ".join(f"x AS {name}" for name in schema.names)

    def opened(cells):
        rows = ", ".join(f"({cell}::{kind})" for cell in cells)
        query = f"SELECT {same} FROM (VALUES {rows}) AS held(x)"  # noqa: S608  # our own cells
        made = settings(server, query=query)
        made.check_readable()
        return made.open(schema, held_bytes=0)

    cells = [*TYPED[kind], "NULL"]
    sets = [(at,) for at in range(len(schema.names))]
    alone = count(concatenate([opened([cell]).codes() for cell in cells]), sets)
    whole = opened([*cells, *cells])
    for found, wanted in zip(whole.count(sets), alone, strict=True):
        assert found.tolist() == (2 * wanted).tolist()


def test_a_date_without_end_is_the_last_one(server):
    schema = Schema.from_toml(
        '[[attribute]]\nname = "x"\nkind = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nbins = 3'
    ).forgiven()
    for kind in ("date", "timestamp"):
        cells = f"('infinity'::{kind}), ('-infinity'), ('2020-06-01')"
        query = f"SELECT x FROM (VALUES {cells}) AS held(x)"  # noqa: S608  # our own cells
        assert settings(server, query=query).open(schema).codes().columns[0].tolist() == [2, 0, 1]


def test_a_large_table_is_streamed_in_chunks(server):
    opened = settings(server).open(SCHEMA, held_bytes=0)
    rows = [chunk.rows for chunk in opened.chunks()]
    assert len(rows) > 1
    assert sum(rows) == ROWS


def test_the_order_of_the_rows_does_not_matter(server):
    query = "SELECT * FROM people WHERE id <= 5000 ORDER BY random()"
    first = settings(server, query=query).open(SCHEMA, held_bytes=0)
    again = settings(server, query=query).open(SCHEMA, held_bytes=0)
    assert first.snapshot == again.snapshot
    assert sum(chunk.rows for chunk in first.chunks()) == 5000


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (
            "UPDATE people SET age = age + 10 WHERE id = 777",
            "UPDATE people SET age = age - 10 WHERE id = 777",
        ),
        (
            "INSERT INTO people SELECT * FROM people WHERE id = 1",
            "DELETE FROM people WHERE ctid = (SELECT max(ctid) FROM people WHERE id = 1)",
        ),
    ],
    ids=["a cell", "a row"],
)
def test_a_table_that_changes_during_the_study_is_refused_until_it_is_restored(
    server, change, undo
):
    opened = settings(server).open(SCHEMA, held_bytes=0)
    server.execute(change)
    with pytest.raises(PolicyError, match="changed during the study"):
        opened.count([(0,)])
    server.execute(undo)
    assert opened.count([()])[0] == ROWS


def test_an_update_during_a_scan_is_not_half_seen(server):
    opened = settings(server).open(SCHEMA, held_bytes=0)
    chunks = opened.chunks()
    next(chunks)
    server.execute("UPDATE people SET age = 99 - age WHERE id % 100 = 0")
    rest = list(chunks)  # the statement sees the table as it was when it began
    assert rest
    with pytest.raises(PolicyError, match="changed during the study"):
        list(opened.chunks())
    server.execute("DROP TABLE people", "DROP TYPE place", *TABLES.split(";")[:2])
    server.execute("GRANT SELECT ON people TO reader")


def test_a_query_cannot_write(server):
    query = "SELECT p.*, nextval('touched') AS n FROM people p LIMIT 10"
    with pytest.raises(InputError, match="read-only"):
        settings(server, query=query).open(Schema(SCHEMA.attributes, ignore=("id", "n")))


def test_a_password_file_is_enough(server, monkeypatch, tmp_path):
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:reader:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    table = {"kind": "postgresql", "uri": server.uri("reader", password=""), "table": "people"}
    opened = SourceSettings.from_table(table, folder=tmp_path, environment={}).open(SCHEMA)
    assert opened.rows == ROWS


@pytest.mark.parametrize(
    ("changes", "table", "named"),
    [
        ({"password": ":wrong%20secret"}, {}, "authentication failed"),
        ({"password": ":wrong secret"}, {}, "unexpected spaces"),
        ({"database": "nowhere"}, {}, 'database "nowhere" does not exist'),
        ({}, {"table": "nobody"}, 'relation "nobody" does not exist'),
        ({}, {"query": "SELECT age FROM people"}, 'missing column "sex"'),
        ({}, {"query": "SELEC"}, "syntax error"),
        ({}, {"query": "SELECT * FROM people WHERE false"}, "no rows"),
    ],
)
def test_what_goes_wrong_is_named_and_no_password_shows(server, changes, table, named):
    with pytest.raises(InputError, match=named) as caught:
        settings(server, uri=server.uri(**{"user": "reader", **changes}), **table).open(SCHEMA)
    assert "postgresql: SELECT" in str(caught.value) or "SELEC" in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_cell_outside_the_domain_is_named(server):
    query = 'SELECT id, sex, age + 50 AS age, income, since, "Smoker?", ward FROM people'
    with pytest.raises(InputError, match=r"'age'.*outside the domain 0\.\.99"):
        settings(server, query=query).open(SCHEMA)
