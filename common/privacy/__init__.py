"""Randomness, noise, sensitivities, budgets and the accountant."""
