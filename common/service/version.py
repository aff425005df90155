"""Which Parley this is."""

from __future__ import annotations

from importlib import metadata


def software() -> str:
    """What we tell the other side we are."""
    try:
        return f"parley {metadata.version('parley')}"
    except metadata.PackageNotFoundError:  # run from a checkout
        return "parley"
