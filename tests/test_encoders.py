"""The encoder against plain loops and against JAX's own convolution; its parts kept apart; its starting weights."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import oracles_shapes as oracles
import pytest

from contrastive_jax import Layer, encode, init_encoder
from contrastive_jax.encoders import strided_convolution

SIZES = [(16, 16), (8, 8), (5, 6), (3, 1), (1, 1)]


def example(height: int, width: int, channels: int = 2, out: int = 3, count: int = 2):
    rng = np.random.default_rng(height * 100 + width)
    layer = Layer(rng.normal(size=(out, channels, 3, 3)), rng.normal(size=out))
    return layer, rng.normal(size=(count, height, width, channels))


def jax_convolution(layer: Layer, x, padding=((1, 1), (1, 1))):
    order = ("NHWC", "OIHW", "NHWC")
    return jax.lax.conv_general_dilated(x, layer.weight, (2, 2), padding, dimension_numbers=order) + layer.bias.reshape(
        1, 1, 1, -1
    )


def agrees_with_loops(convolve: Callable, size: tuple[int, int]) -> bool:
    layer, x = example(*size)
    actual = np.asarray(jax.jit(convolve)(jax.tree.map(jnp.asarray, layer), jnp.asarray(x)))
    expected = oracles.convolution(*layer, x)
    return actual.shape == expected.shape and np.allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_convolution_against_loops(size, x64):
    assert agrees_with_loops(strided_convolution, size)
    assert agrees_with_loops(jax_convolution, size)


WRONG_CONVOLUTIONS = {
    "transposed": lambda layer, x: strided_convolution(layer._replace(weight=layer.weight.swapaxes(2, 3)), x),
    "flipped": lambda layer, x: strided_convolution(layer._replace(weight=layer.weight[:, :, ::-1, ::-1]), x),
    "padded behind only": lambda layer, x: jax_convolution(layer, x, ((0, 1), (0, 1))),
    "no padding": lambda layer, x: jax_convolution(layer, x, ((0, 0), (0, 0))),
    "channels in another order": lambda layer, x: strided_convolution(layer, x[..., ::-1]),
    "rows and columns exchanged": lambda layer, x: strided_convolution(layer, x.swapaxes(1, 2)).swapaxes(1, 2),
    "no bias": lambda layer, x: strided_convolution(layer._replace(bias=0 * layer.bias), x),
}


@pytest.mark.parametrize("name", WRONG_CONVOLUTIONS)
def test_a_wrong_convolution_is_noticed(name, x64):
    assert not agrees_with_loops(WRONG_CONVOLUTIONS[name], (8, 8))


def gradients(convolve: Callable, layer: Layer, x) -> list[np.ndarray]:
    # A sum of squares gives every output a slope of its own.
    slopes = jax.jit(jax.grad(lambda layer, x: jnp.sum(convolve(layer, x) ** 2), argnums=(0, 1)))(layer, x)
    return [np.asarray(slope) for slope in jax.tree.leaves(slopes)]


@pytest.mark.parametrize("size", SIZES[1:4])
def test_gradients_of_the_convolution(size, x64):
    layer, x = jax.tree.map(jnp.asarray, example(*size))
    for ours, theirs in zip(
        gradients(strided_convolution, layer, x), gradients(jax_convolution, layer, x), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11)


def test_gradient_of_the_convolution_is_the_slope(x64):
    layer, x = example(4, 5)
    by_weight, _, by_input = gradients(strided_convolution, *jax.tree.map(jnp.asarray, (layer, x)))

    def loss(weight, x):
        return np.sum(oracles.convolution(weight, layer.bias, x) ** 2)

    rng = np.random.default_rng(0)
    for _ in range(5):
        # Along a random direction; the loss is a parabola there, so the difference is exact up to rounding.
        w, v = rng.normal(size=layer.weight.shape), rng.normal(size=x.shape)
        slope = (loss(layer.weight + 1e-3 * w, x) - loss(layer.weight - 1e-3 * w, x)) / 2e-3
        assert np.sum(by_weight * w) == pytest.approx(slope, rel=1e-9, abs=1e-9)
        slope = (loss(layer.weight, x + 1e-3 * v) - loss(layer.weight, x - 1e-3 * v)) / 2e-3
        assert np.sum(by_input * v) == pytest.approx(slope, rel=1e-9, abs=1e-9)


def pictures(count: int = 2) -> np.ndarray:
    return np.random.default_rng(7).normal(size=(count, 16, 16)).astype("float32")


def test_encoder_against_loops(precision):
    params = init_encoder(jax.random.key(0), precision)
    features, projection = encode(params, pictures())
    assert (features.shape, projection.shape) == ((2, 32), (2, 16))
    assert [x.dtype for x in (features, projection)] == [precision] * 2
    layers = [(np.asarray(weight, float), np.asarray(bias, float)) for weight, bias in params]
    expected = oracles.encode(layers, pictures().astype(float))
    tolerance = {"float32": 1e-5, "float64": 1e-12}[precision]
    np.testing.assert_allclose(features, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(projection, expected[1], rtol=tolerance, atol=tolerance)


def test_features_and_projection_are_kept_apart():
    params, images = init_encoder(jax.random.key(0)), pictures()
    other_head = init_encoder(jax.random.key(1))._replace(conv1=params.conv1, conv2=params.conv2)
    ours, theirs = encode(params, images), encode(other_head, images)
    np.testing.assert_array_equal(ours.features, theirs.features)
    assert not np.allclose(ours.projection, theirs.projection)
    assert np.all(ours.features >= 0) and np.any(ours.projection < 0)
    # A loss of the features leaves the head alone, one of the projection reaches everything.
    for field, reached in (("features", [True, True, False, False]), ("projection", [True] * 4)):

        def loss(params, field=field):
            return jnp.sum(getattr(encode(params, images), field) ** 2)

        slopes = jax.jit(jax.grad(loss))(params)
        assert [bool(jnp.any(layer.weight != 0)) for layer in slopes] == reached


def test_pictures_do_not_see_each_other():
    params, images = init_encoder(jax.random.key(0)), pictures()
    alone = encode(params, np.stack([images[1], images[1]]))
    np.testing.assert_allclose(alone.projection[0], encode(params, images).projection[1], rtol=1e-5)


FAN_IN = (9, 144, 32, 32)


def test_starting_weights_fill_their_bounds(precision):
    params = init_encoder(jax.random.key(3), precision)
    shapes = [(layer.weight.shape, layer.bias.shape) for layer in params]
    assert shapes == [((16, 1, 3, 3), (16,)), ((32, 16, 3, 3), (32,)), ((32, 32), (32,)), ((16, 32), (16,))]
    for layer, fan_in in zip(params, FAN_IN, strict=True):
        assert {str(x.dtype) for x in layer} == {precision}
        shares = np.concatenate([np.ravel(x) for x in layer]) * math.sqrt(fan_in)
        assert np.all(np.abs(shares) < 1 + 1e-6)
        assert shares.min() < -0.97 and shares.max() > 0.97
        # An even distribution on [-1, 1]: mean 0, variance 1/3, and their errors.
        assert abs(shares.mean()) < 4 / math.sqrt(3 * shares.size)
        assert abs(np.mean(shares**2) - 1 / 3) < 4 * math.sqrt(4 / 45 / shares.size)


def test_starting_weights_come_from_the_key_alone():
    first, again, other = [init_encoder(jax.random.key(seed)) for seed in (0, 0, 1)]
    leaves = [np.ravel(x) for x in jax.tree.leaves(first)]
    for a, b, c in zip(leaves, jax.tree.leaves(again), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, np.ravel(b))
        assert not np.any(a == np.ravel(c))
    # No layer repeats the numbers of another: the shares of two layers would be equal.
    assert not np.any(leaves[0][:16] * 3 == leaves[1] * 3)
    assert not np.any(leaves[4][:512] == leaves[6])


def test_both_precisions_start_at_the_same_point(x64):
    narrow, wide = (jax.tree.leaves(init_encoder(jax.random.key(0), dtype)) for dtype in ("float32", "float64"))
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(np.asarray(a, float), b)


def test_wrong_pictures(as_installed):
    params = init_encoder(jax.random.key(0))
    with pytest.raises(ValueError, match=r"^images: expected rank 3.*found shape \(2, 1, 16, 16\)\. Next step: "):
        encode(params, pictures()[:, None])
    with pytest.raises(TypeError, match=r"^images: expected a dtype among"):
        encode(params, np.zeros((1, 16, 16), int))
