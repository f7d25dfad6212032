"""NT-Xent: closed forms, layout, values of the lessons, rows without a length."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_rows import related_rows
from properties import assert_rows_agree

from contrastive_jax import clip_loss, nt_xent, nt_xent_loss
from contrastive_jax.exercises import oracles

RTOL = {"float32": 3e-6, "float64": 1e-13}


def of_views(view1, view2, temperature):
    """The stacked loss of two views, its temperature traced."""
    return nt_xent(jnp.concatenate([view1, view2]), temperature)


evaluate = jax.jit(jax.value_and_grad(of_views, argnums=(0, 1, 2)))


# Closed forms


@pytest.mark.parametrize("temperature", [0.05, 0.2, 0.5, 1.0, 2.0])
def test_two_orthogonal_pairs(temperature, precision):
    eye = np.eye(2, dtype=precision)
    expected = math.log1p(2 * math.exp(-1 / temperature))
    # Near zero float32 can only hold 1 + loss: the error is that of the 1.
    close = {"rtol": RTOL[precision], "atol": float(np.finfo(precision).eps)}
    np.testing.assert_allclose(nt_xent_loss(eye, eye, temperature), expected, **close)
    np.testing.assert_allclose(nt_xent(np.tile(eye, (2, 1)), temperature), expected, **close)


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, 0.5514447), (0.5, 0.2395448)])
def test_two_orthogonal_pairs_in_figures(temperature, expected, precision):
    eye = np.eye(2, dtype=precision)
    assert float(nt_xent_loss(eye, eye, temperature)) == pytest.approx(expected, abs=1e-7)


def test_default_temperature_is_one_half(precision):
    view1, view2 = related_rows(0, dtype=precision)
    assert nt_xent_loss(view1, view2) == nt_xent_loss(view1, view2, 0.5) != nt_xent_loss(view1, view2, 0.4)
    stacked = np.concatenate([view1, view2])
    assert nt_xent(stacked) == nt_xent(stacked, 0.5)


def test_one_pair_costs_nothing_and_pulls_nowhere(precision):
    for seed in range(10):
        views = related_rows(seed, size=1, width=5, dtype=precision)
        for temperature in (1e-3, 0.07, 1e3):
            assert nt_xent_loss(*views, temperature) == 0.0
            value, slopes = evaluate(*views, temperature)
            assert value == 0.0
            for slope in slopes:
                np.testing.assert_array_equal(slope, np.zeros(slope.shape))


def test_one_pair_at_a_temperature_known_to_the_compiler(precision):
    # A compiler that knows the temperature multiplies by its inverse. Were that done after the product, it would be
    # merged with the subtraction in the softmax, and the loss would be 4e-7 or 9e-16.
    known = jax.jit(jax.value_and_grad(lambda view1, view2: nt_xent_loss(view1, view2, 0.07), argnums=(0, 1)))
    for seed in range(10):
        value, slopes = known(*related_rows(seed, size=1, width=5, dtype=precision))
        assert value == 0.0 and not np.any(slopes)


def test_equal_rows_cost_the_log_of_the_candidates_and_pull_nowhere(precision):
    rows = np.full((4, 3), 2, precision)
    # No factor temperature / base temperature is applied either: at 0.1 / 0.07 this would be 43 % more.
    for temperature in (0.01, 0.1, 1.0):
        value, slopes = evaluate(rows, rows, temperature)
        np.testing.assert_allclose(value, math.log(7), rtol=RTOL[precision])
        for slope in slopes[:2]:
            np.testing.assert_allclose(slope, np.zeros((4, 3)), atol=2 * np.finfo(precision).eps / temperature)


def test_rows_that_are_not_alike_in_the_two_views(precision):
    # Cosines that the four anchors see, the partner's last: 1, 0, 1; 1, 1, 0; 1, 0, 1; 0, 0, 0.
    view1 = np.array([[1.0, 0.0], [1.0, 0.0]], precision)
    view2 = np.eye(2, dtype=precision)
    crowded = math.log(2 + math.exp(-1))
    expected = (crowded + (crowded + 1) + crowded + math.log(3)) / 4
    np.testing.assert_allclose(nt_xent_loss(view1, view2, 1.0), expected, rtol=RTOL[precision])


# Layout


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_interleaved_views_cost_the_whole_scale_more(temperature, precision):
    # Two orthogonal pairs as e1, e1, e2, e2: each row's partner by position is orthogonal to it, while the row that it
    # is equal to counts as a negative.
    eye = np.eye(2, dtype=precision)
    stacked, interleaved = np.tile(eye, (2, 1)), np.repeat(eye, 2, axis=0)
    difference = nt_xent(interleaved, temperature) - nt_xent(stacked, temperature)
    np.testing.assert_allclose(difference, 1 / temperature, rtol=RTOL[precision])


def test_the_partner_is_half_the_rows_away(precision):
    # Every cosine differs, so that no other choice of partners has this value.
    view1, view2 = related_rows(1, dtype=precision)
    expected = oracles.nt_xent(view1.astype(float), view2.astype(float), 0.3)
    np.testing.assert_allclose(nt_xent(np.concatenate([view1, view2]), 0.3), expected, rtol=RTOL[precision])
    for wrong in (np.concatenate([view1, view2[::-1]]), np.stack([view1, view2], axis=1).reshape(8, 3)):
        assert abs(float(nt_xent(wrong, 0.3)) - expected) > 0.1


def test_two_views_are_stacked_in_order(precision):
    view1, view2 = related_rows(2, dtype=precision)
    assert nt_xent_loss(view1, view2, 0.3) == of_views(view1, view2, 0.3)
    slopes = jax.jit(jax.grad(lambda a, b: nt_xent_loss(a, b, 0.3), argnums=(0, 1)))(view1, view2)
    for actual, expected in zip(slopes, evaluate(view1, view2, 0.3)[1], strict=False):
        np.testing.assert_allclose(actual, expected, rtol=10 * RTOL[precision], atol=RTOL[precision])


# Six points laid out by hand, three images with two views each


def hand_laid(dtype):
    points = [[1.0, 0.1], [-0.1, 1.0], [-1.0, -0.1], [1.0, -0.1], [0.1, 1.0], [-1.0, 0.1]]
    return np.array(points, dtype)


@pytest.mark.parametrize(
    ("temperature", "expected"), [(0.05, 0.0), (0.1, 0.0003), (0.5, 0.3440), (1.0, 0.7813), (10.0, 1.5068)]
)
def test_hand_laid_points(temperature, expected, precision):
    assert float(nt_xent(hand_laid(precision), temperature)) == pytest.approx(expected, abs=5.1e-5)


def test_hand_laid_points_with_scrambled_partners(precision):
    scrambled = hand_laid(precision)[[3, 4, 5, 1, 2, 0]]
    assert float(nt_xent(scrambled)) == pytest.approx(3.2219, abs=5.1e-5)


@pytest.mark.parametrize(("size", "expected"), [(3, 1.6094), (8, 2.708), (64, 4.844)])
def test_chance(size, expected, precision):
    collapsed = np.ones((2 * size, 2), precision)
    assert float(nt_xent(collapsed)) == pytest.approx(expected, abs=5.1e-4)


# Against the other objectives of the same name


def test_clip_drops_the_negatives_of_the_own_view(precision):
    # Orthogonal pairs at temperature 1: two negatives against one. Equal rows: 2 B - 1 candidates against B.
    eye, equal = np.eye(2, dtype=precision), np.ones((8, 2), precision)
    for rows, expected in ((eye, (0.5514447, 0.3132617)), (equal, (math.log(15), math.log(8)))):
        values = float(nt_xent_loss(rows, rows, 1.0)), float(clip_loss(rows, rows, 0.0))
        assert values == pytest.approx(expected, abs=1e-6)


def summed_over_the_views(view1, view2, temperature):
    """The objective as the authors released it: blocks of a [B, 2B] matrix, and one mean added to the other."""
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (view1, view2))
    hidden = 1e9 * np.eye(len(a))

    def direction(anchors, others):
        logits = np.concatenate([anchors @ others.T / temperature, anchors @ anchors.T / temperature - hidden], axis=1)
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diagonal(logits))

    return direction(a, b) + direction(b, a)


def test_the_released_objective_is_twice_this_one(precision):
    view1, view2 = related_rows(3, dtype=precision)
    summed = summed_over_the_views(view1.astype(float), view2.astype(float), 0.5)
    np.testing.assert_allclose(2 * nt_xent_loss(view1, view2, 0.5), summed, rtol=RTOL[precision])
    eye = np.eye(2)
    assert summed_over_the_views(eye, eye, 1.0) == pytest.approx(2 * 0.5514447, abs=1e-6)


# Rows without a length, or nearly


def assert_like_oracle(view1: np.ndarray, view2: np.ndarray, temperature: float) -> None:
    tolerance = 1e-5 if view1.dtype == np.float32 else 1e-12
    wide = view1.astype(np.float64), view2.astype(np.float64), temperature
    value, actual = evaluate(view1, view2, temperature)
    np.testing.assert_allclose(value, oracles.nt_xent(*wide), rtol=tolerance)
    expected = oracles.nt_xent_gradients(*wide)
    for a, e in zip(actual[:2], expected[:2], strict=True):
        assert_rows_agree(a, e, tolerance)
    np.testing.assert_allclose(actual[2], expected.parameter, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dead", ["first", "second", "both", "one pair", "all"])
def test_zero_rows(dead, precision):
    view1, view2 = related_rows(4, dtype=precision)
    if dead in ("first", "both", "one pair"):
        view1[1] = 0
    if dead in ("second", "both"):
        view2[2] = 0
    if dead == "one pair":
        view2[1] = 0
    if dead == "all":
        view1[:] = view2[:] = 0
    assert_like_oracle(view1, view2, 0.5)


@pytest.mark.parametrize("length", [1e-30, 0.9e-12, 1.1e-12, 1e-6])
def test_rows_about_the_floor(length, precision):
    view1, view2 = related_rows(5, dtype=precision)
    view1[0] *= length / np.linalg.norm(view1[0])
    view2[3] *= length / np.linalg.norm(view2[3])
    assert_like_oracle(view1, view2, 0.5)


@pytest.mark.parametrize("largest", [1e30, 3e38])
def test_rows_whose_squares_overflow(largest, precision):
    view1, view2 = related_rows(6, dtype=precision)
    expected = oracles.nt_xent(view1.astype(float), view2.astype(float), 0.2)
    view1[2] *= np.asarray(largest / np.abs(view1[2]).max(), precision)
    value, slopes = evaluate(view1, view2, 0.2)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_nan_is_not_hidden(precision):
    stacked = np.concatenate(related_rows(7, dtype=precision))
    stacked[3, 1] = np.nan
    assert np.isnan(nt_xent(stacked))
    assert np.isnan(nt_xent(stacked[3:5]))  # a single pair, whose loss is 0 for all numbers
