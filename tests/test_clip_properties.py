"""What must hold of CLIP's loss for every input; for each property a wrong loss that breaks it."""

import math
from collections.abc import Callable

import jax
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
    doubled_batch_costs_log_two,
    holds,
    joint_permutation,
    no_pull_along_a_row,
    positive_rescaling_of_rows,
    rows,
    shared_change_of_basis,
    swap_of_the_sides,
)

from contrastive_jax import clip_loss, contrastive_logits

RTOL = {"float32": 1e-5, "float64": 1e-12}

seeds = st.integers(0, 10_000)
log_scales = st.floats(-2.0, 2.0)
any_rows = arrays(np.float64, (SIZE, WIDTH), elements=st.floats(-8, 8))

compiled = jax.jit(jax.value_and_grad(clip_loss, argnums=(0, 1, 2)))


def in_jax(dtype: str) -> Callable:
    """Value and three gradients of the loss under test."""

    def evaluate(images, texts, logit_scale):
        value, slopes = compiled(*(np.asarray(x, dtype) for x in (images, texts, logit_scale)))
        return (float(value), *(np.asarray(slope, float) for slope in slopes))

    return evaluate


def euler_identity(evaluate, images, texts, logit_scale, seed):
    """Scores are linear in either side and in exp(s), so <images, gradient> = <texts, gradient> = dL/ds.

    Rows below the norm floor are only divided by it; there the identity can be seen from outside.
    """
    images, texts = (0.9e-12 * x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, texts))
    _, by_images, by_texts, by_scale = evaluate(images, texts, logit_scale)
    # The sums may cancel to nothing, so they are compared at the size of their terms, about one.
    return [(1 + np.sum(images * by_images), 1 + by_scale), (1 + np.sum(texts * by_texts), 1 + by_scale)]


def scale_only_sharpens(evaluate, images, texts, logit_scale, seed):
    """With every partner the best candidate in both directions, a larger scale lowers the loss."""
    value, *_ = evaluate(images, images, logit_scale)
    larger, _, _, by_scale = evaluate(images, images, logit_scale + 0.5)
    return [(float(larger < value and by_scale < 0), 1.0)]


PROPERTIES = {
    f.__name__: f
    for f in (
        joint_permutation,
        swap_of_the_sides,
        positive_rescaling_of_rows,
        shared_change_of_basis,
        doubled_batch_costs_log_two,
        no_pull_along_a_row,
        euler_identity,
        scale_only_sharpens,
    )
}


@pytest.mark.parametrize("name", PROPERTIES)
@given(images=seeds, texts=seeds, logit_scale=log_scales, seed=seeds)
def test_property(name, images, texts, logit_scale, seed, precision):
    arguments = rows(images), rows(texts), logit_scale, seed
    assert holds(PROPERTIES[name], in_jax(precision), *arguments, RTOL[precision])


def cost(scores, axes=(0, 1)):
    """Cross-entropy of the diagonal along each axis; scores here are small enough for a plain exponential."""
    positive = np.exp(np.diagonal(scores))
    return -sum(np.mean(np.log(positive / np.exp(scores).sum(axis=axis))) for axis in axes) / len(axes)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


BREAKS = {
    "joint_permutation": lambda a, b, s: cost(unit(a) @ unit(b).T * np.arange(1, SIZE + 1) * math.exp(s)),
    "swap_of_the_sides": lambda a, b, s: cost(unit(a) @ unit(b).T * math.exp(s), axes=(1,)),
    "positive_rescaling_of_rows": lambda a, b, s: cost(unit(a) @ np.tanh(b).T * math.exp(s)),
    "shared_change_of_basis": lambda a, b, s: cost(np.abs(unit(a)) @ unit(b).T * math.exp(s)),
    "doubled_batch_costs_log_two": lambda a, b, s: len(a) * oracles.clip_loss(a, b, s),
    "no_pull_along_a_row": lambda a, b, s: cost(a @ b.T * math.exp(s)),
    "euler_identity": lambda a, b, s: oracles.clip_loss(a, b, s * s),
    "scale_only_sharpens": lambda a, b, s: cost(unit(a) @ unit(b).T / s),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_loss_without_the_property_is_noticed(name):
    arguments = rows(1), rows(2), 0.7, 3
    assert holds(PROPERTIES[name], by_differences(oracles.clip_loss), *arguments, tolerance=1e-5)
    assert not holds(PROPERTIES[name], by_differences(BREAKS[name]), *arguments, tolerance=1e-5)


# Against the scalar loops, and against itself


@given(images=any_rows, texts=any_rows, logit_scale=st.floats(-3, 6))
def test_value_of_any_rows(images, texts, logit_scale, precision):
    images, texts, logit_scale = (np.asarray(x, precision) for x in (images, texts, logit_scale))
    actual, *slopes = in_jax(precision)(images, texts, logit_scale)
    wide = images.astype(float), texts.astype(float), float(logit_scale)
    # Cosines carry a rounding error of a few units in the last place, times a scale of up to 100.
    error = 800 * float(np.finfo(precision).eps)
    np.testing.assert_allclose(actual, oracles.clip_loss(*wide), rtol=error, atol=error)
    assert all(np.isfinite(slope).all() for slope in slopes)
    logits = contrastive_logits(images, texts, logit_scale)
    np.testing.assert_allclose(logits, oracles.contrastive_logits(*wide), rtol=error, atol=error)


@given(images=seeds, texts=seeds, logit_scale=st.floats(-7, 7))
def test_all_gradients_over_the_whole_range_of_scales(images, texts, logit_scale, precision):
    # From exp(-7), about 1e-3, through the cap and beyond.
    images, texts, logit_scale = (np.asarray(x, precision) for x in (rows(images), rows(texts), logit_scale))
    _, *actual = in_jax(precision)(images, texts, logit_scale)
    expected = oracles.clip_gradients(images.astype(float), texts.astype(float), float(logit_scale))
    scale = math.exp(min(float(logit_scale), math.log(100)))
    error = 80 * float(np.finfo(precision).eps) * (1 + scale)
    for part, exact in zip(actual, expected, strict=True):
        assert np.max(np.abs(part - exact)) <= error * (np.max(np.abs(exact)) + scale)


@pytest.mark.parametrize("logit_scale", [-1.0, 0.5, 3.0])
def test_gradients_are_the_slopes_of_the_value(logit_scale, x64):
    evaluate = in_jax("float64")
    _, *actual = evaluate(rows(3), rows(4), logit_scale)
    expected = oracles.slopes(lambda a, b, s: evaluate(a, b, s)[0], rows(3), rows(4), logit_scale)
    for part, slope in zip(actual, expected, strict=True):
        assert np.max(np.abs(part - slope)) <= 1e-7 * np.max(np.abs(slope))
