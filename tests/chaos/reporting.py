"""What the two command lines share."""

import contextlib
import os
import shlex
import signal
import sys
import tempfile
from pathlib import Path

# gRPC has a log of its own, on standard error; what it says of killed services is no news.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


@contextlib.contextmanager
def kept_or_temporary(folder):
    """The folder of a run: a new one that is kept, or one that goes with the run.

    SIGTERM ends the run as Ctrl-C does, so that processes are ended and disks unmounted.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if folder is not None:
        folder.mkdir(parents=True)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="parley-chaos-") as temporary:
        yield Path(temporary)


def report(violations, seed=None):
    """Print what is wrong, and how to run it again."""
    for violation in violations:
        print(violation, file=sys.stderr)  # noqa: T201
    if violations:
        again = [*sys.argv[1:], *([] if seed is None else ["--seed", str(seed)])]
        print(f"violations: {len(violations)}; run again: {shlex.join(again)}", file=sys.stderr)  # noqa: T201
