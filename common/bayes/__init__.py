"""Bayesian networks and PrivBayes.

`fit_privbayes` makes a `PrivBayesModel` of the rows of one table. Its parts are pure functions that
serve other methods as well: `conditionals_from_marginals` turns noisy tables, wherever they come
from, into conditionals; `consistent_tables` makes such tables agree; `sample` draws rows.
"""

from common.bayes.conditionals import conditionals_from_marginals, needed_families
from common.bayes.consistency import consistent_tables
from common.bayes.domain import Domain, View
from common.bayes.network import Network, Pair
from common.bayes.privbayes.constraints import Constraints
from common.bayes.privbayes.decisions import Encoding, Plan, PrivBayesOptions, make_plan
from common.bayes.privbayes.mechanism import fit_privbayes
from common.bayes.privbayes.model import PrivBayesModel
from common.bayes.privbayes.scores import Score
from common.bayes.sampling import Sampler, sample

__all__ = [
    "Constraints",
    "Domain",
    "Encoding",
    "Network",
    "Pair",
    "Plan",
    "PrivBayesModel",
    "PrivBayesOptions",
    "Sampler",
    "Score",
    "View",
    "conditionals_from_marginals",
    "consistent_tables",
    "fit_privbayes",
    "make_plan",
    "needed_families",
    "sample",
]
