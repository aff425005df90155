"""What Ctrl-C and SIGTERM do to a command, from its first moment to its last.

| moment | what a signal does |
|---|---|
| the command is being imported | ends the process: there is nothing to clean up yet |
| it runs | raises KeyboardInterrupt, so that it cleans up; an import under way is finished first |
| it has ended | ends the process; at the very end it is ignored, as the exit code is known |

The line on standard error and the exit code are the same everywhere. A service replaces these
handlers while it serves (`common.service.process.stopping_on_signals`).

Nothing that takes time is imported here: this is the first thing to run.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

EXIT_CODE = 130
WORDS = "the command was interrupted, and nothing was left half-written"
_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_S = 0.02
_IMPORTING = "<frozen importlib._bootstrap>"
_Handler = Callable[[int, FrameType | None], None]


def take_over() -> None:
    """Handle the signals of this process from now on; one that is ignored (nohup, `&`) stays so."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    signal.signal(signal.SIGALRM, _interrupt)  # only `_interrupt` itself asks for it
    sys.unraisablehook = _report
    atexit.register(_replace, _leave, signal.SIG_IGN)  # registered first, so it is called last


def let_clean_up() -> None:
    """Interrupt the command from now on, instead of ending the process."""
    _replace(_leave, _interrupt)


def leave_at_once() -> None:
    """End the process from now on: the command has cleaned up."""
    _replace(_interrupt, _leave)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _replace(old: _Handler, new: _Handler | signal.Handlers) -> None:
    """Replace our handler where it is in use; without `take_over` it is nowhere."""
    for number in _NUMBERS:
        if signal.getsignal(number) is old:
            signal.signal(number, new)


def _leave(number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"error: {WORDS}\n".encode())
    os._exit(EXIT_CODE)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, but not inside an import: libraries turn that into errors of their own, or lose it."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _report(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt again where a destructor or a callback swallowed it; report the rest as usual."""
    if unraisable.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(unraisable)
