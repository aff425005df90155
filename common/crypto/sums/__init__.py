"""Secure sums: one plan, and three ways to answer it (ring, masked, clear)."""
