"""`python -m parley` is the command `parley`."""

from __future__ import annotations

from parley.cli import run

run()
