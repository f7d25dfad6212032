"""The loss without negatives: its value, its gradient, and that it cannot tell agreement from collapse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_rows import related_rows
from properties import assert_rows_agree

from contrastive_jax import positive_only
from contrastive_jax.exercises import oracles

RTOL = {"float32": 3e-6, "float64": 1e-13}


def of_views(view1, view2):
    return positive_only(jnp.concatenate([view1, view2]))


evaluate = jax.jit(jax.value_and_grad(of_views, argnums=(0, 1)))


def test_cosines_one_and_zero(precision):
    z = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]], precision)
    assert positive_only(z) == -0.5
    assert positive_only(np.concatenate([z[:2], -z[:2]])) == 1.0


def test_interleaved_views_are_read_as_other_pairs(precision):
    eye = np.eye(2, dtype=precision)
    assert positive_only(np.tile(eye, (2, 1))) == -1.0
    assert positive_only(np.repeat(eye, 2, axis=0)) == 0.0


def test_it_reads_rows_as_stacked_views(precision):
    views = related_rows(0, dtype=precision)
    wide = [view.astype(float) for view in views]
    value, slopes = evaluate(*views)
    assert value.dtype == precision and value.shape == ()
    np.testing.assert_allclose(value, oracles.positive_only(*wide), rtol=RTOL[precision])
    for side, slope in enumerate(slopes):
        expected = oracles.centred_difference(
            lambda x, side=side: oracles.positive_only(*(x if i == side else wide[i] for i in (0, 1))), wide[side], 1e-5
        )
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


def test_agreement_and_collapse_cost_the_same(precision):
    views, _ = related_rows(1, dtype=precision)
    collapsed = np.ones_like(views)
    for rows in (views, collapsed):
        np.testing.assert_allclose(positive_only(np.concatenate([rows, rows])), -1.0, rtol=RTOL[precision])


def test_lengths_do_not_matter(precision):
    view1, view2 = related_rows(2, dtype=precision)
    lengths = np.array([[1e-3], [1.0], [10.0], [1e6]], precision)
    np.testing.assert_allclose(of_views(lengths * view1, view2), of_views(view1, view2), rtol=RTOL[precision])


@pytest.mark.parametrize("length", [0.0, 0.5e-12])
def test_rows_below_the_floor(length, precision):
    # There the row is divided by the floor alone: the slope is minus the partner's unit row / floor / batch.
    view1, view2 = related_rows(3, dtype=precision)
    view1[1] *= length / np.linalg.norm(view1[1])
    value, (slope, _) = evaluate(view1, view2)
    np.testing.assert_allclose(value, oracles.positive_only(view1.astype(float), view2.astype(float)), rtol=1e-5)
    partner = view2[1].astype(float) / np.linalg.norm(view2[1].astype(float))
    assert_rows_agree(slope[1:2], -partner[None] / 1e-12 / 4, 1e-5)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(half):
    view1, view2 = related_rows(4, dtype=half)
    loss = of_views(view1, view2)
    assert loss.dtype == jnp.float32
    wide = np.asarray(view1, np.float64), np.asarray(view2, np.float64)
    np.testing.assert_allclose(loss, oracles.positive_only(*wide), rtol=1e-6)
