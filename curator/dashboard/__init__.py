"""A page for the curator's operator: what the studies do now. It reads; nothing else by default."""
