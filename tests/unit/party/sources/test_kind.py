"""Kinds of sources are found by themselves, each with a name of its own."""

import pytest

from common.errors import InputError
from party.sources.kind import SHAPE, all_kinds, table_or_query


def test_every_kind_is_there_files_first_and_by_name():
    names = list(all_kinds())
    assert names == [
        "csv", "duckdb", "excel", "parquet", "sas", "spss", "sqlite", "stata", "postgresql",
        "spark",
    ]  # fmt: skip
    files = [kind.is_file for kind in all_kinds().values()]
    assert files == sorted(files, reverse=True)


def test_what_is_read_here_can_be_renamed_recoded_and_dated():
    for name, kind in all_kinds().items():
        assert (kind.keys >= SHAPE) == (name != "spark")
        assert ("where" in kind.keys) == (kind.is_file and kind.reads_all)


@pytest.mark.parametrize("table", [{}, {"table": "t", "query": "SELECT 1"}])
def test_a_database_has_a_table_or_a_query(table):
    with pytest.raises(InputError, match="give either table or query"):
        table_or_query(table, '"')
