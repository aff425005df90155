"""A range release as a file that answers queries without the data.

A zip archive, as numpy's npz files are, so both tools open it: `release.json` says what it is (with
the schema inside), `cells.npy` holds the noisy counts. The archive carries a checksum of each. It
is written beside its name and moved there when complete, so a reader never sees half of it. The
ranges.zip of a release has one more member, `parley.json`, with the privacy statement.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from common.files import whole_file
from common.schema import Schema
from common.wavelet.decisions import MAX_CELLS, METHODS, WaveletDecisions, axes_of, make_plan
from common.wavelet.noisy_matrix import NoisyMatrix

FORMAT = "parley range release"
VERSION = 1
_ABOUT, _CELLS, _STATED = "release.json", "cells.npy", "parley.json"
_READ_BYTES = 1 << 20
_LARGEST_ABOUT = 1 << 26  # a schema of every value of every attribute stays far below


def save(
    release: NoisyMatrix, path: Path | str, stated: Mapping[str, object] | None = None
) -> None:
    """Write a release to a file; an existing file is replaced in one step or not at all.

    `stated` is the content of parley.json, if it shall have one.
    """
    about = {
        "format": FORMAT,
        "version": VERSION,
        "method": release.plan.method,
        "epsilon": str(release.plan.epsilon),
        "untransformed": [
            name
            for name, axis in zip(release.schema.names, release.plan.axes, strict=True)
            if axis.kind == "untransformed"
        ],
        "noise_scale": str(release.plan.scale),
        "rows": release.rows,
        "private": release.private,
        "schema": release.schema.to_toml(),
    }
    with whole_file(Path(path)) as scratch, zipfile.ZipFile(scratch, "w") as archive:
        # Members have no time of day: the same release gives the same bytes.
        archive.writestr(zipfile.ZipInfo(_ABOUT), json.dumps(about, indent=2) + "\n")
        with archive.open(zipfile.ZipInfo(_CELLS), "w", force_zip64=True) as member:
            np.lib.format.write_array(member, release.cells, allow_pickle=False)
        if stated is not None:
            archive.writestr(zipfile.ZipInfo(_STATED), json.dumps(stated, indent=2))


def read_stated(path: Path | str) -> dict[str, Any]:
    """Read the parley.json of a range release that `load` could read."""
    try:
        with zipfile.ZipFile(path) as archive:
            stated = json.loads(archive.read(_STATED))
        return dict(stated)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {_STATED} is missing or damaged: {error!r}") from None


def load(path: Path | str, *, max_cells: int = MAX_CELLS) -> NoisyMatrix:
    """Read a release; raise InputError if it is damaged, or of another version of the format."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = _about(archive, path)
            schema = Schema.from_toml(_field(about, "schema", str, path), where=f"{path}: schema")
            plan = _plan(about, schema, path)
            plan.check_size(schema.names, max_cells)
            cells = _cells(archive, plan, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise InputError(
            f"{path}: not a release, or damaged or cut short ({error}). Copy or make it again"
        ) from None
    rows = _field(about, "rows", int, path)
    return NoisyMatrix(schema, plan, cells, rows, _field(about, "private", bool, path))


def _about(archive: zipfile.ZipFile, path: Path | str) -> dict[str, Any]:
    """Read what the file says it is, of a known format and version."""
    if archive.getinfo(_ABOUT).file_size > _LARGEST_ABOUT:
        raise InputError(f"{path}: {_ABOUT} is too long to be a release's")
    try:
        about = json.loads(archive.read(_ABOUT))
    except ValueError as error:
        raise InputError(f"{path}: {_ABOUT} is not JSON ({error})") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f"{path}: not a {FORMAT}")
    if about.get("version") != VERSION:
        raise InputError(
            f"{path}: version {about.get('version')} of the format. This program reads {VERSION}"
        )
    return about


def _field(about: dict[str, Any], name: str, kind: type, path: Path | str) -> Any:  # noqa: ANN401
    value = about.get(name)
    if type(value) is not kind:
        raise InputError(f"{path}: {name!r} in {_ABOUT} is missing or of the wrong type")
    return value


def _plan(about: dict[str, Any], schema: Schema, path: Path | str) -> WaveletDecisions:
    """Make the plan that made the cells, from public facts."""
    try:
        epsilon = Fraction(_field(about, "epsilon", str, path))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{path}: 'epsilon' in {_ABOUT} is not a number") from None
    method = _field(about, "method", str, path)
    if method not in METHODS:
        raise InputError(f"{path}: unknown method {method!r}")
    alone = [schema.position(str(name)) for name in _field(about, "untransformed", list, path)]
    plan = make_plan(axes_of(schema), epsilon, method, alone)
    if _field(about, "noise_scale", str, path) != str(plan.scale):
        raise InputError(f"{path}: 'noise_scale' in {_ABOUT} does not follow from the rest")
    return plan


def _cells(
    archive: zipfile.ZipFile, plan: WaveletDecisions, path: Path | str
) -> NDArray[np.float64]:
    """Read the cells, if they are what the plan calls for; never allocate more."""
    with archive.open(_CELLS) as member:
        try:
            version = np.lib.format.read_magic(member)
            if version != (1, 0):
                raise ValueError(f"array format {version}")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        except ValueError as error:
            raise InputError(f"{path}: {_CELLS} is not an array ({error})") from None
        if shape != plan.stored_shape or fortran or dtype != np.dtype("<f8"):
            raise InputError(f"{path}: {_CELLS} has shape {shape}, not {plan.stored_shape}")
        cells = np.empty(shape, dtype=dtype)
        octets = cells.reshape(-1).view(np.uint8)
        for start in range(0, len(octets), _READ_BYTES):
            part = octets[start : start + _READ_BYTES]
            read = member.read(len(part))
            if len(read) < len(part):
                raise EOFError(f"{_CELLS} ends early")
            part[:] = np.frombuffer(read, dtype=np.uint8)
        if member.read(1):  # reading to the end also settles the checksum
            raise InputError(f"{path}: {_CELLS} is longer than it says")
    if not np.isfinite(cells).all():
        raise InputError(f"{path}: {_CELLS} holds something that is not a number")
    return cells
