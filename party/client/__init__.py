"""How a party reaches the curator: it dials out, and nobody dials in."""
