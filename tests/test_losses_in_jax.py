"""The losses inside JAX: dtypes, transformations, and one compilation for all parameters."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from example_rows import related_rows
from families import BOTH_WAYS, CLIP, NT_XENT

from contrastive_jax import clip_loss, contrastive_logits, nt_xent, nt_xent_loss, positive_only
from contrastive_jax.exercises import oracles

RTOL = {"float32": 3e-6, "float64": 1e-13}
HALF = ("float16", "bfloat16")

every_family = pytest.mark.parametrize("family", BOTH_WAYS.values(), ids=BOTH_WAYS)


def gradients(family):
    return jax.jit(jax.grad(family.loss, argnums=(0, 1, 2)))


# Dtypes


@every_family
@pytest.mark.parametrize("parameter", [0.5, 1, np.float64(0.5), np.float32(0.5), np.array(0.5), np.int64(1)])
def test_the_kind_of_parameter_does_not_change_the_dtype(family, parameter, precision):
    loss = family.loss(*related_rows(0, dtype=precision), parameter)
    assert loss.dtype == precision and loss.shape == ()


@every_family
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_dtype_is_kept_where_the_other_exists_too(family, dtype, x64):
    pair = related_rows(0, dtype=dtype)
    for parameter in (0.5, np.float64(0.5), *(jnp.ones((), d) for d in ("float32", "float64", "bfloat16", "int32"))):
        assert jax.eval_shape(lambda a, b, p=parameter: family.loss(a, b, p), *pair).dtype == dtype


def test_the_dtype_of_functions_with_other_arguments(x64):
    for dtype in ("float32", "float64"):
        pair = related_rows(0, dtype=dtype)
        assert jax.eval_shape(lambda a, b: nt_xent_loss(a, b, np.float64(0.5)), *pair).dtype == dtype
        assert jax.eval_shape(positive_only, np.concatenate(pair)).dtype == dtype
    for dtype in (*HALF, "float32", "float64"):
        logits = jax.eval_shape(lambda a, b: contrastive_logits(a, b, np.float64(1.5)), *related_rows(0, dtype=dtype))
        assert logits.dtype == dtype


@every_family
@pytest.mark.parametrize("half", HALF)
def test_half_precision_is_computed_in_float32(family, half):
    left, right = related_rows(1, dtype=half)
    parameter = family.parameter_of(20.0)
    loss = family.loss(left, right, parameter)
    assert loss.dtype == (half if family.keeps_half else jnp.float32)
    wide = np.asarray(left, np.float64), np.asarray(right, np.float64), parameter
    # One rounding to half precision at the very end, no more.
    once = float(jnp.finfo(half).eps)
    np.testing.assert_allclose(
        np.asarray(loss, np.float64), family.oracle(*wide), rtol=once if family.keeps_half else 1e-5
    )
    for actual, exact in zip(gradients(family)(left, right, parameter)[:2], family.gradients(*wide)[:2], strict=True):
        assert actual.dtype == half
        np.testing.assert_allclose(np.asarray(actual, np.float64), exact, rtol=once, atol=1e-5)


@pytest.mark.parametrize("half", HALF)
def test_half_precision_logits_are_rounded_once(half):
    images, texts = related_rows(1, dtype=half)
    logits = np.asarray(contrastive_logits(images, texts, 3.0), np.float64)
    expected = oracles.contrastive_logits(np.asarray(images, np.float64), np.asarray(texts, np.float64), 3.0)
    np.testing.assert_allclose(logits, expected, rtol=float(jnp.finfo(half).eps), atol=1e-5)


def test_half_precision_has_no_rounded_positions():
    # Among 600 rows, positions kept in bfloat16 would collide.
    eye = np.eye(300).astype(jnp.bfloat16)
    np.testing.assert_allclose(nt_xent_loss(eye, eye, 0.5), math.log1p(598 * math.exp(-2)), rtol=1e-6)


def test_the_gradient_has_the_dtype_of_the_parameter(x64):
    pair = related_rows(2, dtype="float64")
    expected = oracles.clip_gradients(*pair, 1.5).parameter
    for dtype in ("float32", "float64"):
        slope = gradients(CLIP)(*pair, jnp.asarray(1.5, dtype))[2]
        assert slope.dtype == dtype
        np.testing.assert_allclose(slope, expected, rtol=RTOL[dtype])


# Transformations


@pytest.mark.parametrize(
    "function", [*(family.loss for family in BOTH_WAYS.values()), contrastive_logits], ids=[*BOTH_WAYS, "logits"]
)
def test_inside_jit(function, precision):
    pair = related_rows(3, dtype=precision)
    plain = function(*pair, 0.3)
    np.testing.assert_allclose(jax.jit(function)(*pair, 0.3), plain, rtol=RTOL[precision])
    fixed_by_the_caller = jax.jit(function, static_argnums=2)(*pair, 0.3)
    np.testing.assert_allclose(fixed_by_the_caller, plain, rtol=RTOL[precision])


def test_two_views_inside_jit(precision):
    # Its temperature is a Python number, so that it can only be fixed.
    pair = related_rows(3, dtype=precision)
    plain = nt_xent_loss(*pair, 0.3)
    inside = jax.jit(lambda a, b: nt_xent_loss(a, b, temperature=0.3))(*pair)
    np.testing.assert_allclose(inside, plain, rtol=RTOL[precision])
    fixed = jax.jit(nt_xent_loss, static_argnums=2)(*pair, 0.3)
    np.testing.assert_allclose(fixed, plain, rtol=RTOL[precision])


@every_family
def test_a_temperature_learned_apart(family, precision):
    # Chain rule, with the logarithm of the temperature as the parameter that is learned.
    pair = related_rows(5, dtype=precision)
    by_log_scale = family.scale is CLIP.scale

    def learned(log_temperature):
        return family.loss(*pair, -log_temperature if by_log_scale else jnp.exp(log_temperature))

    log_temperature = math.log(0.3)
    slope = jax.jit(jax.grad(learned))(jnp.asarray(log_temperature, precision))
    by_parameter = family.gradients(*(side.astype(float) for side in pair), family.parameter_of(1 / 0.3)).parameter
    expected = -by_parameter if by_log_scale else 0.3 * by_parameter
    np.testing.assert_allclose(slope, expected, rtol=20 * RTOL[precision])


@every_family
def test_vmap_is_a_loop(family, x64):
    stacks = [related_rows(seed, dtype="float64") for seed in range(3)]
    lefts, rights = (jnp.stack(side) for side in zip(*stacks, strict=True))
    parameters = jnp.asarray([family.parameter_of(scale) for scale in (0.5, 10, 400)], "float64")
    loop = [family.loss(*pair, p) for pair, p in zip(stacks, parameters, strict=True)]
    np.testing.assert_allclose(jax.vmap(family.loss)(lefts, rights, parameters), loop, rtol=1e-12)
    slopes = jax.jit(jax.vmap(jax.grad(family.loss, argnums=(1, 2))))(lefts, rights, parameters)
    alone = [gradients(family)(*pair, p)[1:] for pair, p in zip(stacks, parameters, strict=True)]
    for together, single in zip(slopes, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(together, single, rtol=1e-10, atol=1e-13)


def test_vmap_of_two_views(x64):
    stacks = [related_rows(seed, dtype="float64") for seed in range(3)]
    view1, view2 = (jnp.stack(side) for side in zip(*stacks, strict=True))
    loop = [nt_xent_loss(*pair, 0.5) for pair in stacks]
    together = jax.vmap(lambda a, b: nt_xent_loss(a, b, 0.5))(view1, view2)
    np.testing.assert_allclose(together, loop, rtol=RTOL["float64"])


@every_family
def test_second_derivative_by_the_parameter(family, x64):
    pair = related_rows(4, dtype="float64")
    exact = jax.jit(jax.grad(jax.grad(family.loss, argnums=2), argnums=2))(*pair, 0.4)
    ahead, behind = (family.gradients(*pair, p).parameter for p in (0.40001, 0.39999))
    np.testing.assert_allclose(exact, (ahead - behind) / 2e-5, rtol=1e-6)


@every_family
def test_strided_sides_and_inputs_left_alone(family, precision):
    left, right = related_rows(5, dtype=precision)
    spread = np.zeros((8, 6), precision)
    spread[::2, ::-2] = left
    before = spread.copy(), right.copy()
    assert family.loss(spread[::2, ::-2], right, 0.5) == family.loss(left, right, 0.5)
    gradients(family)(spread[::2, ::-2], right, 0.5)
    np.testing.assert_array_equal(spread, before[0])
    np.testing.assert_array_equal(right, before[1])


# Compilations. Each test has a width of its own, so that no other test has compiled it before.


@every_family
def test_a_new_parameter_does_not_compile_anew(family, caplog):
    left, right = related_rows(7, width=11)
    with compilations(family.compiled, caplog) as found:
        for parameter in (0.1, 7, np.float64(0.3), np.float32(0.4), jnp.float32(0.5)):
            family.loss(left, right, parameter)
        family.loss(jnp.asarray(left), jnp.asarray(right), 0.6)
    assert len(found) == 1, found


def test_neither_do_the_two_views(caplog):
    view1, view2 = related_rows(6, width=12)
    with compilations(NT_XENT.compiled, caplog) as found:
        nt_xent(np.concatenate([view1, view2]), 0.2)
        for temperature in (0.1, 7, np.float64(0.3)):
            nt_xent_loss(view1, view2, temperature)
        nt_xent_loss(jnp.asarray(view1), jnp.asarray(view2), 0.6)
    assert len(found) == 1, found


@pytest.mark.parametrize("function", [clip_loss, contrastive_logits])
def test_neither_do_scales_beyond_the_cap(function, caplog):
    images, texts = related_rows(7, width=13)
    with compilations(f"_{function.__name__}", caplog) as found:
        for logit_scale in (0.1, -2.0, 1e9, math.inf):
            function(images, texts, logit_scale)
    assert len(found) == 1, found


def test_new_rows_do_not_compile_anew(caplog):
    with compilations("_positive_only", caplog) as found:
        for seed in range(3):
            positive_only(related_rows(seed, size=4, width=14)[0])
    assert len(found) == 1, found


@every_family
def test_a_compilation_for_each_parameter_would_be_counted(family, caplog):
    fixed = jax.jit(family.loss, static_argnums=2)
    pair = related_rows(8, width=15)
    with compilations(family.loss.__name__, caplog) as found:
        for parameter in (0.1, 0.2, 0.3):
            fixed(*pair, parameter)
    assert len(found) == 3, found
