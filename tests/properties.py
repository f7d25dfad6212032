"""What holds of a contrastive loss for every input, written once for all losses."""

import math
from collections.abc import Callable

import numpy as np

from contrastive_jax.exercises import oracles

SIZE, WIDTH = 5, 3


def rows(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(SIZE, WIDTH))


def by_differences(loss: Callable) -> Callable:
    """A way to evaluate any NumPy function: value and three gradients."""
    return lambda left, right, p: (loss(left, right, p), *oracles.slopes(loss, left, right, p))


# Each property gets a way to evaluate a loss, an input and a seed, and returns pairs of arrays that must agree. `p` is
# the temperature, or the log scale.


def joint_permutation(evaluate, left, right, p, seed):
    order = np.random.default_rng(seed).permutation(SIZE)
    value, by_left, by_right, by_p = evaluate(left, right, p)
    return zip(evaluate(left[order], right[order], p), (value, by_left[order], by_right[order], by_p), strict=True)


def swap_of_the_sides(evaluate, left, right, p, seed):
    value, by_left, by_right, by_p = evaluate(left, right, p)
    return zip(evaluate(right, left, p), (value, by_right, by_left, by_p), strict=True)


def any_row_may_change_sides(evaluate, view1, view2, p, seed):
    """Which view a row stands in does not matter as long as its partner stands in the other."""
    exchanged = np.random.default_rng(seed).integers(0, 2, size=(SIZE, 1)).astype(bool)
    value, by_view1, by_view2, by_p = evaluate(view1, view2, p)
    mixed = evaluate(np.where(exchanged, view2, view1), np.where(exchanged, view1, view2), p)
    expected = np.where(exchanged, by_view2, by_view1), np.where(exchanged, by_view1, by_view2)
    return zip(mixed, (value, *expected, by_p), strict=True)


def positive_rescaling_of_rows(evaluate, left, right, p, seed):
    a, b = 10 ** np.random.default_rng(seed).uniform(-3, 3, size=(2, SIZE, 1))
    value, by_left, by_right, by_p = evaluate(a * left, b * right, p)
    return zip((value, a * by_left, b * by_right, by_p), evaluate(left, right, p), strict=True)


def shared_change_of_basis(evaluate, left, right, p, seed):
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)))
    value, by_left, by_right, by_p = evaluate(left, right, p)
    turned = evaluate(left @ basis, right @ basis, p)
    return zip(turned, (value, by_left @ basis, by_right @ basis, by_p), strict=True)


def doubled_batch_costs_log_two(evaluate, left, right, p, seed):
    doubled, *_ = evaluate(np.tile(left, (2, 1)), np.tile(right, (2, 1)), p)
    return [(doubled, evaluate(left, right, p)[0] + math.log(2))]


def no_pull_along_a_row(evaluate, left, right, p, seed):
    """Lengths do not matter: taking the part along its row out of a gradient leaves it as it was."""
    _, by_left, by_right, _ = evaluate(left, right, p)
    return [(without_part_along(left, by_left), by_left), (without_part_along(right, by_right), by_right)]


def without_part_along(rows, gradient):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return gradient - unit * np.sum(unit * gradient, axis=1, keepdims=True)


def a_larger_scale_sharpens(evaluate, left, right, p, seed):
    """With every partner the best candidate in both directions, a larger scale lowers the loss.

    The parameter is a log scale here.
    """
    value, *_ = evaluate(left, left, p)
    larger, _, _, by_p = evaluate(left, left, p + 0.5)
    return [(float(larger < value and by_p < 0), 1.0)]


# Euler's identities: scores are linear in either side, or quadratic in both together, and linear in the scale. Rows
# below the norm floor are only divided by it, so that these can be seen from outside. The sums may cancel to nothing;
# they are compared at the size of their terms, about one.


def euler_of_a_temperature(norm_floor: float) -> Callable:
    def euler_identity(evaluate, left, right, t, seed):
        left, right = below(norm_floor, left), below(norm_floor, right)
        _, by_left, by_right, by_t = evaluate(left, right, t)
        return [(1 + np.sum(left * by_left), 1 - t * by_t), (1 + np.sum(right * by_right), 1 - t * by_t)]

    return euler_identity


def euler_of_a_log_scale(norm_floor: float) -> Callable:
    def euler_identity(evaluate, left, right, log_scale, seed):
        left, right = below(norm_floor, left), below(norm_floor, right)
        _, by_left, by_right, by_scale = evaluate(left, right, log_scale)
        return [(1 + np.sum(left * by_left), 1 + by_scale), (1 + np.sum(right * by_right), 1 + by_scale)]

    return euler_identity


def euler_of_one_pile(norm_floor: float) -> Callable:
    """Rows meet rows of their own side too, so only the sum over both sides is known."""

    def euler_identity(evaluate, view1, view2, t, seed):
        view1, view2 = below(norm_floor, view1), below(norm_floor, view2)
        _, by_view1, by_view2, by_t = evaluate(view1, view2, t)
        return [(1 + np.sum(view1 * by_view1) + np.sum(view2 * by_view2), 1 - 2 * t * by_t)]

    return euler_identity


def below(norm_floor: float, rows: np.ndarray) -> np.ndarray:
    return 0.9 * norm_floor * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def holds(prop: Callable, evaluate: Callable, left, right, p, seed: int, tolerance: float) -> bool:
    return all(
        np.max(np.abs(actual - expected)) <= tolerance * (np.max(np.abs(expected)) + smallest_size(expected))
        for actual, expected in prop(evaluate, left, right, p, seed)
    )


def smallest_size(expected) -> float:
    """A number may be what is left where terms of about one cancel; a gradient has some entry that did not."""
    return 1e-3 if np.ndim(expected) else 0.3


def assert_rows_agree(actual, expected, tolerance: float) -> None:
    """Row by row, because rows near the norm floor have gradients a million times the others'."""
    off, largest = np.abs(np.asarray(actual) - expected).max(axis=1), np.abs(expected).max(axis=1)
    assert np.all(off <= tolerance * largest), (actual, expected)
