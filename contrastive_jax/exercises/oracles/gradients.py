"""Gradients of the losses: in closed form, and by differences, which need no formula."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contrastive_jax.exercises.oracles.losses import LOG_100, partner
from contrastive_jax.exercises.oracles.rows import Rows, cosines, dot, lengths, softmax, transposed, unit_rows


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


def nt_xent_gradients(view1: np.ndarray, view2: np.ndarray, temperature: float, norm_floor: float = 1e-12) -> Gradients:
    rows = np.concatenate([view1, view2])
    units = unit_rows(rows, norm_floor)
    by_row = _through_normalisation(rows, nt_xent_row_gradients(units, temperature), norm_floor)
    d, cosine = _nt_xent_slopes(units, temperature)
    by_temperature = -math.fsum(d[i][j] * cosine[i][j] for i in range(len(rows)) for j in range(len(rows)))
    return Gradients(by_row[: len(view1)], by_row[len(view1) :], np.array(by_temperature / temperature**2))


def nt_xent_row_gradients(units: Rows, temperature: float) -> Rows:
    """Closed form: a score of rows i and j moves both, so the slope by a unit row is sum_j (d_ij + d_ji) row_j / t."""
    d, _ = _nt_xent_slopes(units, temperature)
    both = [[d[i][j] + d[j][i] for j in range(len(units))] for i in range(len(units))]
    return _combined(both, units, temperature)


def _nt_xent_slopes(units: Rows, temperature: float) -> tuple[Rows, Rows]:
    """Slopes of the loss by each score, and the products of the rows."""
    products = [[dot(a, b) for b in units] for a in units]
    d = [[0.0] * len(units) for _ in units]
    for anchor in range(len(units)):
        candidates = [row for row in range(len(units)) if row != anchor]
        shares = softmax([products[anchor][row] / temperature for row in candidates])
        for row, share in zip(candidates, shares, strict=True):
            d[anchor][row] = (share - (row == partner(anchor, len(units) // 2))) / len(units)
    return d, products


def clip_gradients(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> Gradients:
    """The temperature is exp(-s), so dL/ds = -t dL/dt; kept at the cap, also where float32 rounds it up, zero above."""
    temperature = math.exp(-min(logit_scale, LOG_100))
    paired = paired_gradients(images, texts, temperature, norm_floor=1e-12)
    return paired._replace(parameter=-temperature * paired.parameter * _not_above_the_cap(logit_scale))


def logits_gradients(images: np.ndarray, texts: np.ndarray, logit_scale: float, weights: np.ndarray) -> Gradients:
    """Of the sum of all scores, each times its weight: linear in the unit rows, and in the scale, which is exp(s)."""
    temperature = math.exp(-min(logit_scale, LOG_100))
    by_cell, cosine = weights.tolist(), cosines(images, texts, 1e-12)
    by_scale = math.fsum(w * c for ws, cs in zip(by_cell, cosine, strict=True) for w, c in zip(ws, cs, strict=True))
    by_image = _combined(by_cell, unit_rows(texts, 1e-12), temperature)
    by_text = _combined(transposed(by_cell), unit_rows(images, 1e-12), temperature)
    return Gradients(
        left=_through_normalisation(images, by_image, 1e-12),
        right=_through_normalisation(texts, by_text, 1e-12),
        parameter=np.array(by_scale / temperature * _not_above_the_cap(logit_scale)),
    )


def _not_above_the_cap(logit_scale: float) -> bool:
    return logit_scale <= float(np.float32(LOG_100))


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
