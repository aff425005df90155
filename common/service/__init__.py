"""The parts of a long-running process: database, settings, signals, metrics, web pages."""
