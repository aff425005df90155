"""How a party reaches the curator: it dials out; no connection comes in."""
