"""Starts the command `parley`: signals first, then everything that takes time to import."""

from __future__ import annotations

from parley.cli import interrupts


def run() -> None:
    """Run the command; the console script's entry point."""
    interrupts.take_over()
    from parley.cli import main as cli

    cli.run()


if __name__ == "__main__":
    run()
