"""The reader of the dashboard."""

import pytest

from common.errors import InputError, LocalError
from common.service.database import Database
from curator.store.reader import StoreReader


def test_the_reader_cannot_write_and_says_when_it_cannot_read(stage, tmp_path):
    stage.studies()
    with Database(stage.path, read_only=True) as database:
        reader = StoreReader(database)
        with pytest.raises(LocalError, match="readonly"), database.transaction():
            database.write("DELETE FROM study")
        version = reader.data_version()
        assert reader.data_version() == version
        stage.store.propose(stage.study, at="now")
        assert reader.data_version() != version
        with pytest.raises(InputError, match="no study"):
            reader.record(b"unknown")
    with pytest.raises(InputError, match=r"missing\.db"):
        Database(tmp_path / "missing.db", read_only=True)
    assert not (tmp_path / "missing.db").exists()
