"""Arithmetic of rows, one entry at a time."""

import math

import numpy as np

Rows = list[list[float]]


def lengths(rows: np.ndarray) -> list[float]:
    return [math.hypot(*row) for row in rows.tolist()]


def unit_rows(rows: np.ndarray, norm_floor: float) -> Rows:
    return [
        [entry / max(length, norm_floor) for entry in row]
        for row, length in zip(rows.tolist(), lengths(rows), strict=True)
    ]


def dot(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def cosines(left: np.ndarray, right: np.ndarray, norm_floor: float = 1e-12) -> Rows:
    return [[dot(a, b) for b in unit_rows(right, norm_floor)] for a in unit_rows(left, norm_floor)]


def transposed(matrix: Rows) -> Rows:
    return [list(column) for column in zip(*matrix, strict=True)]


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]


def cross_entropy(logits: list[float], target: int) -> float:
    top = max(logits)
    return top - logits[target] + math.log(math.fsum(math.exp(logit - top) for logit in logits))
