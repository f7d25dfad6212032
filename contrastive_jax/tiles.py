"""Tiles of a matrix of scores: what softmax over its lines needs, without ever holding the matrix.

A matrix of scores is `scale` times the products of the rows of two sides. It is cut into tiles; a tile is computed,
used for its rows and its columns at once, and forgotten. Two passes do everything: one for the logarithm of the
summed exponentials of each line, kept as `Logsum`, and one for the gradient, which computes the tiles again. What is
kept grows with the number of rows, not with its square.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Index = int | Int[Array, ""]
Tree = TypeVar("Tree")


class Side(NamedTuple):
    """Rows in blocks of `tile`; `valid` says which are rows and which only fill the last block.

    The blocks are there both ways round, so that no product has to turn a factor: that took a CPU a fifth longer.
    """

    rows: Float[Array, "blocks tile dim"]
    columns: Float[Array, "blocks dim tile"]
    valid: Bool[Array, "blocks tile"] | None  # None: all of them

    @property
    def blocks(self) -> int:
        return self.rows.shape[0]

    @property
    def tile(self) -> int:
        return self.rows.shape[1]


class Logsum(NamedTuple):
    """log(sum(exp(scores))) of lines, as the largest score seen so far and the sum of exp(score - largest).

    Kept apart, because adding them would round off what a line close to its partner is about: how much of `total`
    is not the partner.
    """

    largest: Float[Array, "*lines"]
    total: Float[Array, "*lines"]


def in_blocks(rows: Float[Array, "n dim"], tile: int, *, multiple: int = 1) -> Side:
    """Cuts rows into as many blocks as `tile` asks for, of one height, a multiple of `multiple`.

    Zeros fill the last block, never copies of rows: those would be candidates.
    """
    count = rows.shape[0]
    blocks = -(-count // max(tile, multiple))
    tile = -(-count // (blocks * multiple)) * multiple
    missing = blocks * tile - count
    filled = jnp.pad(rows, ((0, missing), (0, 0))).reshape(blocks, tile, rows.shape[1])
    valid = (jnp.arange(blocks * tile) < count).reshape(blocks, tile) if missing else None
    return Side(filled, filled.swapaxes(1, 2), valid)


def rows_of(blocks: Float[Array, "blocks tile dim"], count: int) -> Float[Array, "count dim"]:
    """The first `count` rows of the blocks, in one array again."""
    return blocks.reshape(-1, blocks.shape[-1])[:count]


def no_scores(side: Side) -> Logsum:
    """The sum over no candidate, for each row of a side."""
    shape, dtype = side.rows.shape[:2], side.rows.dtype
    return Logsum(jnp.full(shape, -jnp.inf, dtype), jnp.zeros(shape, dtype))


def tile_scores(left: Side, i: Index, right: Side, j: Index, scale: Float[Array, ""]) -> Float[Array, "n m"]:
    """Scores of block i of one side with block j of the other; -inf where either is not a row."""
    # One side is scaled before the product, as in the dense form, and so that no pass over the tile is spent on it.
    scores = product(block_at(left.rows, i) * scale, block_at(right.columns, j))
    for side, block, axis in ((left, i, 1), (right, j, 0)):
        if side.valid is not None:
            scores = jnp.where(jnp.expand_dims(block_at(side.valid, block), axis), scores, -jnp.inf)
    return scores


def product(left: Float[Array, "n k"], right: Float[Array, "k m"]) -> Float[Array, "n m"]:
    """Matrix product at the full precision of the dtype on every device."""
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def absorb(seen: Logsum, scores: Float[Array, "n m"], axis: int) -> Logsum:
    """`seen` of the lines of one block, and the scores of these lines along `axis` besides.

    The shift is the largest score itself and not a bound of it: with a scale of 100, a row whose best cosine is 0.1
    underflows to the logarithm of zero under any shift that does not look at the scores.
    """
    # A shift cancels out of the logarithm, so its gradient may be left out.
    largest = jnp.maximum(seen.largest, jax.lax.stop_gradient(jnp.max(scores, axis)))
    shift = jnp.where(largest == -jnp.inf, 0, largest)  # lines without a candidate
    total = seen.total * jnp.exp(seen.largest - shift) + jnp.sum(jnp.exp(scores - jnp.expand_dims(shift, axis)), axis)
    return Logsum(largest, total)


def shares(scores: Float[Array, "n m"], sums: Logsum, axis: int) -> Float[Array, "n m"]:
    """Softmax along `axis` of lines whose sums are complete; 0 throughout lines without a candidate."""
    empty = sums.total == 0
    shift, log_total = jnp.where(empty, 0, sums.largest), jnp.log(jnp.where(empty, 1, sums.total))
    return jnp.exp((scores - jnp.expand_dims(shift, axis)) - jnp.expand_dims(log_total, axis))


def costs(sums: Logsum, positives: Float[Array, "blocks tile"], side: Side) -> Float[Array, ""]:
    """Sum over the rows of a side of log(sum(exp(scores))) minus the score of the partner."""
    valid = side.valid
    if valid is not None:
        sums, positives = jax.tree.map(lambda x: jnp.where(valid, x, 1), (sums, positives))
    # The difference first: it is exactly zero where the partner is the best candidate.
    return jnp.sum((sums.largest - positives) + jnp.log(sums.total))


def block_at(blocks: Tree, i: Index) -> Tree:
    """Block i of every array."""
    return jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False), blocks)


def with_block(blocks: Tree, i: Index, new: Tree) -> Tree:
    """Every array with its block i replaced; in a loop, without a copy of the others."""
    return jax.tree.map(lambda x, y: jax.lax.dynamic_update_index_in_dim(x, y, i, 0), blocks, new)


def add_to_block(blocks: Float[Array, "blocks n m"], i: Index, more: Float[Array, "n m"]) -> Float[Array, "blocks n m"]:
    return with_block(blocks, i, block_at(blocks, i) + more)


def walk(visit: Callable[[Array, Array, tuple], tuple], state: tuple, blocks: int, first: int, last: int) -> tuple:
    """state = visit(i, j, state) for tiles number `first` to `last` - 1 of blocks x blocks.

    They are counted diagonal by diagonal, each wrapped around: (0, 0), (1, 1), ..., then (0, 1), (1, 2), ...,
    (blocks - 1, 0), then (0, 2), ... So numbers below blocks are the diagonal, and of what follows, up to
    blocks ** 2, the first half is one of each pair (i, j) and (j, i).
    """
    if first == last:
        return state
    return jax.lax.fori_loop(
        first, last, lambda k, state: visit(k % blocks, (k % blocks + k // blocks) % blocks, state), state
    )
