"""Pictures of three simple shapes, and random views of them, the same bits on every machine.

Everything here is drawn in float32, whatever the precision of the work that follows, and comes from random bits by
steps that do not round: comparisons, sums that float32 holds, look-ups in a table, and a single addition at the end.
So a float64 study and a float32 study see the same pictures, and so do two machines.
"""

import functools
from statistics import NormalDist
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contrastive_jax._validation import FloatArray, check_floating, error_text

SIDE = 16
LENGTH = 6
FIRST_CORNER, LAST_CORNER = 2, 9
LARGEST_SHIFT = 3
LEAST_BRIGHTNESS = 0.5
NOISE = 0.15

KINDS = ("bar", "column", "diagonal")
# How far each kind moves, in rows and columns, from one pixel to the next.
DIRECTIONS = ((0, 1), (1, 0), (1, 1))


class Pictures(NamedTuple):
    """Pictures of 16x16 pixels, 0 or 1, and what each shows: an index into `KINDS`."""

    images: Float[Array, "count 16 16"]
    kinds: Int[Array, " count"]


def draw_pictures(key: PRNGKeyArray, count: int) -> Pictures:
    """Draws pictures of a bar, a column or a diagonal, each six pixels of 1 on 16x16 pixels of 0.

    The kind is drawn from the three, and the row and the column of the first pixel, its upper left corner, from
    2 to 9; all are equally likely. So no shape touches an edge.

    Args:
        key: Decides everything: the same key gives the same pictures.
        count: Number of pictures, at least 1. Static: a new value compiles anew.

    Returns:
        Images, shape [count, 16, 16], float32; kinds, shape [count], int32, 0 bar, 1 column, 2 diagonal.

    Raises:
        TypeError: `count` is not a Python int.
        ValueError: `count` is below 1.

    Example:
        >>> import jax
        >>> pictures = draw_pictures(jax.random.key(0), 5)
        >>> print(pictures.images.shape, pictures.images.sum(axis=(1, 2)))
        (5, 16, 16) [6. 6. 6. 6. 6.]
    """
    return _draw_pictures(key, count=_check_count(count))


def draw_views(
    key: PRNGKeyArray, images: Float[FloatArray, "count height width"]
) -> Float[Array, "count height width"]:
    """Draws one view of every picture: shifted, brighter or darker, and noisy.

    The shift is -3 to 3 pixels in each axis; what leaves on one side comes back on the other. The brightness, a factor
    from 0.5 up to 1.5, is drawn evenly for each picture. The noise of each pixel is normal, of standard deviation 0.15,
    cut into 65536 equally likely values (see `noise_values`).

    Args:
        key: Decides everything. Two views of one picture need two keys.
        images: Any pictures, shape [count, height, width]; those of other dtypes are taken to float32.

    Returns:
        The views in the order of `images` and in their shape, float32.

    Raises:
        TypeError: `images` is not a floating array.
        ValueError: `images` is not of rank 3.

    Source:
        The two random views of one input are those of Chen et al. 2020, "A Simple Framework for Contrastive Learning
        of Visual Representations", section 2.1, with augmentations that suit pictures this small.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> one_key, another_key = jax.random.split(jax.random.key(0))
        >>> images = draw_pictures(one_key, 1).images
        >>> print(jnp.all(draw_views(one_key, images) == draw_views(another_key, images)))
        False
    """
    check_floating("images", images)
    if images.ndim != 3:
        raise ValueError(
            error_text(
                "images",
                expected="rank 3, shape [count, height, width]",
                found=f"shape {images.shape}",
                next_step="pass images[None] for a single picture.",
            )
        )
    return _draw_views(key, jnp.asarray(images, jnp.float32))


def draw_view_pairs(key: PRNGKeyArray, count: int) -> Float[Array, "two_count 16 16"]:
    """Draws pictures and two views of each, stacked: all first views, then all second views in the same order.

    So the partner of row i is row (i + count) mod (2 * count), as `nt_xent` expects.

    Args:
        key: Decides everything.
        count: Number of pictures, at least 1. Static.

    Returns:
        Views, shape [2 * count, 16, 16], float32.

    Raises:
        TypeError, ValueError: As `draw_pictures`.

    Example:
        >>> import jax
        >>> print(draw_view_pairs(jax.random.key(0), 64).shape)
        (128, 16, 16)
    """
    return _draw_view_pairs(key, count=_check_count(count))


