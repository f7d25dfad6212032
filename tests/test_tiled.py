"""The losses over tiles: values and gradients of scalar loops and of the dense form, whatever the size of a tile."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from example_rows import related_rows
from families import FAMILIES
from test_losses_golden import CASES, TOLERANCES, assert_golden

from contrastive_jax import l2_normalize, nt_xent_loss
from contrastive_jax.tiled import tiled_paired
from contrastive_jax.tiled_stacked import tiled_nt_xent

TEMPERATURES = (1e-3, 0.02, 0.5, 1e3)


LOSSES = {name: family.loss for name, family in FAMILIES.items()}
every_loss = pytest.mark.parametrize("name", LOSSES)


def with_gradients(loss):
    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))


DENSE, TILED = (
    {name: with_gradients(functools.partial(loss, method=method)) for name, loss in LOSSES.items()}
    for method in ("dense", "tiled")
)


def loss_in_tiles_of(tile: int, name: str):
    """What the public function computes, with the size of a tile chosen."""

    def loss(left, right, parameter):
        sides = [l2_normalize(side, norm_floor=FAMILIES[name].norm_floor) for side in (left, right)]
        if name == "nt_xent":
            return tiled_nt_xent(jnp.concatenate(sides), 1 / parameter, tile)
        return tiled_paired(*sides, jnp.exp(parameter) if name == "clip" else 1 / parameter, tile)

    return loss


@functools.cache
def in_tiles_of(tile: int, name: str):
    return with_gradients(loss_in_tiles_of(tile, name))


def parameters(name: str) -> list[float]:
    """One for each temperature; a log scale stays below its cap."""
    return [-math.log(t) for t in TEMPERATURES if t > 0.01] if name == "clip" else list(TEMPERATURES)


def assert_agree(actual, expected, left, right, scale: float, what: str) -> None:
    """Fails unless all agree to 1e-12 of the largest entry.

    Or to a few roundings of what was added up, where that cancels: scores as large as `scale` are known to 2e-16 of it.
    """
    (value, slopes), (exact, gradients) = actual, expected
    rounding = 1e-15 * max(scale, 1)
    shortest = min(np.linalg.norm(side, axis=1).min() for side in (left, right))
    by_row = scale / len(left) / shortest
    terms = (1.0, by_row, by_row, scale**2)
    for number, (a, e, term) in enumerate(zip((value, *slopes), (exact, *gradients), terms, strict=True)):
        off, largest = np.max(np.abs(a - e)), np.max(np.abs(e))
        assert off <= 1e-12 * largest + rounding * term, f"{what}: {number} off by {off:.3g} of {largest:.3g}"


@every_loss
@pytest.mark.parametrize(
    ("size", "tile"),
    [(1, 1), (1, 9), (2, 1), (2, 3), (3, 2), (3, 64), (7, 3), (14, 4), (14, 64), (33, 8), (33, 33)],
)
def test_scalar_loops_and_tiles_agree(name, size, tile, x64):
    family = FAMILIES[name]
    pair = related_rows(size, size, width=4, dtype="float64")
    evaluate, dense = in_tiles_of(tile, name), DENSE[name]
    for parameter in parameters(name):
        scale = family.scale(parameter)
        exact = family.oracle(*pair, parameter), family.gradients(*pair, parameter)
        assert_agree(evaluate(*pair, parameter), exact, *pair, scale, f"loops at {parameter}")
        assert_agree(evaluate(*pair, parameter), dense(*pair, parameter), *pair, scale, f"dense at {parameter}")


def in_numpy(name: str, left, right, parameter):
    """Value and gradients by whole matrices in NumPy, for sizes where scalar loops take minutes."""
    scale = FAMILIES[name].scale(parameter)
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right)]
    a, b = left / lengths[0], right / lengths[1]
    size = len(a)
    if name == "nt_xent":
        a = b = np.concatenate([a, b])
        lengths = [np.concatenate(lengths)]
    scores = scale * a @ b.T
    if name == "nt_xent":
        np.fill_diagonal(scores, -np.inf)
        partner = np.roll(np.eye(2 * size), size, axis=1)
    else:
        partner = np.eye(size)
    value, by_score = 0.0, np.zeros_like(scores)
    for axis in (1,) if name == "nt_xent" else (0, 1):
        shifted = scores - scores.max(axis=axis, keepdims=True)
        sums = np.exp(shifted).sum(axis=axis, keepdims=True)
        weight = 1 / len(scores) / (1 if name == "nt_xent" else 2)
        value -= weight * np.sum((shifted - np.log(sums))[partner == 1])
        by_score += weight * (np.exp(shifted) / sums - partner)
    by_a, by_b = scale * by_score @ b, scale * by_score.T @ a
    by_scale = np.sum(by_a * a) / scale
    by_parameter = scale * by_scale if name == "clip" else -(scale**2) * by_scale
    if name == "nt_xent":
        (by_left, by_right) = np.split(through_lengths(by_a + by_b, a, lengths[0]), 2)
        return value, (by_left, by_right, by_parameter)
    return value, (through_lengths(by_a, a, lengths[0]), through_lengths(by_b, b, lengths[1]), by_parameter)


def through_lengths(by_unit, unit, length):
    return (by_unit - unit * np.sum(unit * by_unit, axis=1, keepdims=True)) / length


@every_loss
@pytest.mark.parametrize("tile", [96, 2048])
def test_a_thousand_pairs(name, tile, x64):
    pair = related_rows(0, 1000, width=8, dtype="float64")
    evaluate, dense = in_tiles_of(tile, name), DENSE[name]
    for parameter in parameters(name):
        scale = FAMILIES[name].scale(parameter)
        found = evaluate(*pair, parameter)
        assert_agree(found, in_numpy(name, *pair, parameter), *pair, scale, f"matrices at {parameter}")
        assert_agree(found, dense(*pair, parameter), *pair, scale, f"dense at {parameter}")


@every_loss
def test_whole_matrices_and_scalar_loops_agree(name):
    family, pair = FAMILIES[name], related_rows(3, 6, dtype="float64")
    for parameter in parameters(name):
        exact = family.oracle(*pair, parameter), family.gradients(*pair, parameter)
        assert_agree(in_numpy(name, *pair, parameter), exact, *pair, family.scale(parameter), str(parameter))


SLIPS = {
    "value": lambda value, g: (value * (1 + 1e-9), g),
    "one row": lambda value, g: (value, (g[0] * np.where(np.arange(len(g[0])) == 2, 1 + 1e-9, 1)[:, None], *g[1:])),
    "sides exchanged": lambda value, g: (value, (g[1], g[0], g[2])),
    "parameter": lambda value, g: (value, (*g[:2], g[2] * (1 + 1e-9))),
    "NaN": lambda value, g: (value, (g[0], g[1] * np.nan, g[2])),
}


@every_loss
@pytest.mark.parametrize("slip", SLIPS)
def test_a_small_slip_is_noticed(name, slip):
    pair = related_rows(3, 6, dtype="float64")
    parameter = FAMILIES[name].parameter_of(2.0)
    exact = in_numpy(name, *pair, parameter)
    assert_agree(exact, exact, *pair, 2.0, "")
    with pytest.raises(AssertionError, match="off by"):
        assert_agree(SLIPS[slip](*exact), exact, *pair, 2.0, "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.loss}-{case.key}")
def test_golden_values(case, precision):
    arguments = [np.asarray(x, precision) for x in (*case.inputs, case.parameter)]
    value, gradients = TILED[case.loss](*arguments)
    assert [str(x.dtype) for x in (value, *gradients)] == [precision] * 4
    assert_golden(value, gradients, case, TOLERANCES[precision])


# Edges


@every_loss
def test_one_pair_costs_nothing(name, precision):
    for seed in range(3):
        assert LOSSES[name](*related_rows(seed, size=1, width=5, dtype=precision), 0.3, method="tiled") == 0.0


@pytest.mark.parametrize("tile", [2, 4, 64])
@every_loss
def test_rows_without_a_length(name, tile, x64):
    family = FAMILIES[name]
    left, right = related_rows(1, size=5, dtype="float64")
    left[1] = right[1] = left[4] = 0
    value, slopes = in_tiles_of(tile, name)(left, right, 0.5)
    np.testing.assert_allclose(value, family.oracle(left, right, 0.5), rtol=1e-13)
    for slope, exact in zip(slopes, family.gradients(left, right, 0.5), strict=True):
        # Row by row: one without a length has a gradient a million times the others'.
        np.testing.assert_allclose(slope, exact, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("tile", [2, 64])
def test_a_row_far_from_all_others_at_the_largest_scale(tile):
    # Cosines near -1 at a scale of 100 in float32: any shift that does not look at the scores underflows to log 0.
    rows = np.ones((5, 3), np.float32) + 0.01 * np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    far = rows * np.array([[-1], [1], [1], [1], [1]], np.float32)
    for name in LOSSES:
        parameter = FAMILIES[name].parameter_of(100.0 - 1e-3)
        value, slopes = in_tiles_of(tile, name)(far, rows, parameter)
        np.testing.assert_allclose(value, FAMILIES[name].oracle(far.astype(float), rows.astype(float), parameter), 1e-5)
        assert all(np.isfinite(slope).all() for slope in slopes)


@every_loss
def test_a_nan_is_not_hidden(name):
    left, right = related_rows(0, size=6)
    left[3, 1] = np.nan
    value, slopes = in_tiles_of(4, name)(left, right, 0.5)
    assert np.isnan(value) and np.isnan(slopes[0]).any()


@every_loss
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(name, half):
    family = FAMILIES[name]
    pair = related_rows(1, 20, dtype=half)
    parameter = family.parameter_of(20.0)
    value, slopes = TILED[name](*pair, parameter)
    wide = *(np.asarray(side, np.float64) for side in pair), parameter
    assert value.dtype == (half if family.keeps_half else jnp.float32)
    once = float(jnp.finfo(half).eps)
    np.testing.assert_allclose(
        np.asarray(value, np.float64), family.oracle(*wide), rtol=once if family.keeps_half else 1e-5
    )
    for slope, exact in zip(slopes[:2], family.gradients(*wide)[:2], strict=True):
        assert slope.dtype == half
        np.testing.assert_allclose(np.asarray(slope, np.float64), exact, rtol=once, atol=1e-5)


# Transformations, with tiles smaller than the batch. Those of the public functions: test_losses_in_jax.py


def small_tiles(name: str):
    """Tiled and dense form, inputs and parameter, and a direction."""
    pair = related_rows(2, 9, dtype="float64")
    arguments = (*pair, FAMILIES[name].parameter_of(2.0))
    direction = [np.random.default_rng(number).normal(size=np.shape(x)) for number, x in enumerate(arguments)]
    return loss_in_tiles_of(4, name), functools.partial(LOSSES[name], method="dense"), arguments, tuple(direction)


@every_loss
def test_forward_mode(name, x64):
    loss, _, arguments, direction = small_tiles(name)
    value, tangent = jax.jit(lambda *args: jax.jvp(loss, args, direction))(*arguments)
    np.testing.assert_allclose(value, FAMILIES[name].oracle(*arguments), rtol=1e-12)
    exact = FAMILIES[name].gradients(*arguments)
    np.testing.assert_allclose(tangent, sum(np.sum(d * g) for d, g in zip(direction, exact, strict=True)), rtol=1e-12)


@every_loss
def test_second_derivatives(name, x64):
    loss, dense, arguments, direction = small_tiles(name)

    def slopes(of):
        return jax.grad(of, argnums=(0, 1, 2))

    def along(of):
        return lambda *args: sum(jnp.vdot(d, g) for d, g in zip(direction, slopes(of)(*args), strict=True))

    exact = jax.jit(slopes(along(dense)))(*arguments)
    forward_over_reverse = jax.jit(lambda *args: jax.jvp(slopes(loss), args, direction)[1])(*arguments)
    reverse_over_reverse = jax.jit(slopes(along(loss)))(*arguments)
    for found in (forward_over_reverse, reverse_over_reverse):
        for a, e in zip(found, exact, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-10, atol=1e-12)


@every_loss
def test_vmap_is_a_loop(name, x64):
    loss = loss_in_tiles_of(4, name)
    stacks = [related_rows(seed, 7, dtype="float64") for seed in range(2)]
    sides = [jnp.stack(side) for side in zip(*stacks, strict=True)]
    scales = jnp.asarray([FAMILIES[name].parameter_of(scale) for scale in (0.5, 20)])
    slopes = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    together = jax.jit(jax.vmap(slopes))(*sides, scales)
    alone = [slopes(*pair, p) for pair, p in zip(stacks, scales, strict=True)]
    for found, expected in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


# What it is for


def temporaries(loss, rows: int, width: int) -> int:
    """Bytes that XLA sets aside for value and gradients beyond what comes in and goes out; nothing is run."""
    side = jax.ShapeDtypeStruct((rows, width), "float32")
    lowered = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2))).lower(
        side, side, jax.ShapeDtypeStruct((), "float32")
    )
    return lowered.compile().memory_analysis().temp_size_in_bytes


@every_loss
def test_memory_grows_with_the_rows_and_not_with_their_square(name):
    once, twice = (temporaries(LOSSES[name], rows, 32) for rows in (2048, 4096))
    assert once < twice < 2.1 * once
    scores = 4 * 4096**2
    assert 4 * twice < scores < temporaries(functools.partial(LOSSES[name], method="dense"), 4096, 32)


# The choice


def loops(loss, rows: int) -> int:
    side = jax.ShapeDtypeStruct((rows, 2), "float32")
    return str(jax.make_jaxpr(loss)(side, side, 0.5)).count("custom_jvp_call")


@every_loss
def test_small_batches_are_dense(name):
    last = 512 if name == "nt_xent" else 1024
    assert loops(LOSSES[name], last) == loops(functools.partial(LOSSES[name], method="dense"), last + 1) == 0
    assert loops(LOSSES[name], last + 1) == loops(functools.partial(LOSSES[name], method="tiled"), 2) == 1


def test_the_views_apart_choose_as_well():
    view = np.eye(4, dtype=np.float32)
    plain = nt_xent_loss(view, view)
    assert plain == nt_xent_loss(view, view, method="dense")
    np.testing.assert_allclose(nt_xent_loss(view, view, method="tiled"), plain, rtol=1e-6)
    assert "custom_jvp_call" in str(jax.make_jaxpr(lambda a, b: nt_xent_loss(a, b, method="tiled"))(view, view))


@pytest.mark.parametrize("method", ["fast", "", None, True, ["dense"], "Dense"])
@pytest.mark.parametrize("loss", [*LOSSES.values(), nt_xent_loss])
def test_a_method_that_does_not_exist(loss, method, as_installed):
    pair = related_rows(0)
    with pytest.raises(ValueError, match=r'^method: expected "auto", "dense" or "tiled", found .*Next step: '):
        loss(*pair, 0.5, method=method)


# Compilations


@pytest.mark.parametrize("name", ["paired", "nt_xent"])
def test_a_training_loop_compiles_once(name, caplog):
    @jax.jit
    def training_step(left, right, temperature):
        loss, slopes = jax.value_and_grad(LOSSES[name], argnums=(0, 1, 2))(left, right, temperature)
        return loss, [x - 0.01 * slope for x, slope in zip((left, right, temperature), slopes, strict=True)]

    state = [*related_rows(0, 1100, width=3), np.float32(0.5)]
    losses = []
    with compilations("training_step", caplog) as found:
        for _ in range(4):
            loss, state = training_step(*state)
            losses.append(float(loss))
    assert len(found) == 1, found
    assert losses == sorted(losses, reverse=True)
