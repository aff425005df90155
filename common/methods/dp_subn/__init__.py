"""DP-SUBN [Su16]: five phases, and the decisions between them."""
