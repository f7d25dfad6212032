"""What one device does for a loss of rows that lie on several: its own tiles, then those of every block that visits.

The devices of a mesh axis stand in a ring, each with a block of the rows. Blocks travel from one to the next, with
what has been summed for them so far, and come home complete. A device holds its own block, one visitor, and a tile.

Everything here runs inside `shard_map`, once for each device.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from contrastive_jax import tiled, tiled_stacked
from contrastive_jax.tiles import Logsum, Side, no_scores

Tree = TypeVar("Tree")
PairGradients = tuple[Float[Array, "blocks tile dim"], Float[Array, "blocks dim tile"]]


class Ring(NamedTuple):
    """The devices along an axis of a mesh."""

    axis: str
    size: int

    def moved(self, blocks: Tree, places: int = 1) -> Tree:
        """Every block `places` further on."""
        if self.size == 1 or places == 0:
            return blocks
        route = [(device, (device + places) % self.size) for device in range(self.size)]
        return jax.tree.map(lambda x: jax.lax.ppermute(x, self.axis, route), blocks)

    def visitor(self, side: Side) -> Side:
        """The block of the device before; only one of its two layouts travels."""
        rows, valid = self.moved((side.rows, side.valid))
        return Side(rows, rows.swapaxes(1, 2), valid)

    def total(self, x: Float[Array, ""]) -> Float[Array, ""]:
        return jax.lax.psum(x, self.axis)


def repeated(times: int, step: Callable[[tuple], tuple], state: tuple) -> tuple:
    """`step` so many times.

    Not by `fori_loop`: where gradients are asked for, JAX takes that apart and computes ahead, for all tiles at once,
    what does not depend on the visitor. That took memory in proportion to the square of a device's rows.
    """

    def once_more(counted: tuple) -> tuple:
        return counted[0] + 1, step(counted[1])

    return jax.lax.while_loop(lambda counted: counted[0] < times, once_more, (jnp.int32(0), state))[1]


def only(side: Side, where: Bool[Array, " rows"] | None) -> Side:
    """The side with the rows that `where` leaves out neither candidates nor anchors; None leaves all in."""
    if where is None:
        return side
    missing = side.blocks * side.tile - where.shape[0]
    return side._replace(valid=jnp.pad(where, (0, missing)).reshape(side.blocks, side.tile))


def paired_sums(left: Side, right: Side, scale: Float[Array, ""], ring: Ring) -> tuple[Logsum, Logsum, Array]:
    """`tiled.all_sums` of the blocks at home here, over the rows of all devices."""
    rows, columns, positives = tiled.all_sums(left, right, scale)

    def step(state: tuple) -> tuple:
        rows, side, columns = state
        side, columns = ring.visitor(side), ring.moved(columns)
        rows, columns = _absorbed(left, side, scale, (rows, columns))
        return rows, side, columns

    rows, _, columns = repeated(ring.size - 1, step, (rows, right, columns))
    return rows, ring.moved(columns), positives


def paired_gradients(
    left: Side, right: Side, scale: Float[Array, ""], sums: tuple[Logsum, Logsum], ring: Ring
) -> PairGradients:
    """`tiled.all_gradients` of the blocks at home here, over the rows of all devices."""
    rows, columns = sums
    by_left, by_right = tiled.all_gradients(left, right, scale, sums)

    def step(state: tuple) -> tuple:
        by_left, side, (columns, by_right) = state
        side, (columns, by_right) = ring.visitor(side), ring.moved((columns, by_right))
        by_left, by_right = _added(left, side, scale, (rows, columns), (by_left, by_right))
        return by_left, side, (columns, by_right)

    by_left, _, (_, by_right) = repeated(ring.size - 1, step, (by_left, right, (columns, by_right)))
    return by_left, ring.moved(by_right)


def stacked_sums(side: Side, scale: Float[Array, ""], ring: Ring) -> tuple[Logsum, Array]:
    """`tiled_stacked.all_sums` of the block at home here, over the rows of all devices.

    Of two blocks one visits the other, and both are served. So a block goes half way round; where the number of
    devices is even, the last step meets the block just opposite, which meets this one at the same time: then each
    serves its own rows.
    """
    sums, positives = tiled_stacked.all_sums(side, scale)

    def step(state: tuple) -> tuple:
        sums, visitor, others = state
        visitor, others = ring.visitor(visitor), ring.moved(others)
        sums, others = _absorbed(side, visitor, scale, (sums, others))
        return sums, visitor, others

    half = (ring.size - 1) // 2
    sums, visitor, others = repeated(half, step, (sums, side, no_scores(side)))
    sums = _merged(sums, ring.moved(others, -half)) if half else sums
    if ring.size % 2 == 0:
        sums, _ = _absorbed(side, ring.visitor(visitor), scale, (sums, no_scores(side)))
    return sums, positives


def stacked_gradients(side: Side, scale: Float[Array, ""], sums: Logsum, ring: Ring) -> PairGradients:
    """`tiled_stacked.all_gradients` of the block at home here, over the rows of all devices."""
    by_rows, by_columns = tiled_stacked.all_gradients(side, scale, sums)

    def step(state: tuple) -> tuple:
        by_rows, visitor, (others, by_others) = state
        visitor, (others, by_others) = ring.visitor(visitor), ring.moved((others, by_others))
        by_rows, by_others = _added(side, visitor, scale, (sums, others), (by_rows, by_others))
        return by_rows, visitor, (others, by_others)

    half = (ring.size - 1) // 2
    start = by_rows, side, (sums, jnp.zeros_like(by_columns))
    by_rows, visitor, (others, by_others) = repeated(half, step, start)
    if ring.size % 2 == 0:
        visitor, others = ring.visitor(visitor), ring.moved(others)
        by_rows, _ = _added(side, visitor, scale, (sums, others), (by_rows, jnp.zeros_like(by_columns)))
    return by_rows, by_columns + ring.moved(by_others, -half)


def _absorbed(left: Side, right: Side, scale: Array, sums: tuple[Logsum, Logsum]) -> tuple[Logsum, Logsum]:
    return tiled.absorb_tiles(left, right, scale, sums, first=0, last=left.blocks**2)


def _added(left: Side, right: Side, scale: Array, sums: tuple[Logsum, Logsum], state: tuple) -> PairGradients:
    return tiled.add_gradients(left, right, scale, sums, state, first=0, last=left.blocks**2)


def _merged(a: Logsum, b: Logsum) -> Logsum:
    """Sums over the candidates of both."""
    largest = jnp.maximum(a.largest, b.largest)
    shift = jnp.where(largest == -jnp.inf, 0, largest)  # lines without a candidate
    return Logsum(largest, a.total * jnp.exp(a.largest - shift) + b.total * jnp.exp(b.largest - shift))
