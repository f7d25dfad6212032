"""Mistakes reported against public implementations of NT-Xent, each with the value it gives and the right one.

The wrong values are written out in plain arithmetic for two orthogonal pairs: every anchor has its partner at cosine 1
and two negatives at cosine 0. `s` is the inverse temperature.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from contrastive_jax import nt_xent, nt_xent_loss


def right(s: float) -> float:
    return math.log1p(2 * math.exp(-s))


E = math.e

# Report, inverse temperature, the value that the mistake gives.
REPORTS = {
    "lightning-bolts#609: takes e, not exp(1 / t), out of the sum for the self pair": (
        2.0,
        math.log((2 * E**2 + 2 - E) / E**2),
    ),
    "simclr#20: multiplies the self logit by zero, so that exp(0) = 1 stays": (1.0, math.log(1 + 3 / E)),
    "contrastive-learner#2: divides the sum over 2B anchors by 2(B - 1)": (1.0, 4 / 2 * right(1.0)),
    "catalyst#1278: no negatives of the own view": (1.0, math.log1p(1 / E)),
    "SupContrast#106: multiplies by temperature / base temperature": (10.0, 0.1 / 0.07 * right(10.0)),
    "info-nce#17: the positive is not divided by the temperature": (10.0, math.log(1 + 2 / E)),
    "Deep-ML#578: published with a digit too many": (2.0, 2.2395),
    "GraphCL#27: the positive is left out of the denominator": (1.0, math.log(2) - 1),
    "simclr#158, Spijkervet#30: interleaved views in a stacked loss": (1.0, 1 + right(1.0)),
    "TensorFlow release: the means of both views are added": (1.0, 2 * right(1.0)),
}


@pytest.mark.parametrize("report", REPORTS)
def test_report(report, precision):
    s, wrong = REPORTS[report]
    eye = np.eye(2, dtype=precision)
    value = float(nt_xent_loss(eye, eye, 1 / s))
    assert value == pytest.approx(right(s), abs=1e-6)
    assert abs(value - wrong) > 3e-5, "the case does not tell the mistake"


def test_the_self_term_is_no_constant_that_overflows():
    # lightning-bolts#811: exp(1 / 0.01) is beyond float32.
    eye = np.eye(2, dtype="float32")
    assert nt_xent_loss(eye, eye, 0.01) == 0.0


@pytest.mark.parametrize("temperature", [1e-2, 1e-3])
def test_no_epsilon_inside_the_logarithm_and_no_finite_mask(temperature, precision):
    # lightning-bolts#681: log(positive / (sum + 1e-6)) stops at 14. With the partners exchanged every anchor meets a
    # copy of itself as a negative and its partner at cosine 0: the whole scale is lost.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(nt_xent_loss(eye, eye[::-1], temperature), 1 / temperature, rtol=1e-6)


def test_opposite_rows_do_not_fall_below_the_mask(precision):
    # All others of an anchor are opposite to it: scores of -1 / t, still above the self pair. At t = 1e-10 a mask of
    # -1e9 would be the largest score of its row.
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]], precision)
    assert nt_xent(rows, 1e-10) == 0.0
    pair = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], precision)
    np.testing.assert_allclose(nt_xent(pair, 1e-10), 1e10 * 2, rtol=1e-6)


def test_a_mask_beyond_half_precision():
    # gluon-face#28, apex#1052: 1e9 is infinite in float16, and 0 times infinity is NaN all over the row.
    eye = jnp.eye(2, dtype="float16")
    assert float(nt_xent_loss(eye, eye, 1.0)) == pytest.approx(right(1.0), abs=1e-6)


def test_every_batch_has_its_own_size():
    # SimCLR ports keep the labels of the first batch: the short last one fails (sthalles#60, vissl#471).
    for size in (4, 3):
        rows = np.ones((size, 3), "float32")
        np.testing.assert_allclose(nt_xent_loss(rows, rows), math.log(2 * size - 1), rtol=1e-6)
