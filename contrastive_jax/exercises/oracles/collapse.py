"""How far a set of rows is from having collapsed."""

import itertools
import math

import numpy as np

from contrastive_jax.exercises.oracles.rows import cosines


def feature_spread(features: np.ndarray) -> float:
    deviations = []
    for column in features.T.tolist():
        mean = math.fsum(column) / len(column)
        deviations.append(math.sqrt(math.fsum((x - mean) ** 2 for x in column) / (len(column) - 1)))
    return math.fsum(deviations) / len(deviations)


def mean_cosine(rows: np.ndarray) -> float:
    table = cosines(rows, rows)
    return math.fsum(table[i][k] for i, k in itertools.permutations(range(len(rows)), 2)) / (
        len(rows) * (len(rows) - 1)
    )
