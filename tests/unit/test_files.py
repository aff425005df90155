"""A file is written whole or not at all."""

import os

import pytest

from common import files as atomic
from common.errors import InputError


def test_a_full_disk_leaves_the_old_file_and_no_scraps(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic.write_new(path, b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (atomic.write_new, atomic.replace):
        with pytest.raises(InputError, match="No space left"):
            write(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_a_block_that_raises_leaves_the_old_file_and_no_scraps(tmp_path):
    path = tmp_path / "table.csv"
    atomic.write_new(path, b"old")

    def fail_after_writing():
        with atomic.whole_file(path) as scratch:
            assert scratch.suffix == ".csv"
            assert scratch.stat().st_mode & 0o777 == 0o600
            scratch.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_writing()
    with pytest.raises(InputError, match="nothing is overwritten"):
        atomic.write_new(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("table.csv", b"old")]
    atomic.replace(path, b"new", mode=0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
