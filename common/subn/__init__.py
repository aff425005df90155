"""DP-SUBN's decisions as pure functions."""
