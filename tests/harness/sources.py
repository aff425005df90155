"""The project's own sources: where they are, and their syntax, read once for all tests."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("common", "curator", "party", "parley")
GENERATED = "common/wire/v1/"


def sources(*packages):
    """Return the paths of all modules that somebody wrote; without names, of all rooms."""
    files = sorted(path for name in packages or ROOMS for path in (ROOT / name).rglob("*.py"))
    relative = [path.relative_to(ROOT).as_posix() for path in files]
    return [path for path in relative if not path.startswith(GENERATED)]


@cache
def parsed(path):
    return ast.parse((ROOT / path).read_text())
