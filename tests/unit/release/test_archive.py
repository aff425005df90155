"""Manifest, signatures and .zip: what is honest is accepted, everything else is refused by name."""

import io
import os
import pickle
import stat
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.release.archive import add_signature, finish, zip_pieces
from common.release.contents import FileError, FolderContents, open_release, read_json
from common.release.integrity import Fault, check_bytes
from common.release.manifest import MANIFEST
from tests.unit.release.conftest import CURATOR, METHOD, NORTH, STUDY, problems


def zipped(folder, target=None, added=None):
    target = folder.parent / "release.zip" if target is None else target
    with target.open("wb") as stream:
        stream.writelines(zip_pieces(FolderContents(folder), added=added or {}))
    return target


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\n")


def test_a_sealed_folder_and_its_zip_are_without_problems_and_name_their_signer(folder):
    for path in (folder, zipped(folder)):
        assert problems(path) == set()
        with open_release(path) as contents:
            found = check_bytes(contents)
        assert [(each.role, each.name) for each in found.signatures] == [("curator", "hub")]
        assert found.manifest.study == STUDY.hex()
        assert set(found.manifest.files) == {"synthetic.csv", "privacy.json", "synthetic.parquet"}


def test_the_same_release_gives_the_same_zip(folder, tmp_path):
    first = zipped(folder).read_bytes()
    os.utime(folder / "synthetic.csv", (1, 1))
    assert zipped(folder, tmp_path / "again.zip").read_bytes() == first
    with open_release(folder.parent / "release.zip") as contents:
        copied = io.BytesIO()
        copied.writelines(zip_pieces(contents))
    assert copied.getvalue() == first, "a .zip of a .zip is that .zip"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("change", "file", "kind"),
    [
        (lambda f: (f / "synthetic.csv").write_text("a,b\n"), "synthetic.csv", "changed"),
        (lambda f: (f / "privacy.json").write_text("[]\n"), "privacy.json", "changed"),
        (lambda f: (f / "privacy.json").unlink(), "privacy.json", "missing"),
        (lambda f: (f / "more.txt").write_text("x"), "more.txt", "extra"),
        (lambda f: lengthen(f / MANIFEST), None, "signature"),
        (lambda f: add_signature(f, NORTH.sign(b"another manifest")), None, "signature"),
    ],
)  # fmt: skip
def test_whatever_is_changed_is_named(folder, change, file, kind, packed):
    change(folder)
    path = zipped(folder) if packed else folder
    found = problems(path)
    assert [each[1] for each in found] == [Fault(kind)]
    ((name, _),) = found
    assert name == file if file else name.startswith("signatures/")


def test_a_signature_that_is_being_written_is_no_part_of_a_release(folder):
    half = folder / "signatures" / ".north.json.x1y2"
    half.write_bytes(b"{")
    contents = FolderContents(folder)
    half.unlink()  # it has its own name now
    assert zipfile.ZipFile(io.BytesIO(b"".join(zip_pieces(contents)))).testzip() is None
    (folder / ".hidden").write_bytes(b"")
    assert ".hidden" in FolderContents(folder).sizes(), "elsewhere nothing is overlooked"


def test_links_and_folders_in_a_release_folder_are_refused(folder):
    (folder / "link").symlink_to(folder / "privacy.json")
    with pytest.raises(InputError, match="link: it is a link"):
        problems(folder)
    (folder / "link").unlink()
    (folder / "more").mkdir()
    with pytest.raises(InputError, match="more: it is not a file"):
        problems(folder)


def hostile(tmp_path, *entries):
    path = tmp_path / "hostile.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in entries:
            archive.writestr(info, data)
    return path


def link_entry():
    info = zipfile.ZipInfo("link")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("../escape", "not a name"),
        ("/absolute", "not a name"),
        ("a/b", "not a name"),
        ("signatures/../x", "not a name"),
        (".hidden", "not a name"),
        ("C:evil", "not a name"),
        ("back\\slash", "not a name"),
        ("folder/", "folder that no release has"),
        (link_entry(), "link or a device"),
    ],
)
def test_a_zip_with_a_hostile_name_is_refused_before_it_is_read(tmp_path, entry, why):
    path = hostile(tmp_path, (entry, "x" if not str(entry).endswith("/") else ""))
    with pytest.raises(InputError, match=why):
        problems(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a.txt", "a.txt"), ("a.txt", "A.TXT")])
def test_a_zip_with_a_file_twice_is_refused(tmp_path, names):
    path = hostile(tmp_path, *((name, "x") for name in names))
    with pytest.raises(InputError, match="there twice"):
        problems(path)


def test_a_zip_bomb_is_refused_by_its_header(tmp_path):
    path = hostile(tmp_path, ("zeros", bytes(70 << 20)))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="would unpack to"):
        problems(path)


