"""The paired loss: closed forms, mistakes seen in public code, dtypes, transformations, compilations."""

import contextlib
import logging
import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from contrastive_jax import paired_contrastive

RTOL = {"float32": 3e-6, "float64": 1e-13}


def batch(seed: int, size: int = 4, width: int = 3, dtype: str = "float32"):
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(size, width))
    right = left + 0.3 * rng.normal(size=(size, width))
    return jnp.asarray(left.astype(dtype)), jnp.asarray(right.astype(dtype))


gradients = jax.jit(jax.grad(paired_contrastive, argnums=(0, 1, 2)))


# Closed forms


@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0, 2.0])
def test_two_orthogonal_pairs(temperature, precision):
    eye = np.eye(2, dtype=precision)
    expected = math.log1p(math.exp(-1 / temperature))
    # Near zero float32 can only hold 1 + loss: the error is that of the 1.
    atol = float(np.finfo(precision).eps)
    np.testing.assert_allclose(paired_contrastive(eye, eye, temperature), expected, rtol=RTOL[precision], atol=atol)


def test_default_temperature_is_one_fifth(precision):
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(
        paired_contrastive(eye, eye), math.log1p(math.exp(-5)), atol=float(np.finfo(precision).eps)
    )


@pytest.mark.parametrize("size", [2, 16])
def test_equal_rows_cost_the_log_of_the_batch(size, precision):
    rows = np.full((size, 3), 2, precision)
    # Also shows that no factor temperature / base temperature is applied: at 0.1 / 0.07 this would be 43 % more.
    for temperature in (0.01, 0.1, 1.0):
        loss = paired_contrastive(rows, rows, temperature)
        np.testing.assert_allclose(loss, math.log(size), rtol=RTOL[precision])


def test_equal_rows_pull_nowhere(precision):
    rows = np.full((4, 3), 2, precision)
    for gradient in gradients(rows, rows, 0.1)[:2]:
        np.testing.assert_allclose(gradient, np.zeros((4, 3)), atol=20 * np.finfo(precision).eps)


def test_one_pair_costs_nothing_and_pulls_nowhere(precision):
    left, right = batch(0, size=1, dtype=precision)
    assert paired_contrastive(left, right, 0.1) == 0.0
    for gradient in gradients(left, right, 0.1):
        np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


def test_opposite_pairs_cost_the_full_range(precision):
    # Partners swapped: each positive has cosine 0 and the negative 1. An epsilon inside the logarithm would stop at 18.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(paired_contrastive(eye, eye[::-1], 0.01), 100.0, rtol=RTOL[precision])


# The lesson's fixture: values of the same program, written apart from this package and run in float64


def lesson(dtype: str):
    left = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, -0.2], [-1.0, 0.0, 0.1], [0.0, -1.0, -0.1]])
    right = left + np.array([[0.02, -0.01, 0.0], [-0.01, 0.02, 0.0], [0.01, 0.01, 0.0], [-0.02, -0.01, 0.0]])
    w = np.array([[0.2, 0.1], [0.1, 0.1], [0.02, -0.01]])
    return left.astype(dtype), right.astype(dtype), w.astype(dtype)


def test_lesson(precision):
    left, right, w = lesson(precision)
    step = jax.jit(jax.value_and_grad(lambda w: paired_contrastive(left @ w, right @ w, 0.2)))
    slope = float(step(w)[1][0, 0])
    history = []
    for _ in range(60):
        loss, gradient = step(w)
        history.append(float(loss))
        w = w - np.asarray(0.03, precision) * np.asarray(gradient)
    wrong_partners = float(paired_contrastive(left @ w, (right @ w)[[2, 0, 3, 1]], 0.2))
    # Measured over releases and instruction sets, float32 ends within 6e-8 of the float64 loss.
    tolerance = {"float32": 5e-7, "float64": 1e-12}[precision]
    assert history[0] == pytest.approx(0.5641571541294021, abs=tolerance)
    assert history[-1] == pytest.approx(0.013556668039747987, abs=tolerance)
    assert slope == pytest.approx(-1.380322594777429, abs=4 * tolerance)
    assert wrong_partners == pytest.approx(7.493564137091212, abs=8 * tolerance)


# Mistakes reported against public contrastive losses, each with the value that is right


