"""Pictures, encoder and measures of representations once more: NumPy, plain loops, float64, no JAX.

Nothing here is shared with `contrastive_jax`.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from contrastive_jax.exercises.oracles import dot, unit_rows
from contrastive_jax.exercises.oracles import feature_spread as feature_spread
from contrastive_jax.exercises.oracles import mean_cosine as mean_cosine


def pixels(kind: int, row: int, column: int) -> set[tuple[int, int]]:
    if kind == 0:
        return {(row, column + i) for i in range(6)}
    if kind == 1:
        return {(row + i, column) for i in range(6)}
    return {(row + i, column + i) for i in range(6)}


def all_pictures() -> Iterator[tuple[int, np.ndarray]]:
    """The 192 pictures there are, each with its kind."""
    for kind, row, column in itertools.product(range(3), range(2, 10), range(2, 10)):
        image = np.zeros((16, 16))
        for place in pixels(kind, row, column):
            image[place] = 1.0
        yield kind, image


def rolled(image: np.ndarray, down: int, right: int) -> np.ndarray:
    height, width = image.shape
    result = np.empty_like(image)
    for row, column in np.ndindex(height, width):
        result[(row + down) % height, (column + right) % width] = image[row, column]
    return result


def normal_quantile(share: float) -> float:
    """By halving an interval until it is as small as it gets."""
    low, high = -10.0, 10.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(-middle / math.sqrt(2)) / 2 < share else (low, middle)
    return (low + high) / 2


def convolution(weight: np.ndarray, bias: np.ndarray, x: np.ndarray) -> np.ndarray:
    """3x3, stride 2, a border of one zero; x [count, height, width, in], weight [out, in, 3, 3]."""
    count, height, width, _ = x.shape
    result = np.zeros((count, (height + 1) // 2, (width + 1) // 2, len(weight)))
    for n, row, column, out in np.ndindex(*result.shape):
        total = bias[out]
        for i, j in itertools.product(range(3), range(3)):
            y, z = 2 * row + i - 1, 2 * column + j - 1
            if 0 <= y < height and 0 <= z < width:
                total += dot(weight[out, :, i, j].tolist(), x[n, y, z].tolist())
        result[n, row, column, out] = total
    return result


def linear(weight: np.ndarray, bias: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.array([[dot(w, row) + b for w, b in zip(weight.tolist(), bias, strict=True)] for row in rows.tolist()])


def encode(layers: list[tuple[np.ndarray, np.ndarray]], images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and projection."""
    x = images[..., None]
    for layer in layers[:2]:
        x = np.maximum(convolution(*layer, x), 0)
    features = x.reshape(len(x), -1, x.shape[-1]).sum(axis=1) / (x.shape[1] * x.shape[2])
    return features, linear(*layers[3], np.maximum(linear(*layers[2], features), 0))


def alignment(left: np.ndarray, right: np.ndarray, alpha: float) -> float:
    pairs = zip(unit_rows(left, 1e-12), unit_rows(right, 1e-12), strict=True)
    return math.fsum(math.dist(a, b) ** alpha for a, b in pairs) / len(left)


def uniformity(rows: np.ndarray, t: float) -> float:
    pairs = list(itertools.combinations(unit_rows(rows, 1e-12), 2))
    return math.log(math.fsum(math.exp(-t * math.dist(a, b) ** 2) for a, b in pairs) / len(pairs))


def hardest_negatives(scores: np.ndarray, negatives: np.ndarray) -> list[float]:
    hardest = []
    for row, wrong in zip(scores.tolist(), negatives.tolist(), strict=True):
        candidates = [score for score, is_wrong in zip(row, wrong, strict=True) if is_wrong]
        hardest.append(math.nan if any(map(math.isnan, candidates)) else max(candidates, default=-math.inf))
    return hardest
