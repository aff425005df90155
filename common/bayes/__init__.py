"""Bayesian networks and PrivBayes.

`fit_privbayes` makes a `PrivBayesModel` of the rows of one table. Its parts are pure functions that
serve other methods as well: `conditionals_from_marginals` turns noisy tables, wherever they come
from, into conditionals; `consistent_tables` makes tables agree; a `Sampler` draws rows.
"""
