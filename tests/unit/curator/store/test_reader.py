"""The reader of the dashboard."""

import pytest

from common.errors import LocalError
from curator.store.reader import StoreReader


def test_the_reader_cannot_write_and_says_when_it_cannot_read(stage, tmp_path):
    stage.studies()
    reader = StoreReader(stage.path)
    with pytest.raises(LocalError, match="readonly"):
        reader._rows("DELETE FROM study")
    version = reader.version()
    assert reader.version() == version
    stage.store.propose(stage.study, at="now")
    assert reader.version() != version
    assert reader.study(b"unknown") is None
    reader.close()
    with pytest.raises(LocalError):
        StoreReader(tmp_path / "missing.db").version()
