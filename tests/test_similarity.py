"""Unit rows and cosine similarity: values, gradients at and below the floor, the ends of the number range."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contrastive_jax import cosine_similarity, l2_normalize
from contrastive_jax.exercises import oracles

RTOL = {"float32": 2e-6, "float64": 1e-14}


def rows(seed: int, batch: int = 4, width: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(batch, width))


@functools.partial(jax.jit, static_argnames="norm_floor")
def slope(x, incoming, norm_floor: float = 1e-12):
    """What reverse mode makes of the incoming gradient."""
    return jax.vjp(lambda x: l2_normalize(x, norm_floor=norm_floor), x)[1](incoming)[0]


def test_three_four_five(precision):
    unit = l2_normalize(np.array([[3.0, 4.0], [-6.0, 8.0]], precision))
    np.testing.assert_allclose(unit, [[0.6, 0.8], [-0.6, 0.8]], rtol=RTOL[precision])
    assert unit.dtype == precision


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3), (0, 3)])
def test_any_number_of_leading_axes(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    unit = l2_normalize(jnp.asarray(x))
    assert unit.shape == shape
    np.testing.assert_allclose(np.linalg.norm(unit, axis=-1), np.ones(shape[:-1]), rtol=1e-6)


@given(x=arrays(np.float64, (3, 4), elements=st.floats(-1e3, 1e3)))
def test_against_scalar_loops(x, precision):
    x = x.astype(precision)
    expected = oracles.unit_rows(x.astype(np.float64), 1e-3)
    np.testing.assert_allclose(l2_normalize(jnp.asarray(x), norm_floor=1e-3), expected, rtol=1e-5, atol=1e-37)


def test_normalising_twice_changes_nothing(precision):
    once = l2_normalize(rows(1).astype(precision))
    np.testing.assert_allclose(l2_normalize(once), once, rtol=RTOL[precision])


def test_ordinary_rows_are_the_plain_formula(precision):
    x = rows(2, 16, 8).astype(precision)
    plain = x / np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(l2_normalize(x), plain, rtol=2 * np.finfo(precision).eps)


# Norms at zero. Public libraries return NaN here, in the value (x / |x|) or only in the gradient: the derivative of
# sqrt at zero is infinite, and zero times infinity stays NaN behind a `where`.


def test_zero_row_stays_zero(precision):
    np.testing.assert_array_equal(l2_normalize(np.zeros((2, 3), precision)), np.zeros((2, 3)))


@pytest.mark.parametrize("norm_floor", [1e-12, 1e-6, 2.0])
def test_gradient_of_a_zero_row_is_the_incoming_one_over_the_floor(norm_floor, precision):
    incoming = rows(3).astype(precision)
    gradient = slope(np.zeros((4, 3), precision), incoming, norm_floor)
    np.testing.assert_allclose(gradient, np.asarray(incoming, np.float64) / norm_floor, rtol=RTOL[precision])


def test_gradient_below_the_floor_has_no_radial_projection(precision):
    # There the formula is x / floor, whose derivative does not depend on x. A row above is beside it.
    x = np.array([[3e-4, 4e-4], [3.0, 4.0]], precision)
    gradient = slope(x, np.array([[1.0, 2.0], [1.0, 2.0]], precision), 1e-3)
    # Above: (g - u (u.g)) / |x| with u = (0.6, 0.8), u.g = 2.2, |x| = 5.
    np.testing.assert_allclose(gradient, [[1e3, 2e3], [-0.064, 0.048]], rtol=10 * RTOL[precision])


def test_forward_mode_agrees_with_reverse_mode(precision):
    # Row 0 is zero and the floor high enough that its slopes do not drown the others'.
    x = rows(4).astype(precision)
    x[0] = 0
    tangent, incoming = rows(5).astype(precision), rows(6).astype(precision)
    forward = jax.jit(lambda x, v: jax.jvp(lambda x: l2_normalize(x, norm_floor=0.5), (x,), (v,))[1])(x, tangent)
    backward = slope(x, incoming, 0.5)
    np.testing.assert_allclose(np.vdot(forward, incoming), np.vdot(backward, tangent), rtol=20 * RTOL[precision])


def test_gradient_along_the_row_is_zero(precision):
    x = rows(7, 6, 5).astype(precision)
    gradient = slope(x, rows(8, 6, 5).astype(precision))
    along = np.sum(x * np.asarray(gradient), axis=1)
    scale = np.linalg.norm(x, axis=1) * np.linalg.norm(gradient, axis=1)
    assert np.all(np.abs(along) <= 10 * np.finfo(precision).eps * scale)


def test_second_derivatives_are_finite():
    x = rows(9).astype("float32")
    x[0] = 0
    hessian = jax.jit(jax.hessian(lambda x: jnp.sum(l2_normalize(x, norm_floor=1e-3) ** 3)))
    assert np.isfinite(hessian(x)).all()


# The ends of the number range: squares overflow in float32 from 1.8e19 on and vanish below 1e-23.


@pytest.mark.parametrize("scale", [1e-5, 1e10, 1e20, 1e30, 1e37])
def test_length_does_not_matter_far_out(scale, precision):
    x = rows(10).astype(precision)
    far = (x * scale).astype(precision)
    np.testing.assert_allclose(l2_normalize(far), l2_normalize(x), rtol=10 * RTOL[precision])
    incoming = rows(11).astype(precision)
    gradient = np.asarray(slope(far, incoming), float) * scale
    # Gradients of rows near the end of float32 are subnormal numbers, which the device may flush to zero.
    if scale < 1e36 or precision == "float64":
        expected = slope(x, incoming)
        np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.max(np.abs(expected)))


def test_float64_far_out(x64):
    x = jnp.asarray(rows(12), "float64")
    for scale in (1e-11, 1e160, 1e300):
        np.testing.assert_allclose(l2_normalize(x * scale), l2_normalize(x), rtol=1e-14)


def test_sums_of_many_squares_do_not_overflow():
    # Each square fits into float32, their sum does not.
    np.testing.assert_allclose(l2_normalize(np.full((1, 4096), 1e18, "float32")), np.full((1, 4096), 1 / 64), rtol=1e-6)


def test_one_large_entry_is_enough_to_overflow():
    unit = l2_normalize(np.array([[0.0, 1.0, 3e30, -4e30], [0.0, 1.0, 0.0, 0.0]], "float32"))
    np.testing.assert_allclose(unit, [[0.0, 0.0, 0.6, -0.8], [0.0, 1.0, 0.0, 0.0]], rtol=1e-6, atol=1e-29)


def test_an_epsilon_beside_the_norm_would_show():
    # Adding 1e-8 to the length, or to the sum of squares, shrinks short rows. Here nothing is added.
    unit = l2_normalize(jnp.array([[3e-5, 4e-5]]))
    np.testing.assert_allclose(unit, [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_entry_shows_in_its_own_row_only(bad, precision):
    unit = l2_normalize(np.array([[1.0, bad], [0.0, 2.0]], precision))
    assert np.isnan(unit[0, 1])
    np.testing.assert_array_equal(unit[1], [0.0, 1.0])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(half):
    # 300 squared is beyond float16.
    x = jnp.array([[300.0, 400.0], [0.0, 0.0]], half)
    unit = l2_normalize(x)
    assert unit.dtype == jnp.float32
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0.0, 0.0]], rtol=2e-6)
    gradient = jax.grad(lambda x: jnp.sum(l2_normalize(x)[:, 0]))(x[:1])
    assert gradient.dtype == half
    np.testing.assert_allclose(gradient.astype(jnp.float32), [[0.00128, -0.00096]], rtol=1e-2)


def test_numpy_arrays_are_accepted():
    assert isinstance(l2_normalize(np.ones((2, 2), np.float32)), jax.Array)


def test_inside_transformations(precision):
    x = rows(13).astype(precision)
    direct = l2_normalize(x)
    np.testing.assert_allclose(jax.jit(l2_normalize)(x), direct, rtol=RTOL[precision])
    np.testing.assert_allclose(jax.vmap(l2_normalize)(x), direct, rtol=RTOL[precision])


@given(left=arrays(np.float64, (3, 2), elements=st.floats(-9, 9)), seed=st.integers(0, 99))
def test_cosines_against_scalar_loops(left, seed, precision):
    left, right = left.astype(precision), rows(seed, 5, 2).astype(precision)
    actual = cosine_similarity(jnp.asarray(left), jnp.asarray(right), norm_floor=1e-3)
    assert actual.shape == (3, 5) and actual.dtype == precision
    expected = oracles.cosines(left.astype(np.float64), right.astype(np.float64), 1e-3)
    np.testing.assert_allclose(actual, expected, atol=2 * RTOL[precision])


def test_cosines_by_hand(precision):
    left = np.array([[1.0, 0.0], [0.0, 0.0]], precision)
    right = np.array([[9.0, 0.0], [0.0, 1.0], [-2.0, 0.0], [3.0, 4.0]], precision)
    np.testing.assert_allclose(
        cosine_similarity(left, right), [[1.0, 0.0, -1.0, 0.6], [0.0, 0.0, 0.0, 0.0]], rtol=RTOL[precision]
    )


def test_a_row_with_itself_has_cosine_one(precision):
    x = rows(14, 8, 6).astype(precision)
    np.testing.assert_allclose(np.diagonal(cosine_similarity(x, 7 * x)), np.ones(8), rtol=RTOL[precision])
