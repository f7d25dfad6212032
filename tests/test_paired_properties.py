"""What must hold of the paired loss for every input, and for each property a wrong loss that breaks it."""

from collections.abc import Callable

import jax
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from properties import (
    SIZE,
    WIDTH,
    by_differences,
    doubled_batch_costs_log_two,
    holds,
    joint_permutation,
    no_pull_along_a_row,
    positive_rescaling_of_rows,
    rows,
    shared_change_of_basis,
    swap_of_the_sides,
)

from contrastive_jax import paired_contrastive

RTOL = {"float32": 1e-5, "float64": 1e-12}

seeds = st.integers(0, 10_000)
temperatures = st.floats(0.1, 10)
any_rows = arrays(np.float64, (SIZE, WIDTH), elements=st.floats(-8, 8))


compiled = jax.jit(jax.value_and_grad(paired_contrastive, argnums=(0, 1, 2)))


def in_jax(dtype: str) -> Callable:
    """Value and three gradients of the loss under test."""

    def evaluate(left, right, t):
        value, slopes = compiled(*(np.asarray(x, dtype) for x in (left, right, t)))
        return (float(value), *(np.asarray(slope, float) for slope in slopes))

    return evaluate


def euler_identity(evaluate, left, right, t, seed):
    """Scores are linear in either side and in 1 / t, so <left, gradient> = <right, gradient> = -t dL/dt.

    Rows below the norm floor are only divided by it; there the identity can be seen from outside.
    """
    left, right = (0.9e-6 * x / np.linalg.norm(x, axis=1, keepdims=True) for x in (left, right))
    _, by_left, by_right, by_t = evaluate(left, right, t)
    # The sums may cancel to nothing, so they are compared at the size of their terms, about one.
    return [(1 + np.sum(left * by_left), 1 - t * by_t), (1 + np.sum(right * by_right), 1 - t * by_t)]


PROPERTIES = {
    f.__name__: f
    for f in (
        joint_permutation,
        swap_of_the_sides,
        positive_rescaling_of_rows,
        shared_change_of_basis,
        doubled_batch_costs_log_two,
        no_pull_along_a_row,
        euler_identity,
    )
}


@pytest.mark.parametrize("name", PROPERTIES)
@given(left=seeds, right=seeds, t=temperatures, seed=seeds)
def test_property(name, left, right, t, seed, precision):
    assert holds(PROPERTIES[name], in_jax(precision), rows(left), rows(right), t, seed, RTOL[precision])


def cost(scores, axes=(0, 1)):
    """Cross-entropy of the diagonal along each axis; scores here are small enough for a plain exponential."""
    positive = np.exp(np.diagonal(scores))
    return -sum(np.mean(np.log(positive / np.exp(scores).sum(axis=axis))) for axis in axes) / len(axes)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


BREAKS = {
    "joint_permutation": lambda a, b, t: cost(unit(a) @ unit(b).T * np.arange(1, SIZE + 1) / t),
    "swap_of_the_sides": lambda a, b, t: cost(unit(a) @ unit(b).T / t, axes=(1,)),
    "positive_rescaling_of_rows": lambda a, b, t: cost(unit(a) @ np.tanh(b).T / t),
    "shared_change_of_basis": lambda a, b, t: cost(np.abs(unit(a)) @ unit(b).T / t),
    "doubled_batch_costs_log_two": lambda a, b, t: len(a) * oracles.paired_contrastive(a, b, t),
    "no_pull_along_a_row": lambda a, b, t: cost(a @ b.T / t),
    "euler_identity": lambda a, b, t: oracles.paired_contrastive(a, b, t * t),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_loss_without_the_property_is_noticed(name):
    arguments = rows(1), rows(2), 0.5, 3
    assert holds(PROPERTIES[name], by_differences(oracles.paired_contrastive), *arguments, tolerance=1e-5)
    assert not holds(PROPERTIES[name], by_differences(BREAKS[name]), *arguments, tolerance=1e-5)


# Against the scalar loops


@given(left=any_rows, right=any_rows, t=temperatures)
def test_value_of_any_rows(left, right, t, precision):
    left, right, t = (np.asarray(x, precision) for x in (left, right, t))
    actual = paired_contrastive(left, right, t)
    expected = oracles.paired_contrastive(left.astype(float), right.astype(float), float(t))
    np.testing.assert_allclose(actual, expected, rtol=RTOL[precision], atol=1e-6 if precision == "float32" else 1e-14)


@given(left=seeds, right=seeds, exponent=st.floats(-3, 3))
def test_extreme_temperatures(left, right, exponent, precision):
    t = float(np.asarray(10**exponent, precision))
    left, right = rows(left).astype(precision), rows(right).astype(precision)
    actual = in_jax(precision)(left, right, t)
    assert all(np.isfinite(part).all() for part in actual)
    wide = left.astype(float), right.astype(float), t
    # Cosines carry a rounding error of a few units in the last place, which the temperature divides.
    unit = 8 * float(np.finfo(precision).eps)
    np.testing.assert_allclose(actual[0], oracles.paired_contrastive(*wide), rtol=unit, atol=unit * (1 + 1 / t))
    for part, exact in zip(actual[1:], oracles.paired_gradients(*wide), strict=True):
        scale = np.max(np.abs(exact))
        assert np.max(np.abs(part - exact)) <= 10 * unit * (1 + 1 / t) * (scale + 1 / t)
