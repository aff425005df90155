"""Spark: where its rows are, and that they are never read. Counting them needs Java."""

import builtins
from pathlib import Path

import pytest

from common.errors import InputError
from party.sources import SourceSettings
from party.sources.kinds.spark import start_session


def settings(**table):
    return SourceSettings.from_table(
        {"kind": "spark", **table}, folder=Path("/owner"), environment={}
    )


@pytest.mark.parametrize(
    ("table", "address", "query"),
    [
        ({"path": "rows"}, "/owner/rows", ""),
        ({"path": "hdfs://cluster/rows"}, "hdfs://cluster/rows", ""),
        ({"path": "s3a://bucket/people"}, "s3a://bucket/people", ""),
        ({"table": "db.rows"}, "", "SELECT * FROM `db`.`rows`"),
        ({"table": "a`b"}, "", "SELECT * FROM `a``b`"),
        ({"query": "SELECT 1", "master": "local[2]"}, "", "SELECT 1"),
    ],
)
def test_an_address_or_a_query_says_where_the_rows_are(table, address, query):
    found = settings(**table)
    assert (found.address, found.query) == (address, query)
    assert found.options == ({"master": "local[2]"} if "master" in table else {})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "give one of path, table and query"),
        ({"path": "x", "table": "t"}, "give one of path, table and query"),
        ({"path": "x", "query": "q"}, "give one of path, table and query"),
        ({"path": "x", "uri": "u"}, "unknown key 'source.uri'"),
        ({"path": "x", "where": "a = 1"}, "unknown key 'source.where'"),
        ({"path": "x", "columns": {}}, "unknown key 'source.columns'"),
    ],
)
def test_settings_that_it_cannot_have_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        settings(**table)


def test_rows_are_counted_where_they_are_and_never_read():
    with pytest.raises(InputError, match="are not read, only counted"):
        settings(path="rows").reader(None)


def test_without_pyspark_the_extra_is_named(monkeypatch):
    importing = builtins.__import__

    def without(name, *arguments, **more):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return importing(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"parley\[spark\]"):
        start_session()


def test_without_java_it_is_named(monkeypatch, tmp_path):
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="Java 17"):
        start_session()
