"""Bayesian networks and PrivBayes."""
