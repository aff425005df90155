"""Speed and utility, each against a peer in the same run: `python -m benchmarks.NAME`."""
