"""The file of a range release: what is saved answers the same, and damage is refused."""

import json
import zipfile
from fractions import Fraction

import numpy as np
import pytest

from common.errors import InputError
from common.release.range_file import load, save
from tests.unit.wavelet.blocks import (
    CODES,
    ROWS,
    SCHEMA,
    release_of,
)


@pytest.mark.parametrize("method", ["basic", "privelet", "privelet+", "privelet*"])
def test_a_saved_release_answers_the_same(tmp_path, method):
    release = release_of(CODES, method, epsilon="1/3")
    save(release, tmp_path / "r.npz")
    again = load(tmp_path / "r.npz")
    assert np.array_equal(again.cells, release.cells)
    assert (again.rows, again.private, again.schema) == (ROWS, False, SCHEMA)
    assert (again.plan.method, again.plan.epsilon) == (method, Fraction(1, 3))
    queries = ["", "age in 5..60 and sex = Male", "country in Europe"]
    assert np.array_equal(again.counts(queries).values, release.counts(queries).values)
    with np.load(tmp_path / "r.npz") as archive:  # numpy reads it as well
        assert archive["cells"].shape == release.cells.shape


def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_behind(tmp_path):
    release = release_of(CODES)
    save(release, tmp_path / "a.npz")
    save(release, tmp_path / "b.npz")
    save(release, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    release = release_of(CODES)
    target = tmp_path / "r.npz"
    save(release, target)
    before = target.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full_disk)
    with pytest.raises(InputError, match=r"cannot write .*No space"):
        save(release_of(CODES, seed=2), target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot write .*nowhere.*No such file"):
        save(release_of(CODES), tmp_path / "nowhere" / "r.npz")


def test_a_file_cut_short_or_damaged_anywhere_is_refused(tmp_path):
    path = tmp_path / "r.npz"
    save(release_of(CODES), path)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"r\.npz"):
            load(path)
    for place in (60, 300, 3000, len(whole) // 2, len(whole) - 700):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"r\.npz"):
            load(path)


def test_a_missing_file_and_a_foreign_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", cells=np.zeros(3))
    with pytest.raises(InputError, match="not a release"):
        load(tmp_path / "other.npz")


def _rewrite(path, cells=None, **changes):
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("release.json"))
        old = archive.read("cells.npy")
    about.update(changes)
    about = {key: value for key, value in about.items() if value is not None}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("release.json", json.dumps(about))
        with archive.open("cells.npy", "w") as member:
            if cells is None:
                member.write(old)
            else:
                np.lib.format.write_array(member, cells, allow_pickle=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "cake"}, "not a parley range release"),
        ({"version": 2}, "version 2 of the format. This program reads 1"),
        ({"version": None}, "version None"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"epsilon": "zero"}, "'epsilon'"),
        ({"epsilon": "-1"}, "above 0"),
        ({"epsilon": None}, "'epsilon' .* missing"),
        ({"epsilon": "2"}, "'noise_scale' .* does not follow"),
        ({"noise_scale": None}, "'noise_scale' .* missing"),
        ({"rows": "many"}, "'rows'"),
        ({"private": 1}, "'private'"),
        ({"schema": "["}, "schema"),
        ({"untransformed": ["agee"]}, "agee"),
        ({"untransformed": ["age"]}, "'noise_scale'"),
        ({"cells": np.zeros((2, 5, 7))}, "has shape"),
        ({"cells": np.zeros((2, 5, 201), dtype=np.float32)}, "has shape"),
        ({"cells": np.full((2, 5, 201), np.nan)}, "not a number"),
        ({"cells": np.array([object()])}, "has shape"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path, changes, words):
    path = tmp_path / "r.npz"
    save(release_of(CODES), path)
    assert load(path).cells.shape == (2, 5, 201)
    _rewrite(path, **changes)
    with pytest.raises(InputError, match=words):
        load(path)
