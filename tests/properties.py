"""What holds of a contrastive loss for every input, written once for all losses."""

import math
from collections.abc import Callable

import numpy as np
import oracles

SIZE, WIDTH = 5, 3


def rows(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SIZE, WIDTH))


def by_differences(loss: Callable) -> Callable:
    """A way to evaluate any NumPy function: value and three gradients."""
    return lambda left, right, t: (loss(left, right, t), *oracles.slopes(loss, left, right, t))


# Each property gets a way to evaluate a loss, an input and a seed, and returns pairs of arrays that must agree.


def joint_permutation(evaluate, left, right, t, seed):
    order = np.random.default_rng(seed).permutation(SIZE)
    value, by_left, by_right, by_t = evaluate(left, right, t)
    return zip(evaluate(left[order], right[order], t), (value, by_left[order], by_right[order], by_t), strict=True)


def swap_of_the_sides(evaluate, left, right, t, seed):
    value, by_left, by_right, by_t = evaluate(left, right, t)
    return zip(evaluate(right, left, t), (value, by_right, by_left, by_t), strict=True)


def positive_rescaling_of_rows(evaluate, left, right, t, seed):
    a, b = 10 ** np.random.default_rng(seed).uniform(-3, 3, size=(2, SIZE, 1))
    value, by_left, by_right, by_t = evaluate(a * left, b * right, t)
    return zip((value, a * by_left, b * by_right, by_t), evaluate(left, right, t), strict=True)


def shared_change_of_basis(evaluate, left, right, t, seed):
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)))
    value, by_left, by_right, by_t = evaluate(left, right, t)
    turned = evaluate(left @ basis, right @ basis, t)
    return zip(turned, (value, by_left @ basis, by_right @ basis, by_t), strict=True)


def doubled_batch_costs_log_two(evaluate, left, right, t, seed):
    doubled, *_ = evaluate(np.tile(left, (2, 1)), np.tile(right, (2, 1)), t)
    return [(doubled, evaluate(left, right, t)[0] + math.log(2))]


def no_pull_along_a_row(evaluate, left, right, t, seed):
    """Lengths do not matter: taking the part along its row out of a gradient leaves it as it was."""
    _, by_left, by_right, _ = evaluate(left, right, t)
    return [(without_part_along(left, by_left), by_left), (without_part_along(right, by_right), by_right)]


def without_part_along(rows, gradient):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return gradient - unit * np.sum(unit * gradient, axis=1, keepdims=True)


def holds(prop: Callable, evaluate: Callable, left, right, t, seed: int, tolerance: float) -> bool:
    return all(
        np.max(np.abs(actual - expected)) <= tolerance * (np.max(np.abs(expected)) + 1e-3)
        for actual, expected in prop(evaluate, left, right, t, seed)
    )


def assert_rows_agree(actual, expected, tolerance: float) -> None:
    """Row by row, because rows near the norm floor have gradients a million times the others'."""
    off, largest = np.abs(np.asarray(actual) - expected).max(axis=1), np.abs(expected).max(axis=1)
    assert np.all(off <= tolerance * largest), (actual, expected)
