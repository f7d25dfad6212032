"""Wrong ways to write `positive_only`, `mean_cosine` and `feature_spread`."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.exercises.catalogue.parts import Loss, Rows, divided_by_length
from contrastive_jax.similarity import l2_normalize


def attraction_summed(z: Rows) -> Loss:
    """The cosines of the pairs are added, not averaged: the least value is -B, and grows with the batch."""
    return len(z) // 2 * _attraction(l2_normalize(z))


def products_of_long_rows(z: Rows) -> Loss:
    """Rows keep their lengths: the loss falls for ever by growing, and has no least value."""
    return _attraction(jnp.asarray(z))


def neighbours_attracted(z: Rows) -> Loss:
    """Rows 0 and 1, 2 and 3, ... are pulled together: in [view1; view2] these are different sources."""
    units = l2_normalize(z)
    return -jnp.mean(jnp.sum(units[0::2] * units[1::2], axis=1))


def repulsion(z: Rows) -> Loss:
    """The sign is missing: making this small drives the two views of a source apart."""
    return -_attraction(l2_normalize(z))


def distance_from_one(z: Rows) -> Loss:
    """One minus the cosine: the same gradient, but 0 is the least value, not -1."""
    return 1 + _attraction(l2_normalize(z))


def each_with_itself(z: Rows) -> Loss:
    """Each row is compared with itself: -1 for every input, and no gradient at all."""
    units = l2_normalize(z)
    return -jnp.mean(jnp.sum(units * units, axis=1))


def everybody_attracted(z: Rows) -> Loss:
    """The mean runs over the whole table: different sources are pulled together too, straight into collapse."""
    units = l2_normalize(z)
    return -jnp.mean(units @ units.T)


def averaged_over_columns_too(z: Rows) -> Loss:
    """The products are averaged over the columns too: a cosine is their sum, so the value shrinks with the width."""
    return _attraction(l2_normalize(z)) / z.shape[1]


def one_view_frozen(z: Rows) -> Loss:
    """The right value, but view 2 passes no gradient: that is a step of SimSiam, not this loss."""
    view1, view2 = jnp.split(l2_normalize(z), 2)
    return -jnp.mean(jnp.sum(view1 * jax.lax.stop_gradient(view2), axis=1))


def other_view_frozen(z: Rows) -> Loss:
    """The right value, but view 1 passes no gradient: that is a step of SimSiam, not this loss."""
    view1, view2 = jnp.split(l2_normalize(z), 2)
    return -jnp.mean(jnp.sum(jax.lax.stop_gradient(view1) * view2, axis=1))


def dead_row_is_not_a_number(z: Rows) -> Loss:
    """Rows are divided by their plain lengths: one dead row makes the loss NaN."""
    return _attraction(divided_by_length(z))


def own_cosines_counted(embeddings: Rows) -> Loss:
    """The diagonal is in the mean: every row's cosine of 1 with itself makes any batch look collapsed."""
    units = l2_normalize(embeddings)
    return jnp.mean(units @ units.T)


def products_for_cosines(embeddings: Rows) -> Loss:
    """Dot products of rows that kept their lengths: the value tells of lengths as much as of directions."""
    return _mean_off_diagonal(jnp.asarray(embeddings) @ jnp.asarray(embeddings).T)


def signs_dropped(embeddings: Rows) -> Loss:
    """Cosines without their signs: opposite rows, as far apart as can be, look collapsed."""
    units = l2_normalize(embeddings)
    return _mean_off_diagonal(jnp.abs(units @ units.T))


def successive_rows_only(embeddings: Rows) -> Loss:
    """Only rows that follow one another are compared: the order of the batch decides what is seen."""
    units = l2_normalize(embeddings)
    return jnp.mean(jnp.sum(units[1:] * units[:-1], axis=1))


def pairs_counted_once(embeddings: Rows) -> Loss:
    """Each pair is in the sum once and in the divisor twice: half of the mean."""
    units = l2_normalize(embeddings)
    return _mean_off_diagonal(units @ units.T) / 2


def divided_by_all_cells(embeddings: Rows) -> Loss:
    """The diagonal is out of the sum, but its n cells are still in the divisor: n * n for n * (n - 1)."""
    units = l2_normalize(embeddings)
    return _mean_off_diagonal(units @ units.T) * (len(units) - 1) / len(units)


def cosine_with_the_mean(embeddings: Rows) -> Loss:
    """Each row is compared with the mean direction, of which it is a part itself: too large for small batches."""
    units = l2_normalize(embeddings)
    return jnp.mean(units @ l2_normalize(jnp.mean(units, axis=0)))


def spread_within_rows(features: Rows) -> Loss:
    """The deviation runs along each row: how unlike the features of one input are, not how unlike the inputs are."""
    return jnp.mean(jnp.std(jnp.asarray(features), axis=1, ddof=1))


def divided_by_the_count(features: Rows) -> Loss:
    """Squares are divided by the number of rows, not by one less: `std` without `ddof=1`."""
    return jnp.mean(jnp.std(jnp.asarray(features), axis=0))


def variance_for_deviation(features: Rows) -> Loss:
    """The variance, in squared units; the square root is missing."""
    return jnp.mean(jnp.var(jnp.asarray(features), axis=0, ddof=1))


def deviations_added(features: Rows) -> Loss:
    """The deviations of the features are added, not averaged: a wider encoder seems to spread more."""
    return jnp.sum(jnp.std(jnp.asarray(features), axis=0, ddof=1))


def one_deviation_for_all(features: Rows) -> Loss:
    """One deviation of all entries together: features of different size look like spread, even if no input differs."""
    return jnp.std(jnp.asarray(features), ddof=1)


def directions_for_features(features: Rows) -> Loss:
    """Rows are normalised first: that is the spread of directions, and growing features go unseen."""
    return jnp.mean(jnp.std(l2_normalize(features), axis=0, ddof=1))


def _attraction(rows: Rows) -> Loss:
    view1, view2 = jnp.split(rows, 2)
    return -jnp.mean(jnp.sum(view1 * view2, axis=1))


def _mean_off_diagonal(table: Float[Array, "n n"]) -> Loss:
    count = len(table)
    return jnp.sum(jnp.where(jnp.eye(count, dtype=bool), 0.0, table)) / (count * (count - 1))
