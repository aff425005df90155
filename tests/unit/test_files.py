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
