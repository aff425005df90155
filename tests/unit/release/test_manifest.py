"""The manifest: what is no list of files with their hashes is refused."""

import io

import pytest

from common.errors import InputError
from common.release.manifest import MANIFEST, FileEntry, Manifest, sha256_of
from tests.harness.vectors import negative
from tests.unit.release.conftest import problems


@pytest.mark.parametrize("vector", negative("manifests"))
def test_a_bad_manifest_is_refused(vector):
    with pytest.raises(InputError, match=MANIFEST):
        Manifest.from_bytes(vector["text"].encode())


@pytest.mark.parametrize("text", [b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_manifest_is_refused(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(InputError, match=MANIFEST):
        problems(folder)


def test_a_good_manifest_comes_back():
    good = Manifest(files={"a": FileEntry("0" * 64, 1)}, study=None, date="2026-11-17", versions={})
    assert Manifest.from_bytes(good.to_bytes()) == good


def test_hashing_stops_where_the_manifest_says_a_file_ends():
    assert sha256_of(io.BytesIO(bytes(10 << 20)), most=5).size <= 1 << 20
