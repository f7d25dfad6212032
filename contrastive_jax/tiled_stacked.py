"""NT-Xent over tiles of the scores, of which symmetry saves half.

Scores are symmetric: tile (j, i) is tile (i, j) turned round. So only one of the two is computed, and its rows are
candidates of its columns and the other way round. With N rows of width d it takes the work of 2 products of
N * N * d, one for the scores, half of them computed twice, and one for the gradient. The dense form takes 3, and
several times the memory of all scores.

A row is no candidate of its own. It is left out of the maximum too: its score, the scale itself, is larger than every
other, and at a scale of 100 would make all of them vanish.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.tiled import TILE, slopes
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


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def tiled_nt_xent(units: Float[Array, "two_batch dim"], scale: Float[Array, ""], tile: int = TILE) -> Float[Array, ""]:
    """Cross-entropy of finding the partner, row (i + B) mod 2B, among all rows but itself.

    Derivatives as in `contrastive_jax.tiled`.

    Args:
        units: Unit rows, [view1; view2], shape [2 * batch, dim], float32 or float64.
        scale: Factor of the cosines, shape [], same dtype.
        tile: Largest height and width of a tile, a positive int; 1 counts as 2.

    Returns:
        Mean cost in nats, shape [], same dtype.

    Source:
        Chen et al. 2020, equation 1. The running maximum and sum as in `tiled_paired`.

    Example:
        >>> import jax.numpy as jnp
        >>> units = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> print(f"{tiled_nt_xent(units, jnp.ones(()), 2):.4f}")  # log(1 + 2/e)
        0.5514
    """
    view1, view2 = jnp.split(units, 2)
    side = interleaved(view1, view2, tile)
    return costs(*all_sums(side, scale), side) / len(units)


@tiled_nt_xent.defjvp
def _rule(tile: int, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    units, scale = primals
    view1, view2 = jnp.split(units, 2)
    side = interleaved(view1, view2, tile)
    sums, positives = all_sums(side, scale)
    by_rows, by_columns = all_gradients(side, scale, sums)
    by_units = jnp.concatenate(views_of(by_rows + by_columns.swapaxes(1, 2), len(units) // 2)) / len(units)
    # A product of two rows holds the scale once and rows twice, hence the half.
    tangent = 0.5 * jnp.vdot(units, by_units) * tangents[1]
    return costs(sums, positives, side) / len(units), scale * jnp.vdot(by_units, tangents[0]) + tangent


def interleaved(view1: Float[Array, "batch dim"], view2: Float[Array, "batch dim"], tile: int) -> Side:
    """Both views of a source side by side and in one block: then only tiles on the diagonal hold special pairs."""
    return in_blocks(jnp.stack([view1, view2], 1).reshape(-1, view1.shape[1]), tile, multiple=2)


def views_of(blocks: Float[Array, "blocks tile dim"], batch: int) -> tuple[Array, Array]:
    """Rows in blocks, as `interleaved` makes them, as two views again."""
    pairs = rows_of(blocks, 2 * batch).reshape(batch, 2, -1)
    return pairs[:, 0], pairs[:, 1]


def _special_pairs(tile: int) -> tuple[Array, Array]:
    """In a tile on the diagonal: a row with itself, and with its partner."""
    row, column = jnp.arange(tile)[:, None], jnp.arange(tile)[None]
    return row == column, row == column ^ 1


def _tiles(side: Side) -> tuple[int, int]:
    """Numbers, as counted by `walk`, of one of each pair of tiles beside the diagonal."""
    return side.blocks, side.blocks + side.blocks * (side.blocks - 1) // 2


def all_sums(side: Side, scale: Float[Array, ""]) -> tuple[Logsum, Float[Array, "blocks tile"]]:
    """Sums of the rows, and the scores of their partners."""
    itself, partner = _special_pairs(side.tile)

    def diagonal(i: Array) -> tuple[Logsum, Array]:
        scores = tile_scores(side, i, side, i, scale)
        sums = absorb(block_at(no_scores(side), 0), jnp.where(itself, -jnp.inf, scores), 1)
        return sums, jnp.sum(jnp.where(partner, scores, 0), 1)

    def visit(i: Array, j: Array, state: tuple) -> tuple:
        (sums,) = state
        scores = tile_scores(side, i, side, j, scale)
        sums = with_block(sums, i, absorb(block_at(sums, i), scores, 1))
        return (with_block(sums, j, absorb(block_at(sums, j), scores, 0)),)

    sums, positives = jax.lax.map(diagonal, jnp.arange(side.blocks))
    (sums,) = walk(visit, (sums,), side.blocks, *_tiles(side))
    return sums, positives


def all_gradients(
    side: Side, scale: Float[Array, ""], sums: Logsum
) -> tuple[Float[Array, "blocks tile dim"], Float[Array, "blocks dim tile"]]:
    """By the rows, in two parts to be added, of the sum of all costs, divided by the scale.

    `sums` may hold more candidates than this side.
    """
    itself, partner = _special_pairs(side.tile)
    partner = partner.astype(side.rows.dtype)

    def diagonal(i: Array) -> Array:
        scores = jnp.where(itself, -jnp.inf, tile_scores(side, i, side, i, scale))
        # This tile holds its scores twice, not always to the last bit. Each is used for its row alone, whose sum holds
        # it, so that a partner with all of the probability leaves no difference.
        by_score = shares(scores, block_at(sums, i), 1) - partner
        return product(by_score + by_score.T, block_at(side.rows, i))

    def visit(i: Array, j: Array, state: tuple) -> tuple:
        by_rows, by_columns = state
        by_score = slopes(side, i, side, j, scale, (sums, sums))
        by_rows = add_to_block(by_rows, i, product(by_score, block_at(side.rows, j)))
        return by_rows, add_to_block(by_columns, j, product(block_at(side.columns, i), by_score))

    start = jax.lax.map(diagonal, jnp.arange(side.blocks)), jnp.zeros_like(side.columns)
    return walk(visit, start, side.blocks, *_tiles(side))
