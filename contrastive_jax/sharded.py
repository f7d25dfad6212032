"""The losses of rows that lie on several devices: every row of every device is a candidate for every other.

Called from outside, on global arrays, in `jax.jit` and `jax.grad` as usual: values and gradients, also by the
temperature or log scale, are those of one device with all of the rows. In several processes pass global arrays, as
`jax.make_array_from_process_local_data` makes them.

No device ever holds more than its own rows, as many visiting ones, and a tile of scores; see `contrastive_jax.ring`.
"""

import functools

import jax
from jax.sharding import Mesh
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from contrastive_jax._scalars import as_logit_scale, as_temperature
from contrastive_jax._spread import checked_choice, layout_of, on_all
from contrastive_jax._validation import FloatArray, check_pair, compute_dtype
from contrastive_jax.losses import PAIRED_NORM_FLOOR, capped_scale
from contrastive_jax.on_devices import Layout, Where, paired_on_devices, stacked_on_devices
from contrastive_jax.similarity import l2_normalize
from contrastive_jax.tiled import TILE


def paired_contrastive(
    left: Float[FloatArray, "batch dim"],
    right: Float[FloatArray, "batch dim"],
    temperature: int | float | Real[ArrayLike, ""] = 0.2,
    *,
    mesh: Mesh,
    axis_name: str = "batch",
    where: Bool[ArrayLike, " batch"] | None = None,
    tile: int = TILE,
) -> Float[Array, ""]:
    """`contrastive_jax.paired_contrastive` of rows spread over the devices of a mesh axis.

    Args:
        left: As there, shape [batch, dim]; cut along `batch`.
        right: The partners; shape and dtype of `left`.
        temperature: As there.
        mesh: The devices.
        axis_name: Axis of the mesh along which the batch is cut. A batch that does not divide evenly is filled up
            with rows that do not count; over several processes fill it up yourself, and say so with `where`.
        where: Which pairs count, shape [batch]; the others are neither anchors nor candidates, what they hold
            does not matter, NaN included, and their gradient is zero. None: all of them. If none counts, the loss is 0.
        tile: Largest height and width of a tile of scores.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: As there; or `where` is not an array of bool.
        ValueError: As there; or the mesh has no such axis, or `where` has another length than the batch, or the
            tile is not positive.

    Example:
        >>> import jax.numpy as jnp
        >>> mesh = jax.sharding.Mesh(jax.devices(), ("batch",))
        >>> print(f"{paired_contrastive(jnp.eye(2), jnp.eye(2), 1.0, mesh=mesh):.4f}")  # log(1 + 1/e)
        0.3133
    """
    check_pair("left", left, "right", right)
    layout = layout_of(mesh, axis_name, tile)
    temperature = as_temperature(temperature, compute_dtype(left))
    return on_all(mesh, _paired_contrastive, layout, left, right, checked_choice(where, left), temperature)


def clip_loss(
    image_features: Float[FloatArray, "batch dim"],
    text_features: Float[FloatArray, "batch dim"],
    logit_scale: int | float | Real[ArrayLike, ""],
    *,
    mesh: Mesh,
    axis_name: str = "batch",
    where: Bool[ArrayLike, " batch"] | None = None,
    tile: int = TILE,
) -> Float[Array, ""]:
    """`contrastive_jax.clip_loss` of rows spread over the devices of a mesh axis.

    Args:
        image_features: As there, shape [batch, dim]; cut along `batch`.
        text_features: The partners; shape and dtype of `image_features`.
        logit_scale: As there: the LOG of the inverse temperature, capped at log 100.
        mesh: As in `paired_contrastive`, and so are `axis_name`, `where` and `tile`.
        axis_name: See `mesh`.
        where: See `mesh`.
        tile: See `mesh`.

    Returns:
        The loss, shape [], in the dtype of the features.

    Raises:
        TypeError: As in `paired_contrastive`, of the log scale as in `contrastive_jax.clip_loss`.
        ValueError: The same.

    Example:
        >>> import jax.numpy as jnp
        >>> mesh = jax.sharding.Mesh(jax.devices(), ("batch",))
        >>> print(f"{clip_loss(jnp.eye(2), jnp.eye(2), jnp.log(2.0), mesh=mesh):.4f}")  # log(1 + exp(-2))
        0.1269
    """
    check_pair("image_features", image_features, "text_features", text_features)
    layout = layout_of(mesh, axis_name, tile)
    scale = as_logit_scale(logit_scale, compute_dtype(image_features))
    return on_all(mesh, _clip_loss, layout, image_features, text_features, checked_choice(where, image_features), scale)


def nt_xent(
    view1: Float[FloatArray, "batch dim"],
    view2: Float[FloatArray, "batch dim"],
    temperature: int | float | Real[ArrayLike, ""] = 0.5,
    *,
    mesh: Mesh,
    axis_name: str = "batch",
    where: Bool[ArrayLike, " batch"] | None = None,
    tile: int = TILE,
) -> Float[Array, ""]:
    """`contrastive_jax.nt_xent` of rows spread over the devices of a mesh axis.

    The views are given apart, because a stack of them, cut along its rows, would part the views of a source.

    Args:
        view1: One row per source, any length, shape [batch, dim]; cut along `batch`.
        view2: The other view of the same sources in the same order; shape and dtype of `view1`.
        temperature: As there.
        mesh: As in `paired_contrastive`, and so are `axis_name`, `where` and `tile`.
        axis_name: See `mesh`.
        where: See `mesh`.
        tile: See `mesh`.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: As in `paired_contrastive`.
        ValueError: As in `paired_contrastive`.

    Example:
        >>> import jax.numpy as jnp
        >>> mesh = jax.sharding.Mesh(jax.devices(), ("batch",))
        >>> print(f"{nt_xent(jnp.eye(2), jnp.eye(2), 1.0, mesh=mesh):.4f}")  # log(1 + 2/e)
        0.5514
    """
    check_pair("view1", view1, "view2", view2)
    layout = layout_of(mesh, axis_name, tile)
    temperature = as_temperature(temperature, compute_dtype(view1))
    return on_all(mesh, _nt_xent, layout, view1, view2, checked_choice(where, view1), temperature)


@functools.partial(jax.jit, static_argnums=4)
def _paired_contrastive(left: Array, right: Array, where: Where, temperature: Array, layout: Layout) -> Array:
    units = (l2_normalize(side, norm_floor=PAIRED_NORM_FLOOR) for side in (left, right))
    return paired_on_devices(*units, 1 / temperature, where, layout)


@functools.partial(jax.jit, static_argnums=4)
def _clip_loss(images: Array, texts: Array, where: Where, logit_scale: Array, layout: Layout) -> Array:
    scale = capped_scale(logit_scale, compute_dtype(images))
    return paired_on_devices(l2_normalize(images), l2_normalize(texts), scale, where, layout).astype(images.dtype)


@functools.partial(jax.jit, static_argnums=4)
def _nt_xent(view1: Array, view2: Array, where: Where, temperature: Array, layout: Layout) -> Array:
    return stacked_on_devices(l2_normalize(view1), l2_normalize(view2), 1 / temperature, where, layout)
