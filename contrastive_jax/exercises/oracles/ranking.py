"""Retrieval with ties, one query at a time."""

import math

import numpy as np

from contrastive_jax.exercises.oracles.rows import transposed


def query_credit(scores: list[float], positive: int, k: int, ties: str) -> float:
    """Credit of one query; NaN anywhere is a miss. A tie puts the positive on any of its places with equal chance."""
    if any(math.isnan(score) for score in scores):
        return 0.0
    others = scores[:positive] + scores[positive + 1 :]
    first_place = sum(score > scores[positive] for score in others)
    last_place = first_place + sum(score == scores[positive] for score in others)
    if ties == "strict":
        return float(last_place < k)
    places = range(first_place, last_place + 1)
    return sum(place < k for place in places) / len(places)


def retrieval_accuracy(scores: np.ndarray, k: int, ties: str) -> tuple[float, float]:
    """Mean credit of the rows, and of the columns."""
    rows = scores.tolist()
    batch = len(rows)
    left_to_right = math.fsum(query_credit(rows[i], i, k, ties) for i in range(batch)) / batch
    right_to_left = math.fsum(query_credit(transposed(rows)[i], i, k, ties) for i in range(batch)) / batch
    return left_to_right, right_to_left
