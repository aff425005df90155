"""Forked processes that a test waits for, and not for ever."""

import gc
import os
import signal
import time

SECONDS = 120


def fork():
    """Fork as os.fork does, but the child never collects what it inherited.

    Another test of the same process may have left gRPC's objects behind; in a child, taking them
    apart waits for threads that it does not have.
    """
    child = os.fork()
    if not child:
        gc.freeze()
    return child


def exit_code(child):
    """Return the exit code of a forked child, negative for a signal; end it if it hangs."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"the forked process did not end within {SECONDS} s")
