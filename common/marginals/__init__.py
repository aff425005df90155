"""Counting: integer marginals of encoded rows, additive over chunks of rows."""
