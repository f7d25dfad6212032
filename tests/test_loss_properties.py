"""What must hold of the losses for every input, and for each property a wrong loss that breaks it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from families import CLIP, FAMILIES, NT_XENT, PAIRED
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from properties import (
    SIZE,
    WIDTH,
    a_larger_scale_sharpens,
    any_row_may_change_sides,
    by_differences,
    doubled_batch_costs_log_two,
    euler_of_a_log_scale,
    euler_of_a_temperature,
    euler_of_one_pile,
    holds,
    joint_permutation,
    no_pull_along_a_row,
    positive_rescaling_of_rows,
    rows,
    shared_change_of_basis,
    swap_of_the_sides,
)

from contrastive_jax.exercises import oracles

RTOL = {"float32": 1e-5, "float64": 1e-12}

seeds = st.integers(0, 10_000)
any_rows = arrays(np.float64, (SIZE, WIDTH), elements=st.floats(-8, 8))
usual_scales = st.floats(0.1, 10)
any_power = st.floats(-3, 3)


# Wrong losses of two sides, and of one pile; scores here are small enough for a plain exponential.


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def cost(scores, axes=(0, 1)):
    """Cross-entropy of the diagonal along each axis."""
    positive = np.exp(np.diagonal(scores))
    return -sum(np.mean(np.log(positive / np.exp(scores).sum(axis=axis))) for axis in axes) / len(axes)


def pile_cost(z, scores, anchors=slice(None)):
    """Mean cost of the partners."""
    batch = len(z) // 2
    exponentials = np.where(np.eye(len(z), dtype=bool), 0, np.exp(scores))
    partners = exponentials[np.arange(2 * batch), (np.arange(2 * batch) + batch) % (2 * batch)]
    return -np.mean(np.log(partners / exponentials.sum(axis=1))[anchors])


def of_pile(score: Callable, anchors=slice(None)) -> Callable:
    """The loss of other scores than the cosines over t, or of some anchors only."""
    return lambda a, b, t: pile_cost(np.concatenate([a, b]), score(np.concatenate([a, b]), t), anchors)


def two_sided(oracle: Callable, scale: Callable) -> list[tuple[Callable, Callable]]:
    return [
        (joint_permutation, lambda a, b, p: cost(unit(a) @ unit(b).T * np.arange(1, SIZE + 1) * scale(p))),
        (swap_of_the_sides, lambda a, b, p: cost(unit(a) @ unit(b).T * scale(p), axes=(1,))),
        (positive_rescaling_of_rows, lambda a, b, p: cost(unit(a) @ np.tanh(b).T * scale(p))),
        (shared_change_of_basis, lambda a, b, p: cost(np.abs(unit(a)) @ unit(b).T * scale(p))),
        (doubled_batch_costs_log_two, lambda a, b, p: len(a) * oracle(a, b, p)),
        (no_pull_along_a_row, lambda a, b, p: cost(a @ b.T * scale(p))),
    ]


# For each loss: properties with a wrong loss that lacks them.
PROPERTIES = {
    "paired": [
        *two_sided(PAIRED.oracle, PAIRED.scale),
        (euler_of_a_temperature(PAIRED.norm_floor), lambda a, b, t: PAIRED.oracle(a, b, t * t)),
    ],
    "nt_xent": [
        (joint_permutation, of_pile(lambda z, t: unit(z) @ unit(z).T * np.arange(1, 2 * SIZE + 1) / t)),
        (swap_of_the_sides, of_pile(lambda z, t: unit(z) @ unit(z).T / t, slice(SIZE))),
        (any_row_may_change_sides, PAIRED.oracle),
        (positive_rescaling_of_rows, of_pile(lambda z, t: unit(z) @ np.tanh(z).T / t)),
        (shared_change_of_basis, of_pile(lambda z, t: np.abs(unit(z)) @ unit(z).T / t)),
        (no_pull_along_a_row, of_pile(lambda z, t: z @ z.T / t)),
        (euler_of_one_pile(NT_XENT.norm_floor), lambda a, b, t: NT_XENT.oracle(a, b, t * t)),
    ],
    "clip": [
        *two_sided(CLIP.oracle, math.exp),
        (euler_of_a_log_scale(CLIP.norm_floor), lambda a, b, s: CLIP.oracle(a, b, s * s)),
        (a_larger_scale_sharpens, lambda a, b, s: cost(unit(a) @ unit(b).T / s)),
    ],
}
EACH = [
    pytest.param(name, prop, wrong, id=f"{name}-{prop.__name__}")
    for name, known in PROPERTIES.items()
    for prop, wrong in known
]


@pytest.mark.parametrize(("name", "prop", "wrong"), EACH)
@given(left=seeds, right=seeds, scale=usual_scales, seed=seeds)
def test_property(name, prop, wrong, left, right, scale, seed, precision):
    family = FAMILIES[name]
    inputs = rows(left), rows(right), family.parameter_of(scale)
    assert holds(prop, family.in_jax(precision), *inputs, seed, RTOL[precision])


@pytest.mark.parametrize(("name", "prop", "wrong"), EACH)
def test_a_loss_without_the_property_is_noticed(name, prop, wrong):
    inputs = rows(1), rows(2), 0.6, 3
    assert holds(prop, by_differences(FAMILIES[name].oracle), *inputs, tolerance=1e-5)
    assert not holds(prop, by_differences(wrong), *inputs, tolerance=1e-5)


# Against the scalar loops, and against itself


def rounding(precision: str, scale: float) -> float:
    """Cosines carry an error of a few units in the last place, which the scale multiplies."""
    return 8 * float(np.finfo(precision).eps) * (1 + scale)


def assert_agrees_with_the_loops(family, precision, left, right, parameter):
    actual, *slopes = family.in_jax(precision)(left, right, parameter)
    assert all(np.isfinite(part).all() for part in (actual, *slopes))
    wide = left.astype(float), right.astype(float), float(parameter)
    scale = family.scale(float(parameter))
    error = rounding(precision, scale)
    np.testing.assert_allclose(actual, family.oracle(*wide), rtol=error, atol=error)
    return slopes, family.gradients(*wide), error, scale


@pytest.mark.parametrize("name", FAMILIES)
@given(left=any_rows, right=any_rows, scale=usual_scales)
def test_value_of_any_rows(name, left, right, scale, precision):
    family = FAMILIES[name]
    inputs = (np.asarray(x, precision) for x in (left, right, family.parameter_of(scale)))
    assert_agrees_with_the_loops(family, precision, *inputs)


@pytest.mark.parametrize("name", FAMILIES)
@given(left=seeds, right=seeds, power=any_power)
def test_all_gradients_over_six_decades_of_the_scale(name, left, right, power, precision):
    # For CLIP through the cap and beyond it.
    family = FAMILIES[name]
    inputs = (np.asarray(x, precision) for x in (rows(left), rows(right), family.parameter_of(10**power)))
    slopes, expected, error, scale = assert_agrees_with_the_loops(family, precision, *inputs)
    for part, exact in zip(slopes, expected, strict=True):
        assert np.max(np.abs(part - exact)) <= 10 * error * (np.max(np.abs(exact)) + scale)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
def test_gradients_are_the_slopes_of_the_value(name, scale, x64):
    family = FAMILIES[name]
    evaluate, inputs = family.in_jax("float64"), (rows(3), rows(4), family.parameter_of(scale))
    _, *actual = evaluate(*inputs)
    expected = oracles.slopes(lambda *args: evaluate(*args)[0], *inputs)
    for part, slope in zip(actual, expected, strict=True):
        assert np.max(np.abs(part - slope)) <= 1e-7 * np.max(np.abs(slope))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("kind", ["equal", "opposite", "zero", "long", "short"])
def test_extreme_scales_of_extreme_rows(name, kind, scale, precision):
    # Every score is at an end of its range, or every row at an end of the floor's.
    family, some = FAMILIES[name], rows(5)
    left, right = {
        "equal": (np.ones_like(some), np.ones_like(some)),
        "opposite": (some, -some),
        "zero": (0 * some, 0 * some),
        "long": (1e30 * some, 1e36 * some),
        "short": (1e-30 * some, 1e-36 * some),
    }[kind]
    parameter = family.parameter_of(scale)
    value, *slopes = family.in_jax(precision)(left, right, parameter)
    assert all(np.isfinite(slope).all() for slope in slopes)
    np.testing.assert_allclose(value, family.oracle(left, right, parameter), rtol=1e-5, atol=1e-5 if scale > 1 else 0)
