"""The oracles against values that come from somewhere else, and proof that a wrong oracle would be noticed."""

import itertools
import math

import numpy as np
import pytest

from contrastive_jax.exercises import oracles


def example(batch: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(batch * 100 + width)
    return rng.normal(size=(batch, width)), rng.normal(size=(batch, width))


def test_value_by_hand():
    # Cosines [[1, 0.6], [0, 0.8]]; both directions written out.
    left = np.array([[2.0, 0.0], [0.0, 0.5]])
    right = np.array([[3.0, 0.0], [0.6, 0.8]])
    rows = math.log(1 + math.exp(-0.4)) + math.log(1 + math.exp(-0.8))
    columns = math.log(1 + math.exp(-1.0)) + math.log(1 + math.exp(-0.2))
    assert oracles.paired_contrastive(left, right, 1.0) == pytest.approx((rows + columns) / 4, rel=1e-14)


def test_nt_xent_by_hand():
    # Cosines of stacked rows e1, e2, e1, u with u = (0.6, 0.8): each line is one anchor, its partner's term first.
    view1 = np.array([[2.0, 0.0], [0.0, 0.5]])
    view2 = np.array([[3.0, 0.0], [0.6, 0.8]])
    costs = [
        math.log(math.e + 1 + math.exp(0.6)) - 1,
        math.log(math.exp(0.8) + 1 + 1) - 0.8,
        math.log(math.e + 1 + math.exp(0.6)) - 1,
        math.log(math.exp(0.8) + math.exp(0.6) + math.exp(0.6)) - 0.8,
    ]
    assert oracles.nt_xent(view1, view2, 1.0) == pytest.approx(sum(costs) / 4, rel=1e-14)


def test_clip_by_hand():
    left = np.array([[2.0, 0.0], [0.0, 0.5]])
    right = np.array([[3.0, 0.0], [0.6, 0.8]])
    np.testing.assert_allclose(oracles.contrastive_logits(left, right, math.log(5)), [[5, 3], [0, 4]], atol=1e-14)
    np.testing.assert_allclose(oracles.contrastive_logits(left, right, 7.0), [[100, 60], [0, 80]], atol=1e-12)
    rows = math.log1p(math.exp(-2)) + math.log1p(math.exp(-4))
    columns = math.log1p(math.exp(-5)) + math.log1p(math.exp(-1))
    assert oracles.clip_loss(left, right, math.log(5)) == pytest.approx((rows + columns) / 4, rel=1e-13)


def test_positive_only_by_hand():
    left, right = np.array([[2.0, 0.0], [0.0, 0.5]]), np.array([[3.0, 0.0], [0.6, 0.8]])
    assert oracles.positive_only(left, right) == pytest.approx(-0.9, rel=1e-14)


def agree(actual: oracles.Gradients, expected: oracles.Gradients) -> bool:
    return all(np.max(np.abs(a - e)) <= 1e-7 * np.max(np.abs(e)) for a, e in zip(actual, expected, strict=True))


@pytest.mark.parametrize(("batch", "width", "temperature"), [(2, 2, 0.2), (3, 5, 1.0), (5, 3, 0.5)])
def test_closed_form_gradients_are_the_slopes(batch, width, temperature):
    left, right = example(batch, width)
    closed = oracles.paired_gradients(left, right, temperature)
    assert agree(closed, oracles.slopes(oracles.paired_contrastive, left, right, temperature))


@pytest.mark.parametrize(("batch", "width", "temperature"), [(2, 2, 0.2), (3, 5, 1.0), (4, 3, 0.5)])
def test_closed_form_gradients_of_nt_xent_are_the_slopes(batch, width, temperature):
    views = example(batch, width)
    closed = oracles.nt_xent_gradients(*views, temperature)
    assert agree(closed, oracles.slopes(oracles.nt_xent, *views, temperature))


@pytest.mark.parametrize(("batch", "width", "logit_scale"), [(2, 2, 1.5), (3, 5, -0.5), (4, 3, 0.7)])
def test_closed_form_gradients_of_clip_are_the_slopes(batch, width, logit_scale):
    pair = example(batch, width)
    assert agree(oracles.clip_gradients(*pair, logit_scale), oracles.slopes(oracles.clip_loss, *pair, logit_scale))


def test_gradient_by_the_log_scale_is_kept_at_the_cap_and_not_above():
    pair = example(3, 4)
    at_cap = oracles.clip_gradients(*pair, math.log(100)).parameter
    below = oracles.clip_gradients(*pair, math.log(100) - 1e-9).parameter
    assert at_cap == pytest.approx(float(below), rel=1e-6) != 0
    assert oracles.clip_gradients(*pair, math.log(100) + 1e-6).parameter == 0


@pytest.mark.parametrize("field", ["left", "right", "parameter"])
def test_a_gradient_off_by_one_millionth_is_noticed(field):
    left, right = example(3, 5)
    closed = oracles.paired_gradients(left, right, 0.5)
    wrong = closed._replace(**{field: getattr(closed, field) * (1 + 1e-6)})
    assert not agree(wrong, oracles.slopes(oracles.paired_contrastive, left, right, 0.5))


def test_gradient_below_the_floor_is_the_slope():
    left, right = example(3, 4)
    left[1] *= 1e-8
    closed = oracles.paired_gradients(left, right, 0.5)
    one_row = oracles.centred_difference(
        lambda row: oracles.paired_contrastive(np.stack([left[0], row, left[2]]), right, 0.5), left[1], 1e-3
    )
    np.testing.assert_allclose(closed.left[1], one_row, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("scores", [[1.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0]])
def test_expected_credit_is_the_mean_over_all_ways_to_break_ties(scores, k):
    positive = 0
    hits = [
        sorted(range(4), key=lambda i: (-scores[i], order[i])).index(positive) < k
        for order in itertools.permutations(range(4))
    ]
    assert oracles.query_credit(scores, positive, k, "expected") == pytest.approx(np.mean(hits))
    assert oracles.query_credit(scores, positive, k, "strict") == float(all(hits))
