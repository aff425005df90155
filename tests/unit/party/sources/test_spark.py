"""Settings of Spark, and what is missing."""

import builtins

import pytest

from common.errors import InputError
from party.sources import SourceSettings
from party.sources.spark import start_session


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"kind": "spark"}, "one of path, table and query"),
        ({"kind": "spark", "path": "x", "query": "q"}, "one of path, table and query"),
        ({"kind": "spark", "path": "x", "uri": "u"}, "unknown key 'source.uri'"),
    ],
)
def test_spark_settings_that_make_no_sense_are_refused(tmp_path, table, named):
    with pytest.raises(InputError, match=named):
        SourceSettings.from_table(table, folder=tmp_path, environment={})


def test_spark_settings_say_where_the_table_is(tmp_path):
    def made(**table):
        return SourceSettings.from_table(
            {"kind": "spark", **table}, folder=tmp_path, environment={}
        )

    assert made(path="people").address == str(tmp_path / "people")
    assert made(path="s3a://bucket/people").address == "s3a://bucket/people"
    assert made(table="health.people").query == "SELECT * FROM `health`.`people`"
    assert made(query="SELECT 1", master="yarn").options == {"master": "yarn"}


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
