"""The losses and metrics once more: float64 NumPy inputs, plain scalar loops, no JAX and no cleverness.

Nothing here is shared with `contrastive_jax`. These functions are tested themselves, against values from other sources.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Rows = list[list[float]]


def related_rows(seed: int, size: int = 4, width: int = 3, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Example input of a loss: two sides whose rows belong together but are not equal."""
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(size, width))
    return left.astype(dtype), (left + 0.3 * rng.normal(size=(size, width))).astype(dtype)


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


def softmax(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(logit - top) for logit in logits]
    return [weight / math.fsum(weights) for weight in weights]


def cross_entropy(logits: list[float], target: int) -> float:
    top = max(logits)
    return top - logits[target] + math.log(math.fsum(math.exp(logit - top) for logit in logits))


def transposed(matrix: Rows) -> Rows:
    return [list(column) for column in zip(*matrix, strict=True)]


def paired_contrastive(left: np.ndarray, right: np.ndarray, temperature: float, norm_floor: float = 1e-6) -> float:
    scores = [[cosine / temperature for cosine in row] for row in cosines(left, right, norm_floor)]
    batch = len(scores)
    rows = math.fsum(cross_entropy(scores[i], i) for i in range(batch))
    columns = math.fsum(cross_entropy(transposed(scores)[i], i) for i in range(batch))
    return (rows + columns) / (2 * batch)


class Gradients(NamedTuple):
    """By both inputs, and by the temperature or the log scale."""

    left: np.ndarray
    right: np.ndarray
    parameter: np.ndarray


def paired_gradients(left: np.ndarray, right: np.ndarray, temperature: float, norm_floor: float = 1e-6) -> Gradients:
    """Closed form: with d the slope by the scores, the gradient by a unit row of `left` is sum_j d_ij right_j / t."""
    cosine = cosines(left, right, norm_floor)
    batch = len(cosine)
    scores = [[value / temperature for value in row] for row in cosine]
    by_row = [softmax(row) for row in scores]
    by_column = transposed([softmax(column) for column in transposed(scores)])
    d = [[(by_row[i][j] + by_column[i][j] - 2.0 * (i == j)) / (2 * batch) for j in range(batch)] for i in range(batch)]
    by_temperature = -math.fsum(d[i][j] * cosine[i][j] for i in range(batch) for j in range(batch))
    return Gradients(
        left=_through_normalisation(left, _combined(d, unit_rows(right, norm_floor), temperature), norm_floor),
        right=_through_normalisation(
            right, _combined(transposed(d), unit_rows(left, norm_floor), temperature), norm_floor
        ),
        parameter=np.array(by_temperature / temperature**2),
    )


def partner(anchor: int, batch: int) -> int:
    return anchor + batch if anchor < batch else anchor - batch


def nt_xent(view1: np.ndarray, view2: np.ndarray, temperature: float, norm_floor: float = 1e-12) -> float:
    batch = len(view1)
    rows = np.concatenate([view1, view2])
    cosine = cosines(rows, rows, norm_floor)
    total = 0.0
    for anchor in range(2 * batch):
        candidates = [row for row in range(2 * batch) if row != anchor]
        logits = [cosine[anchor][row] / temperature for row in candidates]
        total += cross_entropy(logits, candidates.index(partner(anchor, batch)))
    return total / (2 * batch)


def nt_xent_gradients(view1: np.ndarray, view2: np.ndarray, temperature: float, norm_floor: float = 1e-12) -> Gradients:
    """Closed form: a score of rows i and j moves both, so the slope by a unit row is sum_j (d_ij + d_ji) row_j / t."""
    batch = len(view1)
    rows = np.concatenate([view1, view2])
    cosine = cosines(rows, rows, norm_floor)
    d = [[0.0] * (2 * batch) for _ in range(2 * batch)]
    for anchor in range(2 * batch):
        candidates = [row for row in range(2 * batch) if row != anchor]
        for row, share in zip(
            candidates, softmax([cosine[anchor][row] / temperature for row in candidates]), strict=True
        ):
            d[anchor][row] = (share - (row == partner(anchor, batch))) / (2 * batch)
    both = [[d[i][j] + d[j][i] for j in range(2 * batch)] for i in range(2 * batch)]
    by_row = _through_normalisation(rows, _combined(both, unit_rows(rows, norm_floor), temperature), norm_floor)
    by_temperature = -math.fsum(d[i][j] * cosine[i][j] for i in range(2 * batch) for j in range(2 * batch))
    return Gradients(by_row[:batch], by_row[batch:], np.array(by_temperature / temperature**2))


LOG_100 = math.log(100)


def contrastive_logits(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> np.ndarray:
    return np.array(
        [[math.exp(min(logit_scale, LOG_100)) * cosine for cosine in row] for row in cosines(images, texts)]
    )


def clip_loss(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> float:
    return paired_contrastive(images, texts, math.exp(-min(logit_scale, LOG_100)), norm_floor=1e-12)


def clip_gradients(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> Gradients:
    """The temperature is exp(-s), so dL/ds = -t dL/dt; kept at the cap, also where float32 rounds it up, zero above."""
    temperature = math.exp(-min(logit_scale, LOG_100))
    paired = paired_gradients(images, texts, temperature, norm_floor=1e-12)
    kept = logit_scale <= float(np.float32(LOG_100))
    return paired._replace(parameter=-temperature * paired.parameter * kept)


def positive_only(view1: np.ndarray, view2: np.ndarray) -> float:
    pairs = zip(unit_rows(view1, 1e-12), unit_rows(view2, 1e-12), strict=True)
    return -math.fsum(dot(a, b) for a, b in pairs) / len(view1)


def _combined(d: Rows, units: Rows, temperature: float) -> Rows:
    return [
        [math.fsum(d[i][j] * units[j][c] for j in range(len(units))) / temperature for c in range(len(units[0]))]
        for i in range(len(d))
    ]


def _through_normalisation(rows: np.ndarray, by_unit: Rows, norm_floor: float) -> np.ndarray:
    """Derivative of row / max(|row|, floor): below the floor only a division, above it the radial part goes too."""
    gradient = []
    for g, unit, length in zip(by_unit, unit_rows(rows, norm_floor), lengths(rows), strict=True):
        radial = dot(unit, g) if length > norm_floor else 0.0
        gradient.append([(a - radial * u) / max(length, norm_floor) for a, u in zip(g, unit, strict=True)])
    return np.array(gradient)


def centred_difference(function: Callable[[np.ndarray], float], x: np.ndarray, step: float) -> np.ndarray:
    """Gradient of a scalar function by two evaluations per entry; `step` is relative to the largest of its row."""
    steps = np.broadcast_to(step * np.max(np.abs(x), axis=-1, keepdims=True), x.shape)
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += steps[index]
        behind[index] -= steps[index]
        gradient[index] = (function(ahead) - function(behind)) / (2 * steps[index])
    return gradient


def slopes(loss: Callable, left: np.ndarray, right: np.ndarray, temperature: float) -> Gradients:
    """Gradients of any loss of two arrays and a temperature, without a formula and without autodiff."""
    by_temperature = centred_difference(lambda t: loss(left, right, t.item()), np.array([temperature], float), 1e-5)
    return Gradients(
        left=centred_difference(lambda x: loss(x, right, temperature), left, 1e-5),
        right=centred_difference(lambda x: loss(left, x, temperature), right, 1e-5),
        parameter=by_temperature[0],
    )


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