def test_a_file_that_unpacks_to_more_than_it_says_is_refused(folder):
    path = zipped(folder)
    data = bytearray(path.read_bytes())
    start = data.rindex(b"PK\x01\x02", 0, data.rindex(b"synthetic.csv"))
    struct.pack_into("<I", data, start + 24, 10)  # the size in the central directory
    path.write_bytes(bytes(data))
    assert ("synthetic.csv", Fault.CHANGED) in problems(path)


def test_a_zip_whose_entries_overlap_is_refused(tmp_path):
    path = hostile(tmp_path, ("a.txt", os.urandom(500)), ("b.txt", os.urandom(500)))
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, second + 42, 0)  # both point at the first
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="overlaps"):
        problems(path)


def between_the_entries(data):
    """Bytes before the directory, which is moved accordingly."""
    start = data.index(b"PK\x01\x02")
    end = bytearray(data[data.rindex(b"PK\x05\x06") :])
    struct.pack_into("<I", end, 16, start + 5)
    return data[:start] + b"extra" + data[start : data.rindex(b"PK\x05\x06")] + bytes(end)


def with_a_comment(data):
    end = data.rindex(b"PK\x05\x06")
    return data[: end + 20] + struct.pack("<H", 5) + b"extra"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: data + b"extra", "after the end"),
        (lambda data: data + bytes(22), "after the end"),
        (lambda data: data + data, "before the first entry"),
        (lambda data: b"extra" + data, "before the first entry"),
        (with_a_comment, "after the end"),
        (between_the_entries, "leaves a gap"),
    ],
)
def test_a_zip_with_bytes_that_belong_to_no_entry_is_refused(folder, spoil, why):
    path = zipped(folder)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError, match=why):
        problems(path)


def test_a_zip_that_another_tool_made_is_read(folder, tmp_path):
    """Sizes in the headers, not behind the entries."""
    path = tmp_path / "by-hand.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    assert problems(path) == set()


def test_an_encrypted_entry_and_an_odd_compression_are_refused(tmp_path):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(InputError, match="neither stored nor deflated"):
        problems(path)
    path = hostile(tmp_path, ("a.txt", "x"))
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="encrypted"):
        problems(path)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_byte_of_a_zip_can_be_changed_unnoticed_but_in_its_wrapping(
    tmp_path_factory, place, flip
):
    """A changed byte is a refusal, a problem, or nothing that a reader of the release sees."""
    folder = tmp_path_factory.mktemp("flip") / "release"
    folder.mkdir()
    (folder / "data.csv").write_text("a,b\n1,2\n3,4\n")
    (folder / "report.html").write_text("<p>")
    finish(folder, study=None, method=METHOD, date="2026-11-17", signer=CURATOR)
    path = zipped(folder)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= flip
    path.write_bytes(bytes(data))
    try:
        with open_release(path) as contents:
            if check_bytes(contents).problems:
                return
            with contents.open("data.csv") as stream:
                assert stream.read() == (folder / "data.csv").read_bytes()
    except InputError:
        pass


def test_a_cut_zip_and_no_zip_at_all_are_refused(folder, tmp_path):
    path = zipped(folder)
    path.write_bytes(path.read_bytes()[:-30])
    for each in (path, folder / "privacy.json", tmp_path / "nowhere"):
        with pytest.raises(InputError, match="cannot be read"):
            problems(each)


def test_a_zip_has_one_folder_inside_and_one_without_is_read_as_well(folder, tmp_path):
    """An unpacked .zip must not spill its files; other tools pack without a folder."""
    bundled, loose = zipped(folder), tmp_path / "loose.zip"
    with zipfile.ZipFile(loose, "w") as archive:
        for name in FolderContents(folder).sizes():
            archive.write(folder / name, name)
    with zipfile.ZipFile(bundled) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"release"}
    with open_release(bundled) as one, open_release(loose) as other:
        assert one.sizes() == other.sizes()
        for name in one.sizes():
            with one.open(name) as here, other.open(name) as there:
                assert here.read() == there.read()


def test_an_error_of_a_file_knows_its_release_its_file_and_the_reason(tmp_path):
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text("[")
    outer, inner = FolderContents(tmp_path / "outer"), FolderContents(tmp_path / "inner")
    with pytest.raises(FileError) as found:
        read_json(outer, "a.json")
    assert (found.value.file, found.value.why[:8]) == ("a.json", "not JSON")
    assert str(found.value).startswith(f"{tmp_path / 'outer'}: a.json: not JSON")
    assert pickle.loads(pickle.dumps(found.value)).file == "a.json"  # noqa: S301  # our own
    with pytest.raises(FileError) as found, outer.blaming("prior.zip"):
        read_json(inner, "a.json")
    assert found.value.file == "prior.zip"
    assert f"{tmp_path / 'inner'}: a.json" in found.value.why
    with pytest.raises(FileError) as found, outer.blaming("b.toml"):
        raise InputError("b.toml: no name")
    assert (found.value.file, found.value.why) == ("b.toml", "no name")
