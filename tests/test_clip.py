"""CLIP's logits and loss, in the tiers of the lesson: T0 stays finite, T1 the worked example, T2 all of the rest."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_rows import related_rows
from properties import assert_rows_agree

from contrastive_jax import clip_loss, contrastive_logits
from contrastive_jax.exercises import oracles

RTOL = {"float32": 3e-6, "float64": 1e-13}
LOG_2 = math.log(2)

evaluate = jax.jit(jax.value_and_grad(clip_loss, argnums=(0, 1, 2)))


def wide(*arrays):
    return [np.asarray(x, np.float64) for x in arrays]


# T0: one pair, and features without a length


@pytest.mark.parametrize("logit_scale", [-3.0, 0.0, math.log(100), 50.0])
def test_one_pair_costs_nothing_and_pulls_nowhere(logit_scale, precision):
    for seed in range(5):
        images, texts = related_rows(seed, size=1, width=5, dtype=precision)
        value, slopes = evaluate(images, texts, logit_scale)
        assert value == 0.0
        for slope in slopes:
            np.testing.assert_array_equal(slope, np.zeros(slope.shape))


def test_zero_features_score_zero(precision):
    images, texts = related_rows(0, dtype=precision)
    nothing = np.zeros_like(images)
    np.testing.assert_array_equal(contrastive_logits(nothing, texts, 50.0), np.zeros((4, 4)))
    for pair in ((nothing, texts), (images, nothing), (nothing, nothing)):
        value, slopes = evaluate(*pair, 2.0)
        np.testing.assert_allclose(value, math.log(4), rtol=RTOL[precision])
        assert all(np.isfinite(slope).all() for slope in slopes)


# T1: two matched orthogonal pairs


def test_two_orthogonal_pairs(precision):
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(contrastive_logits(eye, eye, LOG_2), 2 * np.eye(2), rtol=RTOL[precision])
    np.testing.assert_allclose(clip_loss(eye, eye, LOG_2), math.log1p(math.exp(-2)), rtol=RTOL[precision])
    assert float(clip_loss(eye, eye, LOG_2)) == pytest.approx(0.126928, abs=1e-6)


@pytest.mark.parametrize("logit_scale", [-2.0, 0.0, 1.0, 2.0])
def test_the_scale_is_the_exponential(logit_scale, precision):
    eye = np.eye(2, dtype=precision)
    scale = math.exp(logit_scale)
    np.testing.assert_allclose(contrastive_logits(eye, -eye, logit_scale), -scale * eye, rtol=RTOL[precision])
    expected = math.log1p(math.exp(-scale))
    np.testing.assert_allclose(clip_loss(eye, eye, logit_scale), expected, rtol=RTOL[precision], atol=1.2e-7)


# T2: values


def test_a_scale_of_zero_is_a_guess(precision):
    images, texts = related_rows(1, dtype=precision)
    for logit_scale in (-200.0, -1e30, -math.inf):
        value, slopes = evaluate(images, texts, logit_scale)
        np.testing.assert_allclose(value, math.log(4), rtol=RTOL[precision])
        assert all(np.isfinite(slope).all() for slope in slopes)


def test_rows_are_images_and_columns_texts(precision):
    images = np.array([[3.0, 0.0], [0.0, 0.5], [1.0, 1.0]], precision)
    texts = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 7.0]], precision)
    c = math.sqrt(0.5)
    expected = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [c, c, c]]) * math.e
    np.testing.assert_allclose(contrastive_logits(images, texts, 1.0), expected, rtol=RTOL[precision])


def test_the_two_directions_differ(precision):
    # Cosines [[1, 1], [0, 0]]: both images find two equal texts, while the texts find one right and one wrong image.
    images = np.eye(2, dtype=precision)
    texts = np.array([[1.0, 0.0], [1.0, 0.0]], precision)
    from_images = math.log(2)
    from_texts = (math.log1p(math.exp(-1)) + math.log1p(math.e)) / 2
    assert from_texts - from_images > 0.1
    np.testing.assert_allclose(clip_loss(images, texts, 0.0), (from_images + from_texts) / 2, rtol=RTOL[precision])


def test_duplicate_captions_are_false_negatives(precision):
    # sentence-transformers#3189: images stay at log 2 in their direction and feel nothing from it; what they feel comes
    # from the texts.
    images = np.eye(2, dtype=precision)
    texts = np.array([[1.0, 0.0], [1.0, 0.0]], precision)
    _, (by_images, _, _) = evaluate(images, texts, 0.0)
    # Only image 1 is turned: text 0 pushes it away with its share 1 / (1 + e), text 1 pulls with 1 - that share,
    # both along the texts' direction and halved by the two directions and by the batch.
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(by_images, [[0, 0], [(share - (1 - share)) / 4, 0]], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("logit_scale", [0.5, 2.659260036932778, 4.5])
def test_loss_and_gradients_are_those_of_scalar_loops(logit_scale, precision):
    images, texts = related_rows(2, dtype=precision)
    logit_scale = float(np.asarray(logit_scale, precision))
    value, actual = evaluate(images, texts, logit_scale)
    exact = {"rtol": 100 * RTOL[precision], "atol": 100 * float(np.finfo(precision).eps)}
    np.testing.assert_allclose(value, oracles.clip_loss(*wide(images, texts), logit_scale), **exact)
    expected = oracles.clip_gradients(*wide(images, texts), logit_scale)
    for a, e in zip(actual, expected, strict=True):
        assert np.max(np.abs(a - e)) <= 100 * RTOL[precision] * np.max(np.abs(e))


def test_gradients_of_the_logits(precision):
    # Weighted so that every score counts differently; by differences of the scalar loops.
    images, texts = related_rows(3, dtype=precision)
    weights = np.arange(1.0, 17.0).reshape(4, 4).astype(precision)

    def weighted(images, texts, logit_scale):
        return jnp.sum(weights * contrastive_logits(images, texts, logit_scale))

    actual = jax.jit(jax.grad(weighted, argnums=(0, 1, 2)))(images, texts, 1.5)
    expected = oracles.slopes(
        lambda a, b, s: float(np.sum(weights * oracles.contrastive_logits(a, b, s))), *wide(images, texts), 1.5
    )
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=2e-5, atol=2e-5 * np.abs(e).max())


# T2: rows about the norm floor, and numbers at the end of the range


@pytest.mark.parametrize("length", [0.0, 1e-30, 0.9e-12, 1.1e-12, 1e-6])
def test_rows_about_the_floor(length, precision):
    images, texts = related_rows(4, dtype=precision)
    images[0] *= length / np.linalg.norm(images[0])
    texts[3] *= length / np.linalg.norm(texts[3])
    value, actual = evaluate(images, texts, 1.0)
    tolerance = 1e-5 if precision == "float32" else 1e-12
    np.testing.assert_allclose(value, oracles.clip_loss(*wide(images, texts), 1.0), rtol=tolerance)
    expected = oracles.clip_gradients(*wide(images, texts), 1.0)
    for a, e in zip(actual[:2], expected[:2], strict=True):
        assert_rows_agree(a, e, tolerance)


@pytest.mark.parametrize("logit_scale", [5.0, 1e4, 3e38, 1e300, math.inf, 10**400, np.float64(1e200), np.int64(2**60)])
def test_huge_log_scales_are_capped(logit_scale, precision):
    images, texts = related_rows(5, dtype=precision)
    logits = contrastive_logits(images, texts, logit_scale)
    np.testing.assert_allclose(logits, oracles.contrastive_logits(*wide(images, texts), 1e9), rtol=1e-5, atol=1e-4)
    assert np.isfinite(clip_loss(images, texts, logit_scale))


def test_huge_negative_log_scales_score_zero(precision):
    images, texts = related_rows(5, dtype=precision)
    for logit_scale in (-1e300, -math.inf, -(10**400)):
        np.testing.assert_array_equal(np.abs(contrastive_logits(images, texts, logit_scale)), np.zeros((4, 4)))


@pytest.mark.parametrize("where", ["images", "texts", "scale"])
def test_nan_is_not_hidden(where, precision):
    images, texts = related_rows(6, dtype=precision)
    if where == "images":
        images[1, 1] = np.nan
    if where == "texts":
        texts[2, 0] = np.nan
    scale = jnp.asarray(np.nan if where == "scale" else 1.0, precision)
    assert np.isnan(clip_loss(images, texts, scale))
    assert np.isnan(contrastive_logits(images, texts, scale)).any()
