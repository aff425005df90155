"""Addresses of databases: which are refused, and where a password may be."""

from pathlib import Path

import pytest

from common.errors import InputError
from party.sources import SourceSettings


def test_an_address_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "address"
    path.write_text("postgresql://reader:pw@db/health\n")
    table = {"kind": "postgresql", "table": "public.people", "uri_file": "address"}
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        SourceSettings.from_table(table, folder=tmp_path, environment={})
    path.chmod(0o600)
    settings = SourceSettings.from_table(table, folder=tmp_path, environment={})
    assert settings.address == "postgresql://reader:pw@db/health"
    assert settings.query == 'SELECT * FROM "public"."people"'
    assert "pw" not in repr(settings)


def settings(table, environment=None):
    return SourceSettings.from_table(table, folder=Path("owner"), environment=environment or {})


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("postgresql://a:pw@host/health", "holds a password"),
        ("host=h password=pw dbname=d", "holds a password"),
        ("host=h password = pw", "holds a password"),
        ("postgresql://a@host:5432/health", None),
        ("postgresql://host/password", None),
        ("postgresql:///health?host=/run/x", None),
    ],
)
def test_a_password_does_not_belong_into_a_settings_file(uri, named):
    table = {"kind": "postgresql", "table": "t", "uri": uri}
    if named is None:
        assert settings(table).address == uri
    else:
        with pytest.raises(InputError, match=named):
            settings(table)


def test_an_address_of_the_environment_may_hold_one_and_is_not_shown():
    found = settings(
        {"kind": "postgresql", "query": "SELECT 1", "uri_env": "DB"}, {"DB": "postgresql://a:pw@h"}
    )
    assert (found.address, found.query) == ("postgresql://a:pw@h", "SELECT 1")
    assert "pw" not in repr(found)
    with pytest.raises(InputError, match="give one of uri, uri_env and uri_file"):
        settings({"kind": "postgresql", "table": "t", "uri_env": "DB", "uri": "h"}, {"DB": "x"})


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("people", '"people"'),
        ("a.b", '"a"."b"'),
        ('x"; DROP TABLE y; --', '"x""; DROP TABLE y; --"'),
    ],
)
def test_the_name_of_a_table_cannot_end_its_quotation(table, query):
    for kind in ("sqlite", "duckdb"):
        found = settings({"kind": kind, "path": "d.db", "table": table})
        assert found.query.removeprefix("SELECT * FROM ") == query
        assert found.address == "owner/d.db"
