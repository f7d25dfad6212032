"""Wrong ways to write `nt_xent_loss`, each one mistake away. The docstring of each says what the mistake means.

All take two views and the temperature, as the right loss does, but check nothing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax._validation import FloatArray
from contrastive_jax.exercises.catalogue.parts import (
    Loss,
    Number,
    Rows,
    Scores,
    both_directions,
    cosines,
    costs,
    divided_by_floored_length,
    divided_by_length,
    partners,
    unit_stack,
    without_self,
)


def lengths_kept(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows are not divided by their lengths: a long row scores high with everything, and growing lowers the loss."""
    return _nt_xent(jnp.concatenate([view1, view2]), temperature)


def one_length_for_all(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The whole array is divided by one length, not each row by its own: cosines shrink as the batch grows."""
    return _nt_xent(jnp.concatenate([view1 / _whole_length(view1), view2 / _whole_length(view2)]), temperature)


def self_among_candidates(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Each row is its own candidate, with cosine 1: no partner can beat it, and the loss never nears zero."""
    z = unit_stack(view1, view2)
    return jnp.mean(costs(z @ z.T / temperature, partners(z)))


def self_scored_zero(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The row's own score is multiplied by 0, but exp(0) = 1 stays in the sum: a false candidate of cosine 0."""
    z = unit_stack(view1, view2)
    scores = z @ z.T / temperature
    return jnp.mean(costs(jnp.where(jnp.eye(len(z), dtype=bool), 0.0, scores), partners(z)))


def e_subtracted_for_self(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The own term is taken out of the sum as e, but it is exp(1 / temperature): right at temperature 1 only."""
    z = unit_stack(view1, view2)
    scores = z @ z.T / temperature
    others = jnp.sum(jnp.exp(scores), axis=1) - jnp.exp(1.0)
    return jnp.mean(jnp.log(others) - _of_partners(scores))


def other_view_only(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows of the anchor's own view are left out as negatives: that is the paired loss, as in CLIP, not NT-Xent."""
    return both_directions(cosines(view1, view2) / temperature)


def partner_not_a_candidate(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The partner is missing from the sum below the fraction: the loss may fall below 0 without end."""
    z = unit_stack(view1, view2)
    scores = without_self(z @ z.T / temperature)
    negatives = jnp.where(jnp.eye(len(z), dtype=bool)[partners(z)], -jnp.inf, scores)
    return jnp.mean(jax.nn.logsumexp(negatives, axis=1) - _of_partners(scores))


def neighbour_as_partner(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows 0 and 1, 2 and 3, ... count as partners: right for interleaved views, wrong for [view1; view2]."""
    z = unit_stack(view1, view2)
    return jnp.mean(costs(without_self(z @ z.T / temperature), jnp.arange(len(z)) ^ 1))


def label_of_the_full_row(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The own column was cut out, but the labels still count it: view 1's labels point one column too far."""
    z = unit_stack(view1, view2)
    kept = jnp.arange(1, len(z))[None] * jnp.ones((len(z), 1), int)
    kept = jnp.where(kept <= jnp.arange(len(z))[:, None], kept - 1, kept)
    return jnp.mean(costs(jnp.take_along_axis(z @ z.T / temperature, kept, axis=1), partners(z)))


def same_view_twice(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """View 1 is stacked on itself: every pair agrees from the start, and view 2 teaches nothing."""
    return _nt_xent(unit_stack(view1, view1), temperature)


def first_view_chooses(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Only rows of view 1 are anchors; those of view 2 are never asked to find their partners."""
    z = unit_stack(view1, view2)
    return jnp.mean(costs(without_self(z @ z.T / temperature), partners(z))[: len(view1)])


def second_view_chooses(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Only rows of view 2 are anchors; those of view 1 are never asked to find their partners."""
    return first_view_chooses(view2, view1, temperature)


def directions_added(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The means of the two views are added, not averaged: twice the loss, and twice the step at one learning rate."""
    return 2 * _nt_xent(unit_stack(view1, view2), temperature)


def costs_summed(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The costs of all rows are added up, not averaged: the loss grows with the batch, and so does every step."""
    return (len(view1) + len(view2)) * _nt_xent(unit_stack(view1, view2), temperature)


def minus_left_out(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The mean log-probability without its minus: making it small drives partners apart."""
    return -_nt_xent(unit_stack(view1, view2), temperature)


def divided_by_negatives(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The sum over 2B anchors is divided by 2(B - 1): twice the loss at two pairs, and 0/0 at one."""
    z = unit_stack(view1, view2)
    return jnp.sum(costs(without_self(z @ z.T / temperature), partners(z))) / (len(z) - 2)


def temperature_multiplies(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Similarities are multiplied by the temperature, so that a smaller one softens the choice, not sharpens it."""
    return _nt_xent(unit_stack(view1, view2), 1 / temperature)


def temperature_ignored(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The temperature is never used: whatever is passed, cosines are compared as at temperature 1."""
    return _nt_xent(unit_stack(view1, view2), 1.0)


def temperature_on_negatives_only(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The partner's cosine is not divided by the temperature, the negatives' are: far too easy to lose."""
    z = unit_stack(view1, view2)
    partner = jnp.eye(len(z), dtype=bool)[partners(z)]
    return jnp.mean(costs(without_self(jnp.where(partner, z @ z.T, z @ z.T / temperature)), partners(z)))


def scaled_by_temperature(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The loss is multiplied by temperature / 0.07: gradients keep their size, but losses cannot be compared."""
    return _nt_xent(unit_stack(view1, view2), temperature) * (temperature / 0.07)


def candidates_detached(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The right value, but candidates pass no gradient: rows are pulled as anchors only, at half the strength or so."""
    z = unit_stack(view1, view2)
    scores = z @ jax.lax.stop_gradient(z).T / temperature
    return jnp.mean(costs(without_self(scores), partners(z)))


def second_view_detached(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The right value, but no gradient reaches view 2: its encoder would never learn."""
    return _nt_xent(unit_stack(view1, jax.lax.stop_gradient(jnp.asarray(view2))), temperature)


def first_view_detached(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The right value, but no gradient reaches view 1: its encoder would never learn."""
    return second_view_detached(view2, view1, temperature)


def length_detached(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The right value, but lengths pass no gradient: rows are pulled along themselves too, and grow or shrink."""
    z = jnp.concatenate([view1, view2])
    return _nt_xent(z / jax.lax.stop_gradient(jnp.linalg.norm(z, axis=1, keepdims=True)), temperature)


def exponentials_overflow(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Exponentials are summed as they are: a small temperature takes them past the largest float, and inf / inf."""
    z = unit_stack(view1, view2)
    terms = jnp.exp(without_self(z @ z.T / temperature))
    return -jnp.mean(jnp.log(terms[jnp.arange(len(z)), partners(z)] / jnp.sum(terms, axis=1)))


def zero_row_is_not_a_number(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows are divided by their plain lengths: one row of zeros is 0/0, and the whole loss is NaN."""
    return _nt_xent(divided_by_length(jnp.concatenate([view1, view2])), temperature)


def zero_row_breaks_the_gradient(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The length is floored after its square root: a row of zeros has a finite loss, but a NaN gradient."""
    return _nt_xent(divided_by_floored_length(jnp.concatenate([view1, view2])), temperature)


def _nt_xent(z: Float[FloatArray, "two_batch dim"], temperature: Number) -> Loss:
    return jnp.mean(costs(without_self(z @ z.T / temperature), partners(z)))


def _whole_length(view: Rows) -> Loss:
    return jnp.sqrt(jnp.sum(jnp.asarray(view) ** 2))


def _of_partners(scores: Scores) -> Float[Array, " n"]:
    return scores[jnp.arange(len(scores)), partners(scores)]
