"""What must hold of NT-Xent for every input, and for each property a wrong loss that breaks it."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
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
    holds,
    joint_permutation,
    no_pull_along_a_row,
    positive_rescaling_of_rows,
    rows,
    shared_change_of_basis,
    swap_of_the_sides,
)

from contrastive_jax import nt_xent

RTOL = {"float32": 1e-5, "float64": 1e-12}

seeds = st.integers(0, 10_000)
temperatures = st.floats(0.1, 10)
any_rows = arrays(np.float64, (SIZE, WIDTH), elements=st.floats(-8, 8))

compiled = jax.jit(jax.value_and_grad(lambda a, b, t: nt_xent(jnp.concatenate([a, b]), t), argnums=(0, 1, 2)))


def in_jax(dtype: str) -> Callable:
    """Value and three gradients of the loss under test."""

    def evaluate(view1, view2, t):
        value, slopes = compiled(*(np.asarray(x, dtype) for x in (view1, view2, t)))
        return (float(value), *(np.asarray(slope, float) for slope in slopes))

    return evaluate


def euler_identity(evaluate, view1, view2, t, seed):
    """Scores are quadratic in all rows together and linear in 1 / t: <z, gradient> = -2 t dL/dt.

    Rows below the norm floor are only divided by it; there the identity can be seen from outside.
    """
    view1, view2 = (0.9e-12 * x / np.linalg.norm(x, axis=1, keepdims=True) for x in (view1, view2))
    _, by_view1, by_view2, by_t = evaluate(view1, view2, t)
    # The sums may cancel to nothing, so they are compared at the size of their terms, about one.
    return [(1 + np.sum(view1 * by_view1) + np.sum(view2 * by_view2), 1 - 2 * t * by_t)]


def any_row_may_change_sides(evaluate, view1, view2, t, seed):
    """Which view a row stands in does not matter as long as its partner stands in the other."""
    exchanged = np.random.default_rng(seed).integers(0, 2, size=(SIZE, 1)).astype(bool)
    value, by_view1, by_view2, by_t = evaluate(view1, view2, t)
    mixed = evaluate(np.where(exchanged, view2, view1), np.where(exchanged, view1, view2), t)
    expected = np.where(exchanged, by_view2, by_view1), np.where(exchanged, by_view1, by_view2)
    return zip(mixed, (value, *expected, by_t), strict=True)


PROPERTIES = {
    f.__name__: f
    for f in (
        joint_permutation,
        swap_of_the_sides,
        any_row_may_change_sides,
        positive_rescaling_of_rows,
        shared_change_of_basis,
        no_pull_along_a_row,
        euler_identity,
    )
}


@pytest.mark.parametrize("name", PROPERTIES)
@given(view1=seeds, view2=seeds, t=temperatures, seed=seeds)
def test_property(name, view1, view2, t, seed, precision):
    assert holds(PROPERTIES[name], in_jax(precision), rows(view1), rows(view2), t, seed, RTOL[precision])


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cost(z, scores, anchors=slice(None)):
    """Mean cost of the partners; scores here are small enough for a plain exponential."""
    batch = len(z) // 2
    exponentials = np.where(np.eye(len(z), dtype=bool), 0, np.exp(scores))
    partners = exponentials[np.arange(2 * batch), (np.arange(2 * batch) + batch) % (2 * batch)]
    return -np.mean(np.log(partners / exponentials.sum(axis=1))[anchors])


def wrong(score: Callable, anchors=slice(None)) -> Callable:
    """The loss of other scores than the cosines over t, or of some anchors only."""
    return lambda a, b, t: cost(np.concatenate([a, b]), score(np.concatenate([a, b]), t), anchors)


BREAKS = {
    "joint_permutation": wrong(lambda z, t: unit(z) @ unit(z).T * np.arange(1, 2 * SIZE + 1) / t),
    "swap_of_the_sides": wrong(lambda z, t: unit(z) @ unit(z).T / t, slice(SIZE)),
    "any_row_may_change_sides": lambda a, b, t: oracles.paired_contrastive(a, b, t),
    "positive_rescaling_of_rows": wrong(lambda z, t: unit(z) @ np.tanh(z).T / t),
    "shared_change_of_basis": wrong(lambda z, t: np.abs(unit(z)) @ unit(z).T / t),
    "no_pull_along_a_row": wrong(lambda z, t: z @ z.T / t),
    "euler_identity": lambda a, b, t: oracles.nt_xent(a, b, t * t),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_loss_without_the_property_is_noticed(name):
    arguments = rows(1), rows(2), 0.5, 3
    assert holds(PROPERTIES[name], by_differences(oracles.nt_xent), *arguments, tolerance=1e-5)
    assert not holds(PROPERTIES[name], by_differences(BREAKS[name]), *arguments, tolerance=1e-5)


# Against the scalar loops, and against itself


@given(view1=any_rows, view2=any_rows, t=temperatures)
def test_value_of_any_rows(view1, view2, t, precision):
    view1, view2, t = (np.asarray(x, precision) for x in (view1, view2, t))
    actual, *slopes = in_jax(precision)(view1, view2, t)
    expected = oracles.nt_xent(view1.astype(float), view2.astype(float), float(t))
    np.testing.assert_allclose(actual, expected, rtol=RTOL[precision], atol=1e-6 if precision == "float32" else 1e-14)
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize("t", [0.1, 0.5, 2.0])
def test_gradients_are_the_slopes_of_the_value(t, x64):
    evaluate = in_jax("float64")
    _, *actual = evaluate(rows(3), rows(4), t)
    expected = oracles.slopes(lambda a, b, t: evaluate(a, b, t)[0], rows(3), rows(4), t)
    for part, slope in zip(actual, expected, strict=True):
        assert np.max(np.abs(part - slope)) <= 1e-7 * np.max(np.abs(slope))


@given(view1=seeds, view2=seeds, exponent=st.floats(-3, 3))
def test_extreme_temperatures(view1, view2, exponent, precision):
    t = float(np.asarray(10**exponent, precision))
    view1, view2 = rows(view1).astype(precision), rows(view2).astype(precision)
    actual = in_jax(precision)(view1, view2, t)
    assert all(np.isfinite(part).all() for part in actual)
    wide = view1.astype(float), view2.astype(float), t
    # Cosines carry a rounding error of a few units in the last place, which the temperature divides.
    unit = 8 * float(np.finfo(precision).eps)
    np.testing.assert_allclose(actual[0], oracles.nt_xent(*wide), rtol=unit, atol=unit * (1 + 1 / t))
    for part, exact in zip(actual[1:], oracles.nt_xent_gradients(*wide), strict=True):
        scale = np.max(np.abs(exact))
        assert np.max(np.abs(part - exact)) <= 10 * unit * (1 + 1 / t) * (scale + 1 / t)


@pytest.mark.parametrize("t", [1e-3, 1e3])
@pytest.mark.parametrize("kind", ["equal", "opposite", "zero", "long", "short"])
def test_extreme_temperatures_of_extreme_rows(kind, t, precision):
    # Every score is at an end of its range, or every row at an end of the floor's.
    view1 = rows(5)
    view1, view2 = {
        "equal": (np.ones_like(view1), np.ones_like(view1)),
        "opposite": (view1, -view1),
        "zero": (0 * view1, 0 * view1),
        "long": (1e30 * view1, 1e36 * view1),
        "short": (1e-30 * view1, 1e-36 * view1),
    }[kind]
    value, *slopes = in_jax(precision)(view1, view2, t)
    assert all(np.isfinite(slope).all() for slope in slopes)
    expected = oracles.nt_xent(view1, view2, t)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5 if t < 1 else 0)
