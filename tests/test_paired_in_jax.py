"""The paired loss inside JAX: dtypes, transformations, and one compilation for all temperatures."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from compiling import compilations
from oracles import related_rows

from contrastive_jax import paired_contrastive

RTOL = {"float32": 3e-6, "float64": 1e-13}

gradients = jax.jit(jax.grad(paired_contrastive, argnums=(0, 1, 2)))


# Dtypes


@pytest.mark.parametrize("temperature", [0.5, 1, np.float64(0.5), np.float32(0.5), np.array(0.5), np.int64(1)])
def test_the_kind_of_temperature_does_not_change_the_dtype(temperature, precision):
    loss = paired_contrastive(*related_rows(4, dtype=precision), temperature)
    assert loss.dtype == precision and loss.shape == ()


def test_a_temperature_of_another_dtype_does_not_change_the_dtype(x64):
    narrow, wide = related_rows(4, dtype="float32"), related_rows(4, dtype="float64")
    for temperature in (0.5, np.float64(0.5), jnp.asarray(0.5, "float64")):
        assert paired_contrastive(*narrow, temperature).dtype == "float32"
    assert paired_contrastive(*wide, jnp.asarray(0.5, "float32")).dtype == "float64"


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(half):
    left, right = related_rows(5, dtype=half)
    loss = paired_contrastive(left, right, 0.05)
    assert loss.dtype == jnp.float32
    wide = np.asarray(left, np.float64), np.asarray(right, np.float64)
    np.testing.assert_allclose(loss, oracles.paired_contrastive(*wide, 0.05), rtol=1e-5)
    by_left, by_right, _ = gradients(left, right, 0.05)
    expected = oracles.paired_gradients(*wide, 0.05)
    for actual, exact in ((by_left, expected.left), (by_right, expected.right)):
        assert actual.dtype == half
        # One rounding to half precision at the very end, no more.
        np.testing.assert_allclose(np.asarray(actual, np.float64), exact, rtol=float(jnp.finfo(half).eps), atol=1e-6)


# Transformations


def test_inside_jit(precision):
    left, right = related_rows(6, dtype=precision)
    np.testing.assert_allclose(
        jax.jit(paired_contrastive)(left, right, 0.3),
        paired_contrastive(left, right, 0.3),
        rtol=RTOL[precision],
    )


def test_a_temperature_fixed_by_the_caller(precision):
    left, right = related_rows(6, dtype=precision)
    fixed = jax.jit(paired_contrastive, static_argnums=2)(left, right, 0.3)
    np.testing.assert_allclose(fixed, paired_contrastive(left, right, 0.3), rtol=RTOL[precision])


def test_a_temperature_learned_as_a_logarithm(precision):
    # Chain rule: the derivative by the log temperature is temperature times that by the temperature.
    left, right = related_rows(7, dtype=precision)
    log_temperature = jnp.asarray(math.log(0.3), precision)
    learned = jax.jit(jax.grad(lambda log: paired_contrastive(left, right, jnp.exp(log))))(log_temperature)
    expected = 0.3 * oracles.paired_gradients(np.asarray(left, float), np.asarray(right, float), 0.3).parameter
    np.testing.assert_allclose(learned, expected, rtol=20 * RTOL[precision])


def test_vmap_is_a_loop(x64):
    stacks = [related_rows(seed, dtype="float64") for seed in range(3)]
    lefts, rights = (np.stack(side) for side in zip(*stacks, strict=True))
    temperatures = jnp.asarray([0.1, 0.5, 2.0], "float64")
    loop = [paired_contrastive(*pair, t) for pair, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(jax.vmap(paired_contrastive)(lefts, rights, temperatures), loop, rtol=RTOL["float64"])
    slopes = jax.jit(jax.vmap(jax.grad(paired_contrastive, argnums=1)))(lefts, rights, temperatures)
    alone = [gradients(*pair, t)[1] for pair, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(slopes, alone, rtol=1e-10, atol=1e-14)


def test_second_derivative_by_the_temperature(x64):
    left, right = related_rows(8, dtype="float64")
    exact = jax.jit(jax.grad(jax.grad(paired_contrastive, argnums=2), argnums=2))(left, right, 0.4)
    ahead, behind = (oracles.paired_gradients(np.asarray(left), np.asarray(right), t) for t in (0.40001, 0.39999))
    np.testing.assert_allclose(exact, (ahead.parameter - behind.parameter) / 2e-5, rtol=1e-7)


# Compilations


def test_a_new_temperature_does_not_compile_anew(caplog):
    # A width of its own, so that no other test has compiled it before.
    left, right = related_rows(9, width=11)
    with compilations("_paired_contrastive", caplog) as found:
        for temperature in (0.1, 0.2, 7, np.float64(0.3), np.float32(0.4), jnp.float32(0.5)):
            paired_contrastive(left, right, temperature)
        paired_contrastive(jnp.asarray(left), jnp.asarray(right), 0.7)
    assert len(found) == 1, found


def test_a_compilation_for_each_temperature_would_be_counted(caplog):
    fixed = jax.jit(paired_contrastive, static_argnums=2)
    left, right = related_rows(10, width=12)
    with compilations("paired_contrastive", caplog) as found:
        for temperature in (0.1, 0.2, 0.3):
            fixed(left, right, temperature)
    assert len(found) == 3, found
