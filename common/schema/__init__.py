"""Public domains: what a table may contain, agreed before any data is touched."""
