"""A service whose wall clock is set by a file: `python -m tests.chaos.service FILE curator serve`.

The file has the seconds by which the clock is wrong. What TLS itself thinks of the time is the
machine's business; certificates are looked at by the service's clock in every call.
"""

import datetime as dt
import sys
from pathlib import Path

from common.service import process
from parley import __main__ as command


def wrong_clock(file, right=process.system_clock):
    """Return a clock that is wrong by what the file says, and right without a file."""

    def clock():
        try:
            return right() + dt.timedelta(seconds=float(file.read_text()))
        except (OSError, ValueError):  # it is being written
            return right()

    return clock


if __name__ == "__main__":
    process.system_clock = wrong_clock(Path(sys.argv.pop(1)))  # before any command is imported
    command.run()
