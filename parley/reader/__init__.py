"""A release in a reader's hands."""
