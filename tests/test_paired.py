"""The paired loss: closed forms, the lesson, mistakes seen in public code."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_rows import related_rows

from contrastive_jax import paired_contrastive
from contrastive_jax.exercises import oracles

RTOL = {"float32": 3e-6, "float64": 1e-13}


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
    left, right = related_rows(0, size=1, dtype=precision)
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
    left, right = related_rows(1, dtype=precision)
    if dead in ("left", "both"):
        left[1] = 0
    if dead in ("right", "both"):
        right[2] = 0
    if dead == "all":
        left[:] = right[:] = 0
    assert_like_oracle(left, right, 0.5)


@pytest.mark.parametrize("length", [1e-9, 0.9e-6, 1.1e-6, 1e-3])
def test_rows_about_the_floor(length, precision):
    left, right = related_rows(2, dtype=precision)
    left[0] *= length / np.linalg.norm(left[0])
    right[3] *= length / np.linalg.norm(right[3])
    assert_like_oracle(left, right, 0.5)


def assert_like_oracle(left: np.ndarray, right: np.ndarray, temperature: float) -> None:
    """Value and all gradients, row by row: rows near the floor have gradients a million times the others'."""
    tolerance = 1e-5 if left.dtype == np.float32 else 1e-12
    wide = left.astype(np.float64), right.astype(np.float64), temperature
    value = paired_contrastive(left, right, temperature)
    np.testing.assert_allclose(value, oracles.paired_contrastive(*wide), rtol=tolerance)
    actual = gradients(left, right, temperature)
    expected = oracles.paired_gradients(*wide)
    for a, e in zip(actual[:2], expected[:2], strict=True):
        off, largest = np.abs(a - e).max(axis=1), np.abs(e).max(axis=1)
        assert np.all(off <= tolerance * largest), (a, e)
    np.testing.assert_allclose(actual[2], expected[2], rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("side", [0, 1])
def test_nan_is_not_hidden(side, precision):
    pair = list(related_rows(3, dtype=precision))
    pair[side] = np.where(np.eye(4, 3), np.nan, pair[side]).astype(precision)
    assert np.isnan(paired_contrastive(*pair))
