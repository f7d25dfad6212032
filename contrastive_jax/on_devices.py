"""Losses of unit rows spread over devices, with their derivatives.

As in `contrastive_jax.tiled`, JAX never differentiates what the devices do: each computes the gradients of its own
rows, and the rule for tangents multiplies them. So nothing depends on how a collective operation is transposed.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float

from contrastive_jax.ring import Ring, only, paired_gradients, paired_sums, stacked_gradients, stacked_sums
from contrastive_jax.tiled import total_cost
from contrastive_jax.tiled_stacked import interleaved, views_of
from contrastive_jax.tiles import costs, in_blocks, rows_of

Where = Bool[Array, " batch"] | None
Rows = Float[Array, "batch dim"]
Scale = Float[Array, ""]


class Layout(NamedTuple):
    """Where the rows lie, and how large a tile is."""

    mesh: Mesh
    axis: str
    tile: int

    @property
    def ring(self) -> Ring:
        return Ring(self.axis, self.mesh.shape[self.axis])


@functools.partial(jax.custom_jvp, nondiff_argnums=(4,))
def paired_on_devices(left: Rows, right: Rows, scale: Scale, where: Where, layout: Layout) -> Float[Array, ""]:
    """`tiled_paired` of unit rows whose number the devices divide evenly; see `contrastive_jax.sharded`.

    Rows that `where` leaves out must be zero: only so is their gradient, of a score that they have with their partner.
    """
    return _run(functools.partial(_paired, gradients=False), layout, (left, right, scale, where))[0]


@paired_on_devices.defjvp
def _(layout: Layout, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    loss, by_left, by_right = _run(functools.partial(_paired, gradients=True), layout, primals)
    tangent = primals[2] * (jnp.vdot(by_left, tangents[0]) + jnp.vdot(by_right, tangents[1]))
    return loss, tangent + jnp.vdot(primals[0], by_left) * tangents[2]


@functools.partial(jax.custom_jvp, nondiff_argnums=(4,))
def stacked_on_devices(view1: Rows, view2: Rows, scale: Scale, where: Where, layout: Layout) -> Float[Array, ""]:
    """`tiled_nt_xent` of unit rows whose number the devices divide evenly; see `contrastive_jax.sharded`.

    Rows that `where` leaves out must be zero, as in `paired_on_devices`.
    """
    return _run(functools.partial(_stacked, gradients=False), layout, (view1, view2, scale, where))[0]


@stacked_on_devices.defjvp
def _(layout: Layout, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    loss, by_view1, by_view2 = _run(functools.partial(_stacked, gradients=True), layout, primals)
    tangent = primals[2] * (jnp.vdot(by_view1, tangents[0]) + jnp.vdot(by_view2, tangents[1]))
    return loss, tangent + 0.5 * (jnp.vdot(primals[0], by_view1) + jnp.vdot(primals[1], by_view2)) * tangents[2]


def _paired(left: Rows, right: Rows, scale: Scale, where: Where, *, layout: Layout, gradients: bool) -> tuple:
    """On one device: the loss and, divided by the scale, the gradients by its rows."""
    ring, batch = layout.ring, left.shape[0]
    one, other = (only(in_blocks(side, layout.tile), where) for side in (left, right))
    rows, columns, positives = paired_sums(one, other, scale, ring)
    count = 2 * _count(where, left, ring)
    loss = ring.total(total_cost(one, other, rows, columns, positives)) / count
    if not gradients:
        return (loss,)
    by_left, by_right = paired_gradients(one, other, scale, (rows, columns), ring)
    return loss, rows_of(by_left, batch) / count, rows_of(by_right.swapaxes(1, 2), batch) / count


def _stacked(view1: Rows, view2: Rows, scale: Scale, where: Where, *, layout: Layout, gradients: bool) -> tuple:
    """As `_paired`, of two views."""
    ring, batch = layout.ring, view1.shape[0]
    side = only(interleaved(view1, view2, layout.tile), None if where is None else jnp.repeat(where, 2))
    sums, positives = stacked_sums(side, scale, ring)
    count = 2 * _count(where, view1, ring)
    loss = ring.total(costs(sums, positives, side)) / count
    if not gradients:
        return (loss,)
    by_rows, by_columns = stacked_gradients(side, scale, sums, ring)
    return loss, *(view / count for view in views_of(by_rows + by_columns.swapaxes(1, 2), batch))


def _count(where: Where, rows: Rows, ring: Ring) -> Array | int:
    """Pairs on all devices; 1 if there are none, whose cost is 0."""
    if where is None:
        return rows.shape[0] * ring.size
    return jnp.maximum(ring.total(jnp.sum(where, dtype=rows.dtype)), 1)


def _run(function: functools.partial, layout: Layout, arguments: tuple) -> tuple:
    """On every device with its own rows: the loss is the same everywhere, gradients lie where the rows lie."""
    rows, everywhere = PartitionSpec(layout.axis), PartitionSpec()
    gradients = function.keywords["gradients"]
    on_each = _shard_map(
        functools.partial(function, layout=layout),
        layout.mesh,
        (rows, rows, everywhere, rows),
        (everywhere, rows, rows) if gradients else (everywhere,),
    )
    return on_each(*arguments)


def _shard_map(function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """Unchecked: a loop whose state starts equal on all devices and ends different is not accepted otherwise."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    from jax.experimental.shard_map import shard_map  # before JAX 0.6

    return shard_map(function, mesh, in_specs, out_specs, check_rep=False)
