"""How the answers of steps come about: one module each. No other place tells steps apart."""
