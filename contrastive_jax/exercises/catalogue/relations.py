"""What holds of a contrastive loss whatever its input, as relations between several of its results.

Each gets a way to evaluate a loss, then its arguments: two sides, and a temperature or a log scale. It gives pairs of
arrays that must agree. Gradients are those by the sides first.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from contrastive_jax.exercises.contracts import Evaluate

Pairs = Iterator[tuple[Any, Any]]


def same_order(evaluate: Evaluate, left: np.ndarray, right: np.ndarray, *rest: float) -> Pairs:
    """Pairs in another order: the same value, and the gradients in that order."""
    order = np.roll(np.arange(len(left)), 1)
    before, after = evaluate(left, right, *rest), evaluate(left[order], right[order], *rest)
    yield after.value, before.value
    yield from zip(after.gradients[:2], (each[order] for each in before.gradients[:2]), strict=True)


def exchanged(evaluate: Evaluate, left: np.ndarray, right: np.ndarray, *rest: float) -> Pairs:
    """Sides exchanged: the same value, and the gradients exchanged."""
    before, after = evaluate(left, right, *rest), evaluate(right, left, *rest)
    yield after.value, before.value
    yield from zip(after.gradients[:2], before.gradients[1::-1], strict=True)


def rescaled(evaluate: Evaluate, left: np.ndarray, right: np.ndarray, *rest: float) -> Pairs:
    """Every row longer or shorter: the same value."""
    lengths = np.array([3.0, 0.5, 20.0])[: len(left), None]
    yield evaluate(lengths * left, right / lengths, *rest).value, evaluate(left, right, *rest).value


def turned(evaluate: Evaluate, left: np.ndarray, right: np.ndarray, *rest: float) -> Pairs:
    """Both sides turned in the plane of the first two coordinates: the same value."""
    turn = np.eye(left.shape[1])
    turn[:2, :2] = [[0.6, 0.8], [-0.8, 0.6]]
    yield evaluate(left @ turn, right @ turn, *rest).value, evaluate(left, right, *rest).value