def test_both_directions_count(precision):
    # Cosines [[c, c], [0, 1]] with c = sqrt(1/2): no single direction, nor twice one of them, has this value.
    left = np.array([[1.0, 1.0], [0.0, 1.0]], precision)
    right = np.array([[1.0, 0.0], [0.0, 1.0]], precision)
    c = math.sqrt(0.5)
    rows = math.log(2) + math.log1p(math.exp(-1))
    columns = math.log1p(math.exp(-c)) + math.log1p(math.exp(c - 1))
    np.testing.assert_allclose(paired_contrastive(left, right, 1.0), (rows + columns) / 4, rtol=RTOL[precision])
    assert abs(rows - columns) > 0.04


def test_temperature_divides_the_positive_too(precision):
    # Cosines 1 and 0 at 0.1: log(1 + exp(-10)), 4.54e-5, not the 0.313 of a positive left at 1.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(paired_contrastive(eye, eye, 0.1), math.log1p(math.exp(-10)), atol=1.2e-7)


def test_the_positive_stays_in_the_denominator(precision):
    # Without it two orthogonal pairs at temperature 1 would cost -1; a loss below zero is the sign.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(paired_contrastive(eye, eye, 1.0), 0.3132616875182228, rtol=RTOL[precision])


def test_exponentials_of_large_scores_do_not_overflow(precision):
    # exp(1 / 0.01) is beyond float32; so is a plain sum of exponentials of scores above 88.7.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(paired_contrastive(eye, eye, 0.01), 0.0, atol=1e-15)
    np.testing.assert_allclose(paired_contrastive(-eye, eye, 0.001), 1000.0, rtol=1e-6)


def test_duplicates_are_false_negatives(precision):
    # Two different left rows whose partners are one and the same: the row direction cannot do better than log 2.
    left = np.eye(2, dtype=precision)
    right = np.array([[1.0, 0.0], [1.0, 0.0]], precision)
    columns = math.log1p(math.exp(-1)) + math.log1p(math.exp(1))
    np.testing.assert_allclose(
        paired_contrastive(left, right, 1.0), (2 * math.log(2) + columns) / 4, rtol=RTOL[precision]
    )


def test_every_batch_has_its_own_size():
    # A loss that keeps labels of the first batch fails on a short last one.
    for size in (4, 3, 5):
        rows = np.ones((size, 3), "float32")
        np.testing.assert_allclose(paired_contrastive(rows, rows), math.log(size), rtol=1e-6)


def test_batches_beyond_the_integers_of_half_precision():
    # Positions kept in bfloat16 collide from 257 on; each pair must still find its own partner.
    eye = np.eye(300).astype(jnp.bfloat16)
    np.testing.assert_allclose(paired_contrastive(eye, eye, 0.5), math.log1p(299 * math.exp(-2)), rtol=1e-6)


@pytest.mark.parametrize("dead", ["left", "right", "both", "all"])
def test_zero_rows(dead, precision):
    left, right = (np.array(x) for x in batch(1, dtype=precision))
    if dead in ("left", "both"):
        left[1] = 0
    if dead in ("right", "both"):
        right[2] = 0
    if dead == "all":
        left[:] = right[:] = 0
    assert_like_oracle(left, right, 0.5)


@pytest.mark.parametrize("length", [1e-9, 0.9e-6, 1.1e-6, 1e-3])
def test_rows_about_the_floor(length, precision):
    left, right = (np.array(x) for x in batch(2, dtype=precision))
    left[0] *= length / np.linalg.norm(left[0])
    right[3] *= length / np.linalg.norm(right[3])
    assert_like_oracle(left, right, 0.5)


