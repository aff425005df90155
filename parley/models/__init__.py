"""Models of one owner's table, and their rows drawn on Spark."""
