"""Exact sampling: coins, enclosures of real numbers, inversion, blocks of draws."""
