"""Studies of several owners on one machine: in one process, or as real processes."""