def assert_like_oracle(left: np.ndarray, right: np.ndarray, temperature: float) -> None:
    """Value and all gradients, row by row: rows near the floor have gradients a million times the others'."""
    tolerance = 1e-5 if left.dtype == np.float32 else 1e-12
    wide = left.astype(np.float64), right.astype(np.float64), temperature
    value = paired_contrastive(jnp.asarray(left), jnp.asarray(right), temperature)
    np.testing.assert_allclose(value, oracles.paired_contrastive(*wide), rtol=tolerance)
    actual = gradients(jnp.asarray(left), jnp.asarray(right), temperature)
    expected = oracles.paired_gradients(*wide)
    for a, e in zip(actual[:2], expected[:2], strict=True):
        off, largest = np.abs(a - e).max(axis=1), np.abs(e).max(axis=1)
        assert np.all(off <= tolerance * largest), (a, e)
    np.testing.assert_allclose(actual[2], expected[2], rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("side", [0, 1])
def test_nan_is_not_hidden(side, precision):
    pair = list(batch(3, dtype=precision))
    pair[side] = np.where(np.eye(4, 3), np.nan, pair[side]).astype(precision)
    assert np.isnan(paired_contrastive(*pair))


# Dtypes


@pytest.mark.parametrize("temperature", [0.5, 1, np.float64(0.5), np.float32(0.5), np.array(0.5), np.int64(1)])
def test_the_kind_of_temperature_does_not_change_the_dtype(temperature, precision):
    loss = paired_contrastive(*batch(4, dtype=precision), temperature)
    assert loss.dtype == precision and loss.shape == ()


def test_a_temperature_of_another_dtype_does_not_change_the_dtype(x64):
    narrow, wide = batch(4, dtype="float32"), batch(4, dtype="float64")
    for temperature in (0.5, np.float64(0.5), jnp.asarray(0.5, "float64")):
        assert paired_contrastive(*narrow, temperature).dtype == "float32"
    assert paired_contrastive(*wide, jnp.asarray(0.5, "float32")).dtype == "float64"


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(half):
    left, right = batch(5, dtype=half)
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
    left, right = batch(6, dtype=precision)
    np.testing.assert_allclose(
        jax.jit(paired_contrastive)(left, right, 0.3),
        paired_contrastive(left, right, 0.3),
        rtol=RTOL[precision],
    )


def test_a_temperature_fixed_by_the_caller(precision):
    left, right = batch(6, dtype=precision)
    fixed = jax.jit(paired_contrastive, static_argnums=2)(left, right, 0.3)
    np.testing.assert_allclose(fixed, paired_contrastive(left, right, 0.3), rtol=RTOL[precision])


def test_a_temperature_learned_as_a_logarithm(precision):
    # Chain rule: the derivative by the log temperature is temperature times that by the temperature.
    left, right = batch(7, dtype=precision)
    log_temperature = jnp.asarray(math.log(0.3), precision)
    learned = jax.jit(jax.grad(lambda log: paired_contrastive(left, right, jnp.exp(log))))(log_temperature)
    expected = 0.3 * oracles.paired_gradients(np.asarray(left, float), np.asarray(right, float), 0.3).temperature
    np.testing.assert_allclose(learned, expected, rtol=20 * RTOL[precision])


def test_vmap_is_a_loop(x64):
    stacks = [batch(seed, dtype="float64") for seed in range(3)]
    lefts, rights = (np.stack(side) for side in zip(*stacks, strict=True))
    temperatures = jnp.asarray([0.1, 0.5, 2.0], "float64")
    loop = [paired_contrastive(*pair, t) for pair, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(jax.vmap(paired_contrastive)(lefts, rights, temperatures), loop, rtol=RTOL["float64"])
    slopes = jax.jit(jax.vmap(jax.grad(paired_contrastive, argnums=1)))(lefts, rights, temperatures)
    alone = [gradients(*pair, t)[1] for pair, t in zip(stacks, temperatures, strict=True)]
    np.testing.assert_allclose(slopes, alone, rtol=1e-10, atol=1e-14)


def test_second_derivative_by_the_temperature(x64):
    left, right = batch(8, dtype="float64")
    exact = jax.jit(jax.grad(jax.grad(paired_contrastive, argnums=2), argnums=2))(left, right, 0.4)
    ahead, behind = (oracles.paired_gradients(np.asarray(left), np.asarray(right), t) for t in (0.40001, 0.39999))
    np.testing.assert_allclose(exact, (ahead.temperature - behind.temperature) / 2e-5, rtol=1e-7)


# Compilations


@contextlib.contextmanager
def compilations(of: str, caplog):
    """Collects the log lines with which JAX announces a compilation of a function of that name."""
    found: list[str] = []
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        yield found
    found += [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling") and of in r.getMessage()]


def test_a_new_temperature_does_not_compile_anew(caplog):
    # A width of its own, so that no other test has compiled it before.
    left, right = batch(9, width=11)
    with compilations("_paired_contrastive", caplog) as found:
        for temperature in (0.1, 0.2, 7, np.float64(0.3), np.float32(0.4), jnp.float32(0.5)):
            paired_contrastive(left, right, temperature)
        paired_contrastive(np.asarray(left), np.asarray(right), 0.7)
    assert len(found) == 1, found


def test_a_compilation_for_each_temperature_would_be_counted(caplog):
    fixed = jax.jit(paired_contrastive, static_argnums=2)
    left, right = batch(10, width=12)
    with compilations("paired_contrastive", caplog) as found:
        for temperature in (0.1, 0.2, 0.3):
            fixed(left, right, temperature)
    assert len(found) == 3, found
