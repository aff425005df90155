"""A small file system that a test can fill, and a state that it can lose."""

import contextlib
import subprocess

_KIB = 1024


class NoMountError(Exception):
    """No file system can be mounted here: that takes root."""


@contextlib.contextmanager
def mounted(place, *, size="1m"):
    """Mount a file system of its own on a folder, for the length of a block."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
        capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode:
        raise NoMountError(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def remove_state(path):
    """Remove a state file with what SQLite keeps beside it."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def state_bytes(path):
    """Return all that a state file and the log beside it hold."""
    log = path.with_name(f"{path.name}-wal")
    return path.read_bytes() + (log.read_bytes() if log.exists() else b"")


def fill(place):
    """Leave no room for anything; the file to remove."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (64 * _KIB, _KIB, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return ballast
