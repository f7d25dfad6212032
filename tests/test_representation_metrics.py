"""Spread, mean cosine, alignment, uniformity and hardest negatives, and the usual wrong ways to measure them."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import oracles_shapes as oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrastive_jax import alignment, feature_spread, hardest_negatives, mean_cosine, uniformity

OF_ROWS = {
    "feature_spread": (feature_spread, oracles.feature_spread),
    "mean_cosine": (mean_cosine, oracles.mean_cosine),
    "uniformity": (uniformity, lambda rows: oracles.uniformity(rows, 2)),
    "alignment": (
        lambda rows: alignment(*np.split(rows, 2)),
        lambda rows: oracles.alignment(*np.split(rows, 2), 2),
    ),
}
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def rows(seed: int, count: int = 6, dim: int = 3) -> np.ndarray:
    # Not centred, and of uneven lengths.
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(count, dim)) + 0.5) * rng.uniform(0.1, 3.0, size=(count, 1))


def agrees(measure: Callable, oracle: Callable, x: np.ndarray, dtype: str) -> bool:
    x = x.astype(dtype)
    return np.allclose(measure(x), oracle(x.astype(float)), rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("name", OF_ROWS)
@given(seed=st.integers(0, 1000))
def test_against_scalar_loops(name, seed, precision):
    assert agrees(*OF_ROWS[name], rows(seed), precision)


@pytest.mark.parametrize("name", OF_ROWS)
def test_zero_rows_and_one_column(name, x64):
    with_zeros = rows(0)
    with_zeros[[0, 3]] = 0.0
    assert agrees(*OF_ROWS[name], with_zeros, "float64")
    assert agrees(*OF_ROWS[name], rows(1, dim=1), "float64")


def units(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def off_diagonal(table):
    return table[~np.eye(len(table), dtype=bool)]


def squared_distances(x):
    return np.sum((x[:, None] - x[None]) ** 2, axis=2)


WRONG = {
    "feature_spread": {
        "divided by count": lambda x: np.mean(np.std(x, axis=0)),
        "of all entries": lambda x: np.std(x, ddof=1),
        "over the features": lambda x: np.mean(np.std(x, axis=1, ddof=1)),
        "variance": lambda x: np.mean(np.var(x, axis=0, ddof=1)),
        "root of the mean variance": lambda x: np.sqrt(np.mean(np.var(x, axis=0, ddof=1))),
        "of normalised rows": lambda x: np.mean(np.std(units(x), axis=0, ddof=1)),
    },
    "mean_cosine": {
        "with itself": lambda x: np.mean(units(x) @ units(x).T),
        "not normalised": lambda x: np.mean(off_diagonal(x @ x.T)),
        "absolute": lambda x: np.mean(np.abs(off_diagonal(units(x) @ units(x).T))),
        "of features": lambda x: np.mean(off_diagonal(units(x.T) @ units(x.T).T)),
        "centred": lambda x: np.mean(off_diagonal(np.corrcoef(x))),
        "neighbours only": lambda x: np.mean(np.sum(units(x)[1:] * units(x)[:-1], axis=1)),
    },
    "uniformity": {
        "with itself": lambda x: np.log(np.mean(np.exp(-2 * squared_distances(units(x))))),
        "not normalised": lambda x: np.log(np.mean(np.exp(-2 * off_diagonal(squared_distances(x))))),
        "distance not squared": lambda x: np.log(
            np.mean(np.exp(-2 * off_diagonal(squared_distances(units(x))) ** 0.5))
        ),
        "t = 1": lambda x: np.log(np.mean(np.exp(-off_diagonal(squared_distances(units(x)))))),
        "mean of the logarithm": lambda x: -2 * np.mean(off_diagonal(squared_distances(units(x)))),
        "no logarithm": lambda x: np.mean(np.exp(-2 * off_diagonal(squared_distances(units(x))))),
        "summed": lambda x: np.log(np.sum(np.exp(-2 * off_diagonal(squared_distances(units(x)))))),
    },
    "alignment": {
        "not normalised": lambda x: np.mean(np.sum((x[:3] - x[3:]) ** 2, axis=1)),
        "not squared": lambda x: np.mean(np.linalg.norm(units(x)[:3] - units(x)[3:], axis=1)),
        "cosine": lambda x: np.mean(np.sum(units(x)[:3] * units(x)[3:], axis=1)),
        "1 - cosine": lambda x: 1 - np.mean(np.sum(units(x)[:3] * units(x)[3:], axis=1)),
        "interleaved": lambda x: np.mean(np.sum((units(x)[::2] - units(x)[1::2]) ** 2, axis=1)),
        "over all entries": lambda x: np.mean((units(x)[:3] - units(x)[3:]) ** 2),
        "summed": lambda x: np.sum((units(x)[:3] - units(x)[3:]) ** 2),
    },
}


@pytest.mark.parametrize(("name", "mistake"), [(name, mistake) for name in WRONG for mistake in WRONG[name]])
def test_a_wrong_measure_is_noticed(name, mistake):
    assert not all(agrees(WRONG[name][mistake], OF_ROWS[name][1], rows(seed), "float32") for seed in range(3))


def test_by_hand(precision):
    square = np.array([[2.0, 0.0], [0.0, 1.0], [-3.0, 0.0], [0.0, -1.0]], precision)
    # Each corner has two neighbours at squared distance 2 and one opposite at 4.
    expected = np.log((2 * np.exp(-4) + np.exp(-8)) / 3)
    np.testing.assert_allclose(uniformity(square), expected, rtol=1e-6)
    np.testing.assert_allclose(mean_cosine(square), -1 / 3, rtol=1e-6)
    np.testing.assert_allclose(alignment(square[:2], square[2:]), 4.0, rtol=1e-6)
    np.testing.assert_allclose(alignment(square[:2], square[2:], alpha=1), 2.0, rtol=1e-6)
    np.testing.assert_allclose(alignment(square, square), 0.0, atol=0)
    alike = np.full((5, 3), 7.0, precision)
    values = [feature_spread(alike), mean_cosine(alike), uniformity(alike)]
    np.testing.assert_allclose(values, [0, 1, 0], atol=1e-6)
    assert [value.dtype for value in values] == [precision] * 3


@pytest.mark.parametrize("t", [0.5, 100, 1000.0])
def test_uniformity_of_other_t_does_not_underflow(t, precision):
    # The least squared distance of these rows is 1.2: exp(-1200) is 0 even in float64.
    spread = units(np.eye(3) - 0.3)
    np.testing.assert_allclose(
        uniformity(spread.astype(precision), t=t), -t * 2 * (1 - spread[0] @ spread[1]), rtol=2e-6
    )


@pytest.mark.parametrize("alpha", [1, 2.5, 4])
def test_alignment_of_other_alpha(alpha, x64):
    left, right = np.split(rows(4), 2)
    np.testing.assert_allclose(alignment(left, right, alpha=alpha), oracles.alignment(left, right, alpha), rtol=1e-12)


@pytest.mark.parametrize("name", OF_ROWS)
def test_in_jax(name, x64):
    measure, oracle = OF_ROWS[name]
    stack = jnp.stack([jnp.asarray(rows(seed)) for seed in range(3)])
    expected = [oracle(np.asarray(x)) for x in stack]
    split = (lambda x: alignment(*jnp.split(x, 2))) if name == "alignment" else measure
    np.testing.assert_allclose(jax.jit(jax.vmap(split))(stack), expected, rtol=1e-12)
    slope = jax.jit(jax.grad(split))(stack[0])
    direction = np.random.default_rng(0).normal(size=stack[0].shape)
    ahead, behind = (oracle(np.asarray(stack[0]) + sign * 1e-6 * direction) for sign in (1, -1))
    np.testing.assert_allclose(np.sum(slope * direction), (ahead - behind) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("name", OF_ROWS)
def test_half_precision_is_computed_in_float32(name):
    measure, oracle = OF_ROWS[name]
    half = rows(0).astype("float16")
    value = measure(half)
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, oracle(half.astype(float)), rtol=1e-5)


def test_one_row_is_not_enough(as_installed):
    for measure in (feature_spread, mean_cosine, uniformity):
        with pytest.raises(ValueError, match=r"expected at least two rows, found shape \(1, 3\)\. Next step: "):
            measure(np.ones((1, 3), "float32"))


def test_wrong_constants(as_installed):
    two = np.eye(2, dtype="float32")
    for call, name in ((lambda x: uniformity(two, t=x), "t"), (lambda x: alignment(two, two, alpha=x), "alpha")):
        for value in (0, -1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=rf"^{name}: expected a positive finite number"):
                call(value)
        with pytest.raises(TypeError, match=rf"^{name}: expected a Python number"):
            call("2")


# Hardest negatives

NAN, INF = float("nan"), float("inf")


def stacked_negatives(batch: int) -> np.ndarray:
    return ~np.tile(np.eye(batch, dtype=bool), (2, 2))


def agrees_on_hardest(hardest: Callable, scores: np.ndarray, negatives: np.ndarray, dtype: str = "float32") -> bool:
    actual = hardest(scores.astype(dtype), negatives)
    return np.allclose(actual, oracles.hardest_negatives(scores, negatives), rtol=1e-6, equal_nan=True)


@given(seed=st.integers(0, 1000), special=st.sampled_from([0.0, NAN, INF, -INF]))
def test_hardest_negatives_against_loops(seed, special, precision):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(4, 5))
    scores[rng.integers(4), rng.integers(5)] = special
    assert agrees_on_hardest(hardest_negatives, scores, rng.uniform(size=(4, 5)) < 0.5, precision)


def test_hardest_negatives_of_stacked_views_leave_out_the_row_and_its_partner():
    scores = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(hardest_negatives(scores.astype("float32"), stacked_negatives(2)), [3, 6, 11, 14])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda scores, negatives: scores.max(axis=1),
        lambda scores, negatives: np.where(negatives, scores, 0).max(axis=1),
        lambda scores, negatives: np.where(negatives, np.abs(scores), -np.inf).max(axis=1),
        lambda scores, negatives: np.where(negatives, scores, -np.inf).max(axis=0),
        lambda scores, negatives: np.where(negatives, scores, np.inf).min(axis=1),
        lambda scores, negatives: np.where(~negatives, scores, -np.inf).max(axis=1),
        lambda scores, negatives: np.nanmean(np.where(negatives, scores, np.nan), axis=1),
        lambda scores, negatives: np.where(~np.eye(len(scores), dtype=bool), scores, -np.inf).max(axis=1),
    ],
    ids=["of all", "zero for positives", "absolute", "by column", "easiest", "of positives", "mean", "partner kept"],
)
def test_a_wrong_hardest_negative_is_noticed(wrong):
    scores = np.random.default_rng(0).normal(size=(4, 4)) - 2
    scores[0, 2] = 5.0  # a partner ahead of all negatives
    assert agrees_on_hardest(hardest_negatives, scores, stacked_negatives(2))
    assert not agrees_on_hardest(wrong, scores, stacked_negatives(2))


def test_hardest_negatives_in_jax():
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 4)), jnp.float32)
    loop = [hardest_negatives(each, stacked_negatives(2)) for each in scores]
    vmapped = jax.jit(jax.vmap(hardest_negatives, in_axes=(0, None)))(scores, jnp.asarray(stacked_negatives(2)))
    np.testing.assert_array_equal(vmapped, loop)
    assert hardest_negatives(scores[0].astype(jnp.bfloat16), stacked_negatives(2)).dtype == jnp.float32


def test_wrong_masks(as_installed):
    scores = np.eye(2, dtype="float32")
    for mask, found in ((np.eye(2), "float64"), (None, "NoneType"), (scores, "float32")):
        with pytest.raises(TypeError, match=rf"^negatives: expected a boolean array, found {found}\. Next step: "):
            hardest_negatives(scores, mask)
    with pytest.raises(ValueError, match=r"^negatives: expected the shape of scores, \(2, 2\), found \(2,\)"):
        hardest_negatives(scores, np.array([True, False]))


def test_oracles_by_hand():
    corner = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert oracles.mean_cosine(corner) == pytest.approx(2 * 0.5**0.5 / 3)
    assert oracles.feature_spread(corner) == pytest.approx((1.0 + (1 / 3) ** 0.5) / 2)
    assert oracles.alignment(corner[:1], corner[1:2], 2) == pytest.approx(2.0)
    distances = [2.0, 2 - 2**0.5, 2 - 2**0.5]
    assert oracles.uniformity(corner, 2) == pytest.approx(np.log(np.mean(np.exp(-2 * np.array(distances)))))
    assert len(list(itertools.islice(oracles.all_pictures(), 200))) == 192
