"""Wrong ways to count which queries find their own answer; most differ in what they do with a tie."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from contrastive_jax.exercises.catalogue.parts import Scores

Share = Float[Array, ""]


def ties_are_hits(table: Scores) -> Share:
    """`>=` in place of `>`: a tie counts as a hit, and a collapsed model, all ties, finds everything."""
    return jnp.mean(_own(table) >= jnp.max(_rivals(table), axis=1))


def first_of_equals(table: Scores) -> Share:
    """`argmax` takes the first of equals: whether a tie is a hit depends on the order of the batch."""
    return jnp.mean(jnp.argmax(table, axis=1) == jnp.arange(len(table)))


def first_of_equals_in_columns(table: Scores) -> Share:
    """`argmax` runs down the columns: that is the other direction, and among equals it takes the first."""
    return jnp.mean(jnp.argmax(table, axis=0) == jnp.arange(len(table)))


def columns_asked(table: Scores) -> Share:
    """The largest rival was taken down the columns: that is the other direction, texts asking for images."""
    return jnp.mean(_own(table) > jnp.max(_rivals(table), axis=0))


def own_among_the_rivals(table: Scores) -> Share:
    """The own cell is among the rivals, and nothing is larger than itself: no query ever hits."""
    return jnp.mean(_own(table) > jnp.max(table, axis=1))


def number_of_hits(table: Scores) -> Share:
    """The number of hits, not their share: it cannot be compared between batches of different sizes."""
    return jnp.sum(_own(table) > jnp.max(_rivals(table), axis=1)).astype(table.dtype)


def share_of_misses(table: Scores) -> Share:
    """The comparison is turned round: this is the share of queries that are beaten."""
    return jnp.mean(_own(table) < jnp.max(_rivals(table), axis=1))


def own_hidden_by_zero(table: Scores) -> Share:
    """The own cell was hidden by a 0, which beats every negative score; use minus infinity."""
    return jnp.mean(_own(table) > jnp.max(jnp.where(_diagonal(table), 0.0, table), axis=1))


def ties_are_misses(table: Scores) -> Share:
    """A tie counts as a miss: that is strict retrieval, the worst case and not the average one."""
    return jnp.mean(_own(table) > jnp.max(_rivals(table), axis=1))


def ties_are_full_hits(table: Scores) -> Share:
    """A tie counts as a full hit: that is the best case, and a collapsed model reaches 1."""
    return jnp.mean(_own(table) >= jnp.max(_rivals(table), axis=1))


def half_a_hit_for_any_tie(table: Scores) -> Share:
    """Every tie counts one half, however many rivals share the place: right for one rival only."""
    best = jnp.max(_rivals(table), axis=1)
    return jnp.mean(jnp.where(_own(table) == best, 0.5, jnp.where(_own(table) > best, 1.0, 0.0)))


def beaten_rows_get_credit(table: Scores) -> Share:
    """Ties are shared out, but nobody asked whether a rival is better: beaten queries get credit too."""
    return jnp.mean(1 / _level(table))


def rivals_counted_without_the_own(table: Scores) -> Share:
    """The place is shared among the tied rivals only: the own answer takes part in the draw as well."""
    best = jnp.max(_rivals(table), axis=1)
    return jnp.mean(jnp.where(_own(table) >= best, 1 / jnp.maximum(_level(table) - 1, 1), 0.0))


def own_cell_not_counted(table: Scores) -> Share:
    """The own cell is not counted among the level ones: a sure hit is shared by none, and 1 / 0 is infinite."""
    beaten = _own(table) < jnp.max(_rivals(table), axis=1)
    return jnp.mean(jnp.where(beaten, 0.0, 1 / (_level(table) - 1)))


def own_cells_along_the_row(table: Scores) -> Share:
    """The own cells lie along a row, without `[:, None]`: each cell is compared with the own cell of its column."""
    own = _own(table)[None]
    level = jnp.sum(table == own, axis=1)
    return jnp.mean(jnp.where(jnp.any(table > own, axis=1), 0.0, 1 / level))


def _own(table: Scores) -> Float[Array, " n"]:
    return jnp.diagonal(jnp.asarray(table))


def _diagonal(table: Scores) -> Bool[Array, "n n"]:
    return jnp.eye(len(table), dtype=bool)


def _rivals(table: Scores) -> Float[Array, "n n"]:
    return jnp.where(_diagonal(table), -jnp.inf, table)


def _level(table: Scores) -> Float[Array, " n"]:
    """How many of each row are level with its own cell, itself among them."""
    return jnp.sum(table == _own(table)[:, None], axis=1).astype(table.dtype)