@functools.cache
def noise_values() -> np.ndarray:
    """The 65536 equally likely values of the noise, in ascending order, float32.

    They are the normal quantiles at (i + 1/2) / 65536, times 0.15: mean 0, standard deviation 0.15 up to one part in
    100000, the largest 4.3 standard deviations. A look-up by 16 random bits has no rounding that could differ from
    machine to machine; formulas for normal numbers, `jax.random.normal` among them, do.

    Example:
        >>> values = noise_values()
        >>> print(f"{values.mean(dtype=float):.4f} {values.std(dtype=float):.4f} {values.max():.4f}")
        0.0000 0.1500 0.6487
    """
    below = [NOISE * NormalDist().inv_cdf((i + 0.5) / 2**16) for i in range(2**15)]
    return np.array(below + [-value for value in reversed(below)], np.float32)


@functools.partial(jax.jit, static_argnames=("count",))
def _draw_pictures(key: PRNGKeyArray, *, count: int) -> Pictures:
    kind_key, corner_key = jax.random.split(key)
    kinds = jax.random.randint(kind_key, (count,), 0, len(KINDS), jnp.int32)
    corners = jax.random.randint(corner_key, (count, 2), FIRST_CORNER, LAST_CORNER + 1, jnp.int32)
    steps = jnp.asarray(DIRECTIONS, jnp.int32)[kinds][:, None] * jnp.arange(LENGTH, dtype=jnp.int32)[None, :, None]
    pixels = corners[:, None] + steps
    blank = jnp.zeros((count, SIDE, SIDE), jnp.float32)
    which = jnp.arange(count)[:, None]
    return Pictures(images=blank.at[which, pixels[..., 0], pixels[..., 1]].set(1.0), kinds=kinds)


@jax.jit
def _draw_views(key: PRNGKeyArray, images: Float[Array, "count height width"]) -> Float[Array, "count height width"]:
    shift_key, brightness_key, noise_key = jax.random.split(key, 3)
    count = images.shape[0]
    shifts = jax.random.randint(shift_key, (count, 2), -LARGEST_SHIFT, LARGEST_SHIFT + 1, jnp.int32)
    # Bounds passed to `uniform` would come in by a product and a sum; this sum is one that float32 holds.
    brightness = LEAST_BRIGHTNESS + jax.random.uniform(brightness_key, (count, 1, 1), jnp.float32)
    return _shifted(images, shifts) * brightness + _draw_noise(noise_key, images.shape)


@functools.partial(jax.jit, static_argnames=("count",))
def _draw_view_pairs(key: PRNGKeyArray, *, count: int) -> Float[Array, "two_count 16 16"]:
    picture_key, *view_keys = jax.random.split(key, 3)
    images = draw_pictures(picture_key, count).images
    views = jax.vmap(lambda view_key: draw_views(view_key, images))(jnp.stack(view_keys))
    return views.reshape(2 * count, SIDE, SIDE)


def _shifted(
    images: Float[Array, "count height width"], shifts: Int[Array, "count 2"]
) -> Float[Array, "count height width"]:
    """Each picture moved down and right by its own shift, wrapping around."""
    _, height, width = images.shape
    rows = (jnp.arange(height, dtype=jnp.int32)[None] - shifts[:, :1]) % height
    columns = (jnp.arange(width, dtype=jnp.int32)[None] - shifts[:, 1:]) % width
    return jax.vmap(lambda image, row, column: image[row[:, None], column[None]])(images, rows, columns)


def _draw_noise(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "count height width"]:
    count, height, width = shape
    # One random word serves two pixels.
    words = jax.random.bits(key, (count, -(-height * width // 2)), jnp.uint32)
    halves = jnp.concatenate([words >> 16, words & 0xFFFF], axis=1)[:, : height * width]
    return jnp.asarray(noise_values())[halves.astype(jnp.int32)].reshape(shape)


def _check_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(
            error_text(
                "count",
                expected="a Python int",
                found=type(count).__name__,
                next_step="pass a constant such as count=64; under jax.jit name it in static_argnames.",
            )
        )
    if count < 1:
        raise ValueError(
            error_text("count", expected="at least 1", found=count, next_step="ask for one picture or more.")
        )
    return count
