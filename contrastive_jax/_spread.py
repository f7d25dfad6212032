"""Arguments of the losses over devices: checked, and filled up to as many rows on every device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from contrastive_jax._validation import error_text
from contrastive_jax.on_devices import Layout, Where
from contrastive_jax.tiled import TILE


def layout_of(mesh: object, axis_name: str, tile: int) -> Layout:
    """Raises TypeError or ValueError for a mesh, an axis or a tile that cannot be used."""
    if not isinstance(mesh, Mesh):
        example = 'jax.sharding.Mesh(jax.devices(), ("batch",))'
        found, step = type(mesh).__name__, f"make one, for example {example}."
        raise TypeError(error_text("mesh", expected="a jax.sharding.Mesh", found=found, next_step=step))
    if axis_name not in mesh.axis_names:
        axes, step = ", ".join(map(repr, mesh.axis_names)), "name the one along which the batch is cut."
        raise ValueError(
            error_text("axis_name", expected=f"an axis of the mesh, {axes}", found=repr(axis_name), next_step=step)
        )
    if isinstance(tile, bool) or not isinstance(tile, int) or tile < 1:
        step = f"leave it out, or choose a power of two around {TILE}."
        raise ValueError(error_text("tile", expected="a positive int", found=repr(tile), next_step=step))
    # As `Mesh` makes it: JAX chooses how arrays lie. `jax.make_mesh` of newer releases leaves that to the caller.
    return Layout(Mesh(mesh.devices, mesh.axis_names), axis_name, tile)


def checked_choice(where: Any, left: Any) -> Where:
    """Raises TypeError or ValueError unless `where` has a truth value for each row."""
    if where is None:
        return None
    dtype, shape, batch = getattr(where, "dtype", None), getattr(where, "shape", None), len(left)
    if dtype != jnp.bool_:
        found = dtype or type(where).__name__
        step = "compare, for example jnp.arange(batch) < count."
        raise TypeError(error_text("where", expected="an array of dtype bool", found=found, next_step=step))
    if shape != (batch,):
        step = "give one entry for each pair."
        raise ValueError(error_text("where", expected=f"shape {(batch,)}", found=f"shape {shape}", next_step=step))
    return jnp.asarray(where)


def on_all(
    mesh: Mesh, function: Callable, layout: Layout, left: Any, right: Any, where: Where, parameter: Any
) -> Array:
    """The function of rows filled up to as many on every device, also where JAX leaves to the caller how arrays lie."""

    def filled(left: Array, right: Array, where: Where, parameter: Array) -> Array:
        return function(*_even(layout.ring.size, left, right, where), parameter, layout)

    called: Callable[..., Any] = filled
    if mesh != layout.mesh:
        called = jax.sharding.auto_axes(filled, out_sharding=NamedSharding(mesh, PartitionSpec()))
    return called(jnp.asarray(left), jnp.asarray(right), where, jnp.asarray(parameter))


def _even(devices: int, left: Array, right: Array, where: Where) -> tuple[Array, Array, Where]:
    """Both sides and `where`, filled up with zeros that do not count, as are all rows that do not."""
    if where is not None:  # zeros, because a row that does not count still meets its partner
        left, right = (jnp.where(where[:, None], side, jnp.zeros((), side.dtype)) for side in (left, right))
    missing = -len(left) % devices
    if not missing:
        return left, right, where
    where = jnp.ones(len(left), bool) if where is None else where
    left, right = (jnp.pad(side, ((0, missing), (0, 0))) for side in (left, right))
    return left, right, jnp.pad(where, (0, missing))
