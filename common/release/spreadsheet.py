"""A copy of a release's table for spreadsheets, in which no cell is a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from common.errors import InputError
from common.release import folder as release
from common.release.contents import open_release
from common.schema.formulas import harmless


def check_copy(where: Path, target: Path) -> None:
    """Refuse a place where the copy must not go; call it before the release is looked at."""
    release.check_new(target)
    if where.absolute() in target.absolute().parents:
        raise InputError(f"{target}: in a release there are only its own files; name another place")


def write_safe_copy(where: Path, target: Path) -> None:
    """Write the table of a verified release once more, with formulas as text.

    A Parquet table is refused: there every cell has a type.
    """
    name = release.table_name("csv")
    with open_release(where) as contents:
        if name not in contents.sizes():
            raise InputError(f"{where}: has no {name}. A Parquet file needs no such copy")
        with contents.open(name) as source, release.new_file(target) as scratch:
            rows = csv.reader(io.TextIOWrapper(source, encoding="utf-8", newline=""))
            with scratch.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(map(harmless, row) for row in rows)
