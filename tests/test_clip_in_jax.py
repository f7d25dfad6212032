"""CLIP's logits and loss inside JAX: dtypes, transformations, and one compilation for all scales."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from compiling import compilations
from oracles import related_rows

from contrastive_jax import clip_loss, contrastive_logits

RTOL = {"float32": 3e-6, "float64": 1e-13}

gradients = jax.jit(jax.grad(clip_loss, argnums=(0, 1, 2)))


# Dtypes


@pytest.mark.parametrize("logit_scale", [1.5, 1, np.float64(1.5), np.float32(1.5), np.array(1.5), np.int64(1)])
def test_the_kind_of_log_scale_does_not_change_the_dtype(logit_scale, precision):
    pair = related_rows(0, dtype=precision)
    assert contrastive_logits(*pair, logit_scale).dtype == precision
    loss = clip_loss(*pair, logit_scale)
    assert loss.dtype == precision and loss.shape == ()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("function", [clip_loss, contrastive_logits])
def test_the_dtype_of_the_features_is_kept(function, dtype, x64):
    pair = related_rows(0, dtype=dtype)
    for logit_scale in (1.5, np.float64(1.5), *(jnp.ones((), d) for d in ("float32", "float64", "bfloat16", "int32"))):
        assert jax.eval_shape(lambda a, b, s=logit_scale: function(a, b, s), *pair).dtype == dtype


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32_and_rounded_once(half):
    images, texts = related_rows(1, dtype=half)
    wide = np.asarray(images, np.float64), np.asarray(texts, np.float64)
    eps = float(jnp.finfo(half).eps)
    loss = np.asarray(clip_loss(images, texts, 3.0), np.float64)
    np.testing.assert_allclose(loss, oracles.clip_loss(*wide, 3.0), rtol=eps)
    logits = np.asarray(contrastive_logits(images, texts, 3.0), np.float64)
    np.testing.assert_allclose(logits, oracles.contrastive_logits(*wide, 3.0), rtol=eps, atol=1e-5)
    expected = oracles.clip_gradients(*wide, 3.0)
    for actual, exact in zip(gradients(images, texts, 3.0)[:2], expected[:2], strict=True):
        assert actual.dtype == half
        np.testing.assert_allclose(np.asarray(actual, np.float64), exact, rtol=eps, atol=1e-5)


def test_the_gradient_has_the_dtype_of_the_parameter(x64):
    images, texts = related_rows(2, dtype="float64")
    expected = oracles.clip_gradients(images, texts, 1.5).parameter
    for dtype in ("float32", "float64"):
        slope = gradients(images, texts, jnp.asarray(1.5, dtype))[2]
        assert slope.dtype == dtype
        np.testing.assert_allclose(slope, expected, rtol=RTOL[dtype])


# Transformations


@pytest.mark.parametrize("function", [clip_loss, contrastive_logits])
def test_inside_jit(function, precision):
    images, texts = related_rows(3, dtype=precision)
    fixed = jax.jit(function, static_argnums=2)(images, texts, 1.5)
    np.testing.assert_allclose(fixed, function(images, texts, 1.5), rtol=RTOL[precision])


def test_vmap_is_a_loop(x64):
    stacks = [related_rows(seed, dtype="float64") for seed in range(3)]
    images, texts = (np.stack(side) for side in zip(*stacks, strict=True))
    scales = jnp.asarray([-1.0, 2.0, 6.0], "float64")
    loop = [clip_loss(*pair, s) for pair, s in zip(stacks, scales, strict=True)]
    np.testing.assert_allclose(jax.vmap(clip_loss)(images, texts, scales), loop, rtol=1e-12)
    slopes = jax.jit(jax.vmap(jax.grad(clip_loss, argnums=2)))(images, texts, scales)
    alone = [gradients(*pair, s)[2] for pair, s in zip(stacks, scales, strict=True)]
    np.testing.assert_allclose(slopes, alone, rtol=1e-10)
    assert slopes[2] == 0.0  # above the cap


def test_second_derivative_by_the_log_scale(x64):
    pair = related_rows(4, dtype="float64")
    exact = jax.jit(jax.grad(jax.grad(clip_loss, argnums=2), argnums=2))(*pair, 0.4)
    ahead, behind = (oracles.clip_gradients(*pair, s).parameter for s in (0.40001, 0.39999))
    np.testing.assert_allclose(exact, (ahead - behind) / 2e-5, rtol=1e-6)


def test_a_temperature_learned_apart(precision):
    # logit_scale = -log(temperature); the chain rule brings the derivative by the temperature back.
    images, texts = related_rows(5, dtype=precision)
    by_temperature = jax.jit(jax.grad(lambda t: clip_loss(images, texts, -jnp.log(t))))(jnp.asarray(0.3, precision))
    exact = oracles.paired_gradients(images.astype(float), texts.astype(float), 0.3, norm_floor=1e-12)
    np.testing.assert_allclose(by_temperature, exact.parameter, rtol=20 * RTOL[precision])


def test_inputs_are_left_alone():
    images, texts = related_rows(6)
    before = images.copy(), texts.copy()
    gradients(images, texts, math.log(50))
    contrastive_logits(images, texts, 9.0)
    np.testing.assert_array_equal((images, texts), before)


# Compilations


@pytest.mark.parametrize("function", [clip_loss, contrastive_logits])
def test_a_new_log_scale_does_not_compile_anew(function, caplog):
    # A width of its own, so that no other test has compiled it before.
    images, texts = related_rows(7, width=11)
    with compilations(f"_{function.__name__}", caplog) as found:
        for logit_scale in (0.1, 7, -2.0, 1e9, np.float64(0.3), np.float32(0.4), jnp.float32(0.5), math.inf):
            function(images, texts, logit_scale)
        function(jnp.asarray(images), jnp.asarray(texts), 0.6)
    assert len(found) == 1, found


def test_a_compilation_for_each_log_scale_would_be_counted(caplog):
    fixed = jax.jit(clip_loss, static_argnums=2)
    pair = related_rows(8, width=12)
    with compilations("clip_loss", caplog) as found:
        for logit_scale in (0.1, 0.2, 0.3):
            fixed(*pair, logit_scale)
    assert len(found) == 3, found
