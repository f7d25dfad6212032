"""The symmetric loss of two sides over tiles of their scores: memory in proportion to the batch.

Every tile serves the rows and the columns, so a score is computed once for both directions and once more for the
gradient. With n rows of width d on a side that makes 4 products of n * n * d: two for scores, two for gradients.

The gradient by the scale needs no pass of its own: scores are linear in the scale and in either side, so
scale * dL/dscale is the product of one side with its gradient (Euler's identity).

Derivatives come from a rule for tangents: where JAX differentiates, the gradient is computed together with the
value, and both modes only multiply it. So reverse mode keeps no more than the gradient, and forward mode works, as do
second derivatives, though reverse mode over it stores what the loops went through.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.tiles import (
    Logsum,
    Side,
    absorb,
    add_to_block,
    block_at,
    costs,
    in_blocks,
    no_scores,
    product,
    rows_of,
    shares,
    tile_scores,
    walk,
    with_block,
)

TILE = 512


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def tiled_paired(
    left: Float[Array, "n dim"], right: Float[Array, "n dim"], scale: Float[Array, ""], tile: int = TILE
) -> Float[Array, ""]:
    """Symmetric cross-entropy of the scores scale * left @ right.T, where row i belongs to column i.

    Args:
        left: Unit rows, shape [n, dim], float32 or float64.
        right: Their partners; same shape and dtype.
        scale: Factor of the cosines, shape [], same dtype.
        tile: Largest height and width of a tile, a positive int.

    Returns:
        Mean of the costs in nats of both directions, shape [], same dtype.

    Source:
        The running maximum and sum are those of Milakov and Gimelshein 2018, "Online normalizer calculation for
        softmax", algorithm 3.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{tiled_paired(jnp.eye(2), jnp.eye(2), jnp.ones(()), 1):.4f}")  # log(1 + 1/e)
        0.3133
    """
    sides = in_blocks(left, tile), in_blocks(right, tile)
    return total_cost(*sides, *all_sums(*sides, scale)) / (2 * len(left))


@tiled_paired.defjvp
def _rule(tile: int, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    left, right, scale = primals
    sides = in_blocks(left, tile), in_blocks(right, tile)
    sums = all_sums(*sides, scale)
    # Divided by the scale as yet, so that a scale of zero needs no division by it.
    blocks = all_gradients(*sides, scale, sums[:2])
    by_left, by_right = (rows_of(each, len(left)) / (2 * len(left)) for each in (blocks[0], blocks[1].swapaxes(1, 2)))
    tangent = scale * (jnp.vdot(by_left, tangents[0]) + jnp.vdot(by_right, tangents[1]))
    return total_cost(*sides, *sums) / (2 * len(left)), tangent + jnp.vdot(left, by_left) * tangents[2]


def total_cost(left: Side, right: Side, rows: Logsum, columns: Logsum, positives: Array) -> Float[Array, ""]:
    """Sum over all rows of both sides."""
    return costs(rows, positives, left) + costs(columns, positives, right)


def absorb_tiles(
    left: Side, right: Side, scale: Float[Array, ""], sums: tuple[Logsum, Logsum], *, first: int, last: int
) -> tuple[Logsum, Logsum]:
    """Sums of the rows and of the columns, with tiles `first` to `last` - 1 besides, counted as `walk` does."""

    def visit(i: Array, j: Array, state: tuple) -> tuple:
        rows, columns = state
        scores = tile_scores(left, i, right, j, scale)
        rows = with_block(rows, i, absorb(block_at(rows, i), scores, 1))
        return rows, with_block(columns, j, absorb(block_at(columns, j), scores, 0))

    return walk(visit, sums, left.blocks, first, last)


def add_gradients(
    left: Side,
    right: Side,
    scale: Float[Array, ""],
    sums: tuple[Logsum, Logsum],
    state: tuple,
    *,
    first: int,
    last: int,
) -> tuple[Float[Array, "blocks tile dim"], Float[Array, "blocks dim tile"]]:
    """`state` and what tiles `first` to `last` - 1 add to the gradients by the rows of `left` and columns of `right`.

    The gradients are those of the sum of all log(sum(exp(scores))), along rows and columns, divided by the scale.
    """

    def visit(i: Array, j: Array, state: tuple) -> tuple:
        by_left, by_right = state
        by_score = slopes(left, i, right, j, scale, sums)
        by_left = add_to_block(by_left, i, product(by_score, block_at(right.rows, j)))
        return by_left, add_to_block(by_right, j, product(block_at(left.columns, i), by_score))

    return walk(visit, state, left.blocks, first, last)


def slopes(
    left: Side, i: Array, right: Side, j: Array, scale: Float[Array, ""], sums: tuple[Logsum, Logsum]
) -> Float[Array, "n m"]:
    """Slopes by the scores of one tile of the sum of all log(sum(exp(scores))), along rows and columns."""
    scores = tile_scores(left, i, right, j, scale)
    return shares(scores, block_at(sums[0], i), 1) + shares(scores, block_at(sums[1], j), 0)


def all_sums(left: Side, right: Side, scale: Float[Array, ""]) -> tuple[Logsum, Logsum, Float[Array, "blocks tile"]]:
    """Sums of the rows and of the columns of all tiles, and the scores of the partners."""
    partner = jnp.eye(left.tile, dtype=bool)

    def diagonal(i: Array) -> tuple[Logsum, Logsum, Array]:
        scores = tile_scores(left, i, right, i, scale)
        nothing = block_at(no_scores(left), 0)
        return absorb(nothing, scores, 1), absorb(nothing, scores, 0), jnp.sum(jnp.where(partner, scores, 0), 1)

    rows, columns, positives = jax.lax.map(diagonal, jnp.arange(left.blocks))
    rows, columns = absorb_tiles(left, right, scale, (rows, columns), first=left.blocks, last=left.blocks**2)
    return rows, columns, positives


def all_gradients(
    left: Side, right: Side, scale: Float[Array, ""], sums: tuple[Logsum, Logsum]
) -> tuple[Float[Array, "blocks tile dim"], Float[Array, "blocks dim tile"]]:
    """By the rows of `left` and the columns of `right`, of the sum of all costs, divided by the scale.

    `sums` may hold more candidates than these two sides.
    """
    partner = jnp.eye(left.tile, dtype=left.rows.dtype)

    def diagonal(i: Array) -> tuple[Array, Array]:
        # Subtracted here and not from the products, where what is left of two equal numbers would be lost.
        by_score = slopes(left, i, right, i, scale, sums) - 2 * partner
        return product(by_score, block_at(right.rows, i)), product(block_at(left.columns, i), by_score)

    start = jax.lax.map(diagonal, jnp.arange(left.blocks))
    return add_gradients(left, right, scale, sums, start, first=left.blocks, last=left.blocks**2)
