"""NT-Xent inside JAX: dtypes, transformations, compilations, and the mistakes of public code that only show there."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from compiling import compilations
from oracles import related_rows

from contrastive_jax import nt_xent, nt_xent_loss, positive_only

RTOL = {"float32": 3e-6, "float64": 1e-13}


def of_views(view1, view2, temperature):
    return nt_xent(jnp.concatenate([view1, view2]), temperature)


gradients = jax.jit(jax.grad(of_views, argnums=(0, 1, 2)))


# Dtypes


@pytest.mark.parametrize("temperature", [0.5, 1, np.float64(0.5), np.float32(0.5), np.array(0.5), np.int64(1)])
def test_the_kind_of_temperature_does_not_change_the_dtype(temperature, precision):
    loss = nt_xent(np.concatenate(related_rows(0, dtype=precision)), temperature)
    assert loss.dtype == precision and loss.shape == ()


def test_a_dtype_is_kept_where_the_other_exists_too(x64):
    for dtype in ("float32", "float64"):
        view1, view2 = related_rows(0, dtype=dtype)
        stacked = np.concatenate([view1, view2])
        assert jax.eval_shape(lambda a, b: nt_xent_loss(a, b, np.float64(0.5)), view1, view2).dtype == dtype
        assert jax.eval_shape(nt_xent, stacked, jnp.asarray(0.5, "float64")).dtype == dtype
        assert jax.eval_shape(positive_only, stacked).dtype == dtype


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(half):
    view1, view2 = related_rows(1, dtype=half)
    loss = nt_xent_loss(view1, view2, 0.05)
    assert loss.dtype == jnp.float32
    wide = np.asarray(view1, np.float64), np.asarray(view2, np.float64)
    np.testing.assert_allclose(loss, oracles.nt_xent(*wide, 0.05), rtol=1e-5)
    expected = oracles.nt_xent_gradients(*wide, 0.05)
    for actual, exact in zip(gradients(view1, view2, 0.05), expected[:2], strict=False):
        assert actual.dtype == half
        # One rounding to half precision at the very end, no more.
        np.testing.assert_allclose(np.asarray(actual, np.float64), exact, rtol=float(jnp.finfo(half).eps), atol=1e-6)


def test_half_precision_has_no_rounded_positions():
    # Among 600 rows, positions kept in bfloat16 would collide.
    eye = np.eye(300).astype(jnp.bfloat16)
    np.testing.assert_allclose(nt_xent_loss(eye, eye, 0.5), math.log1p(598 * math.exp(-2)), rtol=1e-6)


# Transformations


def test_inside_jit(precision):
    view1, view2 = related_rows(2, dtype=precision)
    plain = nt_xent_loss(view1, view2, 0.3)
    for inside in (
        jax.jit(nt_xent_loss, static_argnums=2)(view1, view2, 0.3),
        jax.jit(lambda a, b: nt_xent_loss(a, b, temperature=0.3))(view1, view2),
        jax.jit(of_views)(view1, view2, 0.3),
    ):
        np.testing.assert_allclose(inside, plain, rtol=RTOL[precision])


def test_a_temperature_learned_as_a_logarithm(precision):
    # Chain rule: the derivative by the log temperature is temperature times that by the temperature.
    view1, view2 = related_rows(3, dtype=precision)
    stacked = jnp.concatenate([view1, view2])
    learned = jax.jit(jax.grad(lambda log: nt_xent(stacked, jnp.exp(log))))(jnp.asarray(math.log(0.3), precision))
    expected = 0.3 * oracles.nt_xent_gradients(view1.astype(float), view2.astype(float), 0.3).parameter
    np.testing.assert_allclose(learned, expected, rtol=20 * RTOL[precision])


def test_vmap_is_a_loop(x64):
    stacks = [related_rows(seed, dtype="float64") for seed in range(3)]
    view1, view2 = (jnp.stack(side) for side in zip(*stacks, strict=True))
    temperatures = jnp.asarray([0.1, 0.5, 2.0], "float64")
    loop = [of_views(*views, t) for views, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(jax.vmap(of_views)(view1, view2, temperatures), loop, rtol=RTOL["float64"])
    fixed = jax.vmap(lambda a, b: nt_xent_loss(a, b, 0.5))(view1, view2)
    np.testing.assert_allclose(fixed[1], loop[1], rtol=RTOL["float64"])
    slopes = jax.jit(jax.vmap(jax.grad(of_views, argnums=1)))(view1, view2, temperatures)
    alone = [gradients(*views, t)[1] for views, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(slopes, alone, rtol=1e-10, atol=1e-14)


def test_second_derivative_by_the_temperature(x64):
    views = related_rows(4, dtype="float64")
    exact = jax.jit(jax.grad(jax.grad(of_views, argnums=2), argnums=2))(*views, 0.4)
    ahead, behind = (oracles.nt_xent_gradients(*views, t).parameter for t in (0.40001, 0.39999))
    np.testing.assert_allclose(exact, (ahead - behind) / 2e-5, rtol=1e-7)


def test_strided_views_and_inputs_left_alone(precision):
    view1, view2 = related_rows(5, dtype=precision)
    spread = np.zeros((8, 6), precision)
    spread[::2, ::-2] = view1
    before = spread.copy(), view2.copy()
    assert nt_xent_loss(spread[::2, ::-2], view2) == nt_xent_loss(view1, view2)
    np.testing.assert_array_equal(spread, before[0])
    np.testing.assert_array_equal(view2, before[1])


# Compilations


def test_a_new_temperature_does_not_compile_anew(caplog):
    # A width of its own, so that no other test has compiled it before.
    view1, view2 = related_rows(6, width=11)
    stacked = np.concatenate([view1, view2])
    with compilations("_nt_xent", caplog) as found:
        for temperature in (0.1, 7, np.float64(0.3), np.float32(0.4), jnp.float32(0.5)):
            nt_xent(stacked, temperature)
        nt_xent(jnp.asarray(stacked), 0.6)
        for temperature in (0.1, 7, np.float64(0.3)):
            nt_xent_loss(view1, view2, temperature)
        nt_xent_loss(jnp.asarray(view1), jnp.asarray(view2), 0.6)
    assert len(found) == 1, found


def test_new_rows_do_not_compile_anew(caplog):
    with compilations("_positive_only", caplog) as found:
        for seed in range(3):
            positive_only(related_rows(seed, size=4, width=13)[0])
    assert len(found) == 1, found


def test_a_compilation_for_each_temperature_would_be_counted(caplog):
    fixed = jax.jit(nt_xent_loss, static_argnums=2)
    views = related_rows(7, width=12)
    with compilations("nt_xent_loss", caplog) as found:
        for temperature in (0.1, 0.2, 0.3):
            fixed(*views, temperature)
    assert len(found) == 3, found
