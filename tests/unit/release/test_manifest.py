"""The manifest: what is no list of files with their hashes is refused."""

import io
import json

import pytest

from common.errors import InputError
from common.release.manifest import MANIFEST, FileEntry, Manifest, sha256_of
from tests.unit.release.conftest import problems


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"\xff",
        b'{"format": "parley release manifest", "version": 2}',
        b'{"format": 1, "format": 2}',
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_no_manifest_is_refused(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(InputError, match=MANIFEST):
        problems(folder)


@pytest.mark.parametrize(
    "entry",
    [
        {"../x": {"sha256": "0" * 64, "size": 1}},
        {MANIFEST: {"sha256": "0" * 64, "size": 1}},
        {"x": {"sha256": "0" * 63, "size": 1}},
        {"x": {"sha256": "0" * 64, "size": -1}},
        {"x": {"sha256": "0" * 64, "size": True}},
        {"x": {"sha256": "0" * 64}},
        {},
    ],
)
def test_a_manifest_with_a_bad_entry_is_refused(entry):
    good = Manifest(files={"a": FileEntry("0" * 64, 1)}, study=None, date="2026-11-17", versions={})
    document = json.loads(good.to_bytes()) | {"files": entry}
    with pytest.raises(InputError, match=MANIFEST):
        Manifest.from_bytes(json.dumps(document).encode())
    assert Manifest.from_bytes(good.to_bytes()) == good


def test_hashing_stops_where_the_manifest_says_a_file_ends():
    assert sha256_of(io.BytesIO(bytes(10 << 20)), most=5).size <= 1 << 20
