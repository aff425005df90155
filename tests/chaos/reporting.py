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


def report(violations, repeated_by=""):
    """Print what is wrong, and the command that runs it again."""
    for violation in violations:
        print(violation, file=sys.stderr)  # noqa: T201
    if violations:
        words = shlex.join(sys.argv[1:])
        print(f"{len(violations)} violations; the options were: {words}; {repeated_by}",  # noqa: T201
              file=sys.stderr)  # fmt: skip
