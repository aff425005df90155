"""The manifest and its signatures: a damaged or edited file is refused."""

import io
import json

import pytest

from common.crypto.identities.identity import Identity
from common.errors import InputError, OtherVersionError
from common.privacy.randomness import SeededRandomSource
from common.release.archive import add_signature
from common.release.integrity import Fault
from common.release.manifest import (
    MANIFEST,
    PAGES,
    FileEntry,
    Manifest,
    Signature,
    Signer,
    SignerRole,
    pages_bytes,
    sha256_of,
    strict_json,
)
from tests.harness.vectors import negative
from tests.unit.release.conftest import CURATOR, METHOD, NORTH, problems


@pytest.mark.parametrize("vector", negative("manifests"))
def test_a_bad_manifest_is_refused(vector):
    with pytest.raises(InputError, match=MANIFEST):
        Manifest.from_bytes(vector["text"].encode())


@pytest.mark.parametrize("text", [b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_manifest_is_refused(folder, text):
    (folder / MANIFEST).write_bytes(text)
    with pytest.raises(InputError, match=MANIFEST):
        problems(folder)


@pytest.mark.parametrize("method", [METHOD, None], ids=["version 2", "version 1"])
def test_a_good_manifest_comes_back(method):
    files = {"a": FileEntry("0" * 64, 1)}
    good = Manifest(files=files, study=None, date="2026-11-17", versions={}, method=method)
    assert Manifest.from_bytes(good.to_bytes()) == good
    assert good.lists_pages == (method is None)


def test_a_manifest_of_a_later_format_names_the_version_to_use():
    text = {"format": "parley release manifest", "version": 3, "versions": {"parley": "9.1"}}
    with pytest.raises(OtherVersionError, match=r"Use parley '9\.1'"):
        Manifest.from_bytes(json.dumps(text).encode())


@pytest.mark.parametrize("change", [{"name": ""}, {"version": 0}, {"version": "1"}, {"more": 1}])
def test_a_method_is_a_name_and_a_version(folder, change):
    document = json.loads((folder / MANIFEST).read_text())
    document["method"] |= change
    with pytest.raises(InputError, match="method"):
        Manifest.from_bytes(json.dumps(document).encode())


def test_the_maker_signs_the_pages_and_a_party_does_not(folder):
    add_signature(folder, NORTH.sign((folder / MANIFEST).read_bytes()))
    page = folder / "report.html"
    page.write_text("<script>")
    assert problems(folder) == {("report.html", Fault.CHANGED)}
    with page.open("rb") as stream:
        (folder / PAGES).write_bytes(pages_bytes({page.name: sha256_of(stream)}))
    assert problems(folder) == {(PAGES, Fault.SIGNATURE)}
    (folder / CURATOR.sign(b"").file).unlink()
    assert problems(folder) == set(), "a party's signature is not of the pages"
    (folder / PAGES).write_text("{}")
    assert problems(folder) == {(PAGES, Fault.CHANGED), ("report.html", Fault.EXTRA)}
    (folder / PAGES).unlink()
    assert (PAGES, Fault.MISSING) in problems(folder)


def test_a_maker_that_signs_the_manifest_alone_has_not_signed_the_pages(folder):
    add_signature(folder, CURATOR.sign((folder / MANIFEST).read_bytes()))
    assert problems(folder) == {(PAGES, Fault.SIGNATURE)}


def test_a_partys_signature_of_pages_is_refused(folder):
    signature = NORTH.sign((folder / MANIFEST).read_bytes(), (folder / PAGES).read_bytes())
    add_signature(folder, signature)
    assert problems(folder) == {(signature.file, Fault.SIGNATURE)}


def test_hashing_stops_where_the_manifest_says_a_file_ends():
    assert sha256_of(io.BytesIO(bytes(10 << 20)), most=5).size <= 1 << 20


def test_a_second_maker_is_refused_and_parties_are_welcome(folder):
    manifest = (folder / MANIFEST).read_bytes()
    add_signature(folder, NORTH.sign(manifest))
    assert problems(folder) == set()
    other = Signer(
        role=SignerRole.OWNER, name="me", identity=Identity.generate(SeededRandomSource("o"))
    )
    add_signature(folder, other.sign(manifest, (folder / PAGES).read_bytes()))
    assert {kind for _, kind in problems(folder)} == {Fault.SIGNATURE}


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
        {"version": 2, "pages": "0" * 64},
        {"pages": 5},
        {"more": 1},
        {"name": "\x1b[2J"},
    ],
)
def test_a_signature_file_that_was_edited_is_wrong(folder, change):
    signature = NORTH.sign((folder / MANIFEST).read_bytes())
    add_signature(folder, signature)
    path = folder / signature.file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert problems(folder) == {(signature.file, Fault.SIGNATURE)}


def test_a_signature_under_another_file_name_is_wrong(folder):
    signature = NORTH.sign((folder / MANIFEST).read_bytes())
    add_signature(folder, signature)
    (folder / signature.file).rename(folder / "signatures" / "north.json")
    assert problems(folder) == {("signatures/north.json", Fault.SIGNATURE)}


def test_a_signature_file_reads_back():
    both = CURATOR.sign(b"manifest", b"pages")
    assert Signature.from_bytes(both.to_bytes(), both.file) == both
    signature = NORTH.sign(b"manifest")
    assert Signature.from_bytes(signature.to_bytes(), signature.file) == signature
    assert strict_json(signature.to_bytes(), "x")["role"] == "party"
