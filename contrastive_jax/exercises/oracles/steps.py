"""The smaller exercises, written for NumPy and one entry at a time."""

import math
from collections.abc import Callable

import numpy as np

from contrastive_jax.exercises.oracles.gradients import nt_xent_row_gradients
from contrastive_jax.exercises.oracles.losses import LOG_100, paired_contrastive, partner
from contrastive_jax.exercises.oracles.rows import cosines, softmax, transposed

NOTEBOOK_TEMPERATURE = 0.2


def mismatched_loss(left: np.ndarray, right: np.ndarray, order: np.ndarray) -> float:
    reordered = np.array([right[row] for row in order.tolist()])
    return paired_contrastive(left, reordered, NOTEBOOK_TEMPERATURE)


def duplicate_penalty(left: np.ndarray, right: np.ndarray) -> float:
    doubled = paired_contrastive(np.concatenate([left, left]), np.concatenate([right, right]), NOTEBOOK_TEMPERATURE)
    return doubled - paired_contrastive(left, right, NOTEBOOK_TEMPERATURE)


def slope_by_two_steps(function: Callable, weights: np.ndarray, index: tuple[int, ...], step: float) -> float:
    above, below = weights.copy(), weights.copy()
    above[index] += step
    below[index] -= step
    return float(function(above) - function(below)) / (2 * step)


def partner_of(anchor: np.ndarray, batch: int) -> np.ndarray:
    return np.array([partner(row, batch) for row in anchor.tolist()], dtype=int)


def mask_self(scores: np.ndarray) -> np.ndarray:
    masked = scores.copy()
    for row in range(len(masked)):
        masked[row, row] = -math.inf
    return masked


def stack_views(interleaved: np.ndarray) -> np.ndarray:
    batch = len(interleaved) // 2
    first = [interleaved[2 * source] for source in range(batch)]
    second = [interleaved[2 * source + 1] for source in range(batch)]
    return np.array(first + second)


def restacked(pile: np.ndarray, source_ids: np.ndarray) -> np.ndarray:
    ids = source_ids.tolist()
    places = [[row for row, each in enumerate(ids) if each == source] for source in sorted(set(ids))]
    return np.array([pile[first] for first, _ in places] + [pile[second] for _, second in places])


def cross_view_loss(view1: np.ndarray, view2: np.ndarray, temperature: float) -> float:
    return paired_contrastive(view1, view2, temperature, norm_floor=1e-12)


def row_gradient(units: np.ndarray, temperature: float) -> np.ndarray:
    return np.array(nt_xent_row_gradients(units.tolist(), temperature))


def to_log_scale(temperature: float) -> float:
    return -math.log(temperature)


def scale_gradient(images: np.ndarray, texts: np.ndarray, log_scale: float) -> float:
    """Written as the mean over all questions of expected score minus own score."""
    if log_scale > LOG_100 + 1e-6:
        return 0.0
    scale = math.exp(min(log_scale, LOG_100))
    scores = [[scale * cosine for cosine in row] for row in cosines(images, texts)]
    questions = [*scores, *transposed(scores)]
    own = [*range(len(scores))] * 2
    surplus = [
        math.fsum(share * score for share, score in zip(softmax(asked), asked, strict=True)) - asked[answer]
        for asked, answer in zip(questions, own, strict=True)
    ]
    return math.fsum(surplus) / len(surplus)
