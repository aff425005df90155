"""Generate common/wire/v1 from the contract in protos/, or check that it is up to date.

    python protos/generate.py            write the generated code
    python protos/generate.py --check    exit 1 if what is committed is not what would be generated

The path of a .proto file under protos/ is the path of its Python module, so the generated imports
are right as they are. Needs grpcio-tools, in the version of constraints.txt.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
FOLDER = Path("common/wire/v1")
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py")


def generate(target: Path) -> None:
    """Write the generated modules below `target`."""
    contracts = sorted((PROTOS / FOLDER).glob("*.proto"))
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    outcome = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{well_known}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--pyi_out={target}",
            *(str(path) for path in contracts),
        ]
    )
    if outcome:
        raise SystemExit(outcome)


def modules(root: Path) -> dict[str, bytes]:
    """The generated modules below a root, by file name."""
    paths = [path for pattern in GENERATED for path in (root / FOLDER).glob(pattern)]
    return {path.name: path.read_bytes() for path in sorted(paths)}


def main(arguments: list[str] | None = None) -> int:
    """Generate or check; return the exit code."""
    parser = argparse.ArgumentParser(description="Generate common/wire/v1 from protos/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on drift")
    check = parser.parse_args(arguments).check
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh, committed = modules(Path(scratch)), modules(ROOT)
        changed = sorted(
            name for name in fresh | committed if fresh.get(name) != committed.get(name)
        )
        if check:
            if changed:
                sys.stderr.write(
                    f"{FOLDER} is not what protos/ generates: {', '.join(changed)}.\n"
                    "Run `make protos` and commit the result; never edit generated code.\n"
                )
            return int(bool(changed))
        for name in changed:
            if name in fresh:
                shutil.copyfile(Path(scratch) / FOLDER / name, ROOT / FOLDER / name)
            else:
                (ROOT / FOLDER / name).unlink()
        sys.stdout.write(f"{FOLDER}: {', '.join(changed) or 'nothing'} changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
