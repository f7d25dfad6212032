"""A small convolutional encoder of pictures: features for later use, and the projection that a loss sees."""

import functools
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from contrastive_jax._validation import FloatArray, check_floating, error_text

KERNEL, STRIDE, PADDING = 3, 2, 1
HIGHEST = jax.lax.Precision.HIGHEST  # Some devices would otherwise round the factors of a product to 10 bits.


class Layer(NamedTuple):
    """Weight and bias in PyTorch's layout: [out, in] for a linear layer, [out, in, 3, 3] for a convolution."""

    weight: Float[Array, "out in *kernel"]
    bias: Float[Array, " out"]


class EncoderParams(NamedTuple):
    """Two convolutions make the features, two linear layers the projection. Any widths that fit will do."""

    conv1: Layer
    conv2: Layer
    hidden: Layer
    output: Layer


class Encoding(NamedTuple):
    """What downstream work uses, and what the loss compares."""

    features: Float[Array, "count features"]
    projection: Float[Array, "count projection"]


WEIGHT_SHAPES = ((16, 1, KERNEL, KERNEL), (32, 16, KERNEL, KERNEL), (32, 32), (16, 32))


def init_encoder(key: PRNGKeyArray, dtype: DTypeLike = jnp.float32) -> EncoderParams:
    """Draws weights and biases evenly from -b to b, b = 1 / sqrt(number of inputs of one output).

    Those are the bounds that PyTorch's `Conv2d` and `Linear` start with. The numbers are drawn in float32 and then
    converted, so both precisions start at the same point.

    Args:
        key: Decides everything.
        dtype: float32 or float64; it is also the dtype in which `encode` computes.

    Returns:
        Parameters of the widths 1 -> 16 -> 32 (convolutions) and 32 -> 32 -> 16 (head).

    Source:
        The bounds follow from He et al. 2015, "Delving Deep into Rectifiers", with a gain of sqrt(1/3).

    Example:
        >>> import jax
        >>> params = init_encoder(jax.random.key(0))
        >>> print(params.conv2.weight.shape, params.output.weight.shape)
        (32, 16, 3, 3) (16, 32)
    """
    return _init_encoder(key, dtype=jnp.dtype(dtype))


def encode(params: EncoderParams, images: Float[FloatArray, "count height width"]) -> Encoding:
    """Features and projection of every picture.

    Two convolutions of 3x3 with stride 2 and a border of one zero, each followed by a ReLU; the mean over all places
    gives the features; a linear layer, a ReLU and another linear layer make the projection out of them.

    Args:
        params: Weights; their dtype is the one computed in.
        images: Pictures of one channel, shape [count, height, width]; taken to the dtype of the weights.

    Returns:
        Features [count, 32] and projection [count, 16] for the weights of `init_encoder`.

    Raises:
        TypeError: `images` is not a floating array.
        ValueError: `images` is not of rank 3.

    Source:
        Features are used and projections compared as in Chen et al. 2020, "A Simple Framework for Contrastive Learning
        of Visual Representations", section 2.1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> features, projection = encode(init_encoder(jax.random.key(0)), jnp.ones((5, 16, 16)))
        >>> print(features.shape, projection.shape)
        (5, 32) (5, 16)
    """
    check_floating("images", images)
    if images.ndim != 3:
        raise ValueError(
            error_text(
                "images",
                expected="rank 3, shape [count, height, width]",
                found=f"shape {images.shape}",
                next_step="leave out the axis of the channels: pictures have one.",
            )
        )
    return _encode(params, jnp.asarray(images))


def strided_convolution(
    layer: Layer, x: Float[Array, "count height width in"]
) -> Float[Array, "count out_height out_width out"]:
    """Convolution of 3x3 with stride 2 and a border of one zero, written as a product of two matrices.

    Each place of the output is one row: the nine pixels it looks at, side by side. On a CPU this is many times as fast
    as `jax.lax.conv_general_dilated` when the training runs inside `jax.lax.scan`, see benchmarks/README.md.

    Args:
        layer: Weight [out, in, 3, 3] and bias [out].
        x: Pictures with channels last, shape [count, height, width, in], dtype of the weight.

    Returns:
        Shape [count, ceil(height / 2), ceil(width / 2), out].

    Example:
        >>> import jax, jax.numpy as jnp
        >>> layer = Layer(jnp.ones((1, 1, 3, 3)), jnp.zeros(1))
        >>> print(strided_convolution(layer, jnp.ones((1, 4, 4, 1)))[0, :, :, 0])  # pixels seen: 2x2, 2x3, 3x3
        [[4. 6.]
         [6. 9.]]
    """
    count, height, width, channels = x.shape
    rows, columns = -(-height // STRIDE), -(-width // STRIDE)
    padded = jnp.pad(x, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    seen = [
        padded[:, i : i + STRIDE * rows - 1 : STRIDE, j : j + STRIDE * columns - 1 : STRIDE]
        for i in range(KERNEL)
        for j in range(KERNEL)
    ]
    patches = jnp.concatenate(seen, axis=-1).reshape(count * rows * columns, KERNEL * KERNEL * channels)
    # The inputs of one output in the order of a patch: place by place, and the channels of each.
    kernel = layer.weight.transpose(0, 2, 3, 1).reshape(layer.weight.shape[0], -1)
    return _linear(Layer(kernel, layer.bias), patches).reshape(count, rows, columns, -1)


@functools.partial(jax.jit, static_argnames=("dtype",))
def _init_encoder(key: PRNGKeyArray, *, dtype: np.dtype) -> EncoderParams:
    shapes = [shape for weight in WEIGHT_SHAPES for shape in (weight, weight[:1])]
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    # All in one draw, which compiles in a fraction of the time of eight.
    shares = jnp.split(2 * jax.random.uniform(key, (ends[-1],), jnp.float32) - 1, ends[:-1])
    arrays = [share.reshape(shape) for share, shape in zip(shares, shapes, strict=True)]
    return EncoderParams(*[_within_bounds(*layer, dtype) for layer in zip(arrays[::2], arrays[1::2], strict=True)])


@jax.jit
def _encode(params: EncoderParams, images: Float[Array, "count height width"]) -> Encoding:
    x = images.astype(params.conv1.weight.dtype)[..., None]
    x = jax.nn.relu(strided_convolution(params.conv1, x))
    x = jax.nn.relu(strided_convolution(params.conv2, x))
    features = jnp.mean(x, axis=(1, 2))
    hidden = jax.nn.relu(_linear(params.hidden, features))
    return Encoding(features=features, projection=_linear(params.output, hidden))


def _linear(layer: Layer, x: Float[Array, "rows in"]) -> Float[Array, "rows out"]:
    return jnp.matmul(x, layer.weight.T, precision=HIGHEST) + layer.bias[None]


def _within_bounds(weight: Array, bias: Array, dtype: np.dtype) -> Layer:
    """Layer of numbers from -b to b, given numbers from -1 to 1."""
    bound = 1 / math.sqrt(math.prod(weight.shape[1:]))
    # One product is rounded the same way everywhere, which a product and a sum are not.
    return Layer((weight * bound).astype(dtype), (bias * bound).astype(dtype))
