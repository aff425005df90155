"""A page for the curator's operator: what the studies do now. By default it only reads."""
