"""Wrong ways to write the steps towards NT-Xent and the exercises around it: layout, mask, and one line of gradient."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from contrastive_jax.exercises.catalogue.nt_xent_variants import directions_added, self_among_candidates
from contrastive_jax.exercises.catalogue.parts import (
    IntegerArray,
    Loss,
    Number,
    Rows,
    Scores,
    both_directions,
    cosines,
    costs,
    partners,
    unit_stack,
)

Anchors = int | Int[Array, ""] | IntegerArray


def next_to_each_other(anchor: Anchors, batch: int) -> IntegerArray:
    """Rows 0 and 1, 2 and 3, ... count as partners: that is the interleaved layout, not [view1; view2]."""
    return jnp.asarray(anchor) ^ 1


def past_the_end(anchor: Anchors, batch: int) -> IntegerArray:
    """`anchor + batch` for every row: right for view 1, but rows of view 2 are sent past the end of the pile."""
    return jnp.asarray(anchor) + batch


def before_the_start(anchor: Anchors, batch: int) -> IntegerArray:
    """`anchor - batch` for every row: right for view 2; a negative index counts from the end, so nothing fails."""
    return jnp.asarray(anchor) - batch


def back_to_the_same_view(anchor: Anchors, batch: int) -> IntegerArray:
    """The remainder was taken by the batch, not by twice the batch: every partner lies in view 1."""
    return (jnp.asarray(anchor) + batch) % batch


def mirrored(anchor: Anchors, batch: int) -> IntegerArray:
    """Counted from the other end: first with last, second with last but one; view 2 would have to be reversed."""
    return 2 * batch - 1 - jnp.asarray(anchor)


def own_score_zero(scores: Scores) -> Scores:
    """The own score is 0, but exp(0) = 1 stays in every sum: a false candidate of cosine 0."""
    return jnp.where(jnp.eye(len(scores), dtype=bool), 0.0, scores)


def own_score_very_low(scores: Scores) -> Scores:
    """A large negative constant in place of minus infinity: some temperature or dtype always undoes it."""
    return jnp.where(jnp.eye(len(scores), dtype=bool), -1e9, scores)


def all_but_self_masked(scores: Scores) -> Scores:
    """The mask is turned round: only the own score is left, and everything else is minus infinity."""
    return jnp.where(jnp.eye(len(scores), dtype=bool), scores, -jnp.inf)


def partners_masked(scores: Scores) -> Scores:
    """The partner is masked as well: a row cannot find what is no longer among its candidates."""
    same_source = jnp.tile(jnp.eye(len(scores) // 2, dtype=bool), (2, 2))
    return jnp.where(same_source, -jnp.inf, scores)


def nothing_moved(interleaved: Rows) -> Rows:
    """The rows stand as they came: `reshape` cuts the pile in the middle and reorders nothing."""
    return jnp.asarray(interleaved)


def back_to_interleaved(interleaved: Rows) -> Rows:
    """The way back, from stacked to interleaved."""
    half = len(interleaved) // 2
    return jnp.stack([interleaved[:half], interleaved[half:]], axis=1).reshape(interleaved.shape)


def second_views_on_top(interleaved: Rows) -> Rows:
    """The second views came first: as good for the loss, but not what [view1; view2] says."""
    return jnp.concatenate([interleaved[1::2], interleaved[0::2]])


def first_views_twice(interleaved: Rows) -> Rows:
    """The first views stand on top of themselves: every pair agrees, and the second views are lost."""
    return jnp.concatenate([interleaved[0::2], interleaved[0::2]])


def only_self_forbidden(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """Only the anchor's own cell is forbidden: with the other rows of its own view this is NT-Xent."""
    return directions_added(view1, view2, temperature) / 2


def nothing_forbidden(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """No cell is forbidden: each row even competes with itself."""
    return self_among_candidates(view1, view2, temperature)


def odd_and_even_forbidden(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """Views are told by odd and even row numbers, as if interleaved; in a stack the halves are the views."""
    z = unit_stack(view1, view2)
    view = jnp.arange(len(z)) % 2
    return _cost_without(view[:, None] == view[None], view1, view2, temperature)


def forbidden_cells_zero(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """Forbidden cells got the score 0, which still counts as exp(0) = 1 in every sum."""
    z = unit_stack(view1, view2)
    view = jnp.arange(len(z)) // len(view1)
    scores = jnp.where(view[:, None] == view[None], 0.0, z @ z.T / temperature)
    return jnp.mean(costs(scores, partners(z)))


def first_views_ask(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """Only rows of view 1 ask for their partners; the mean belongs over all rows."""
    scores = cosines(view1, view2) / temperature
    return jnp.mean(costs(scores, jnp.arange(len(scores))))


def second_views_ask(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """Only rows of view 2 ask for their partners; the mean belongs over all rows."""
    return first_views_ask(view2, view1, temperature)


def halves_added(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """The means of the two halves are added, not averaged: twice the loss, as in the released TensorFlow code."""
    return first_views_ask(view1, view2, temperature) + first_views_ask(view2, view1, temperature)


def costs_added_up(view1: Rows, view2: Rows, temperature: Number) -> Loss:
    """The costs of the rows are added up, not averaged."""
    return 2 * len(view1) * both_directions(cosines(view1, view2) / temperature)


def _cost_without(forbidden: Array, view1: Rows, view2: Rows, temperature: Number) -> Loss:
    z = unit_stack(view1, view2)
    return jnp.mean(costs(jnp.where(forbidden, -jnp.inf, z @ z.T / temperature), partners(z)))
