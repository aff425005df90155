"""The manifest and its signatures: a damaged or edited file is refused."""

import io
import json

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError
from common.privacy.randomness import SeededRandomSource
from common.release.archive import add_signature
from common.release.integrity import Kind
from common.release.manifest import (
    MANIFEST,
    FileEntry,
    Manifest,
    Signature,
    Signer,
    SignerRole,
    sha256_of,
    strict_json,
)
from tests.harness.vectors import negative
from tests.unit.release.conftest import CURATOR, NORTH, problems


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


def test_a_second_maker_is_refused_and_parties_are_welcome(folder):
    manifest = (folder / MANIFEST).read_bytes()
    add_signature(folder, NORTH.sign(manifest))
    assert problems(folder) == set()
    other = Signer(
        role=SignerRole.OWNER, name="me", identity=Identity.generate(SeededRandomSource("o"))
    )
    add_signature(folder, other.sign(manifest))
    assert {kind for _, kind in problems(folder)} == {Kind.SIGNATURE}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "south"},
        {"role": "curator"},
        {"role": "king"},
        {"signature": "AAAA"},
        {"identity": "AAAA"},
        {"fingerprint": CURATOR.identity.public.fingerprint},
        {"version": 2},
        {"more": 1},
        {"name": "\x1b[2J"},
    ],
)
def test_a_signature_file_that_was_edited_is_wrong(folder, change):
    signature = NORTH.sign((folder / MANIFEST).read_bytes())
    add_signature(folder, signature)
    path = folder / signature.file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert problems(folder) == {(signature.file, Kind.SIGNATURE)}


def test_a_signature_under_another_file_name_is_wrong(folder):
    signature = NORTH.sign((folder / MANIFEST).read_bytes())
    add_signature(folder, signature)
    (folder / signature.file).rename(folder / "signatures" / "north.json")
    assert problems(folder) == {("signatures/north.json", Kind.SIGNATURE)}


def test_a_signature_file_reads_back():
    signature = NORTH.sign(b"manifest")
    assert Signature.from_bytes(signature.to_bytes(), signature.file) == signature
    assert strict_json(signature.to_bytes(), "x")["role"] == "party"
