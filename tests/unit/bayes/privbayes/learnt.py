"""Small tables, and what a network is learnt from."""

import numpy as np

from common.bayes.privbayes.learning import learn_binary_network
from common.bayes.privbayes.scores import Score, Scoring
from common.marginals import BinarySubsets
from common.schema.codes import Codes


def chain(width, rows=4000, seed=5):
    """Binary attributes, each a noisy copy of a random earlier one."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, 2, rows)]
    for j in range(1, width):
        flip = generator.random(rows) < generator.uniform(0.05, 0.4)
        columns.append(columns[generator.integers(0, j)] ^ flip)
    return Codes.from_columns(columns, [2] * width)


def select_best(scores, *, sensitivity, score_error):
    """The largest score, without any privacy: the papers' noise-free reference."""
    return int(np.argmax(scores))


def learn(codes, degree, *, root=0, select=select_best, score=Score.MUTUAL_INFORMATION, **options):
    return learn_binary_network(
        BinarySubsets(codes, codes.width).tables,
        Scoring(score, codes.rows),
        attributes=codes.width,
        degree=degree,
        root=root,
        select=select,
        **options,
    )


def random_choice(seed):
    generator = np.random.default_rng(seed)
    return lambda scores, **_: int(generator.integers(len(scores)))
