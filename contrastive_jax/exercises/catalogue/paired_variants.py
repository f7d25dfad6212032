"""Wrong ways to write `paired_contrastive`, each one mistake away. The docstring of each says what it means."""

import jax
import jax.numpy as jnp

from contrastive_jax.exercises.catalogue.parts import (
    Loss,
    Number,
    Rows,
    Scores,
    both_directions,
    costs,
    divided_by_floored_length,
    divided_by_length,
    plain_exponentials,
    softmax_then_log,
)
from contrastive_jax.similarity import l2_normalize

NORM_FLOOR = 1e-6


def dot_products(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """Rows keep their lengths: the loss can be lowered by growing, without any better direction."""
    return both_directions(left @ right.T / temperature)


def only_the_left_chooses(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """One direction of two: right rows are never asked to find their partners on the left."""
    scores = _cosines(left, right) / temperature
    return jnp.mean(costs(scores, jnp.arange(len(scores))))


def only_the_right_chooses(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The softmax runs down the columns only: left rows are never asked to find their partners on the right."""
    return only_the_left_chooses(right, left, temperature)


def directions_summed(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The two directions are added, not averaged: every value and every gradient is twice what it should be."""
    return 2 * both_directions(_cosines(left, right) / temperature)


def pairs_summed(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The costs of all pairs are added, not averaged: the loss grows with the batch."""
    return len(left) * both_directions(_cosines(left, right) / temperature)


def minus_missing(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The minus is missing: log-probabilities are below zero, costs above."""
    return -both_directions(_cosines(left, right) / temperature)


def times_temperature(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """Cosines are multiplied by the temperature: a small one makes the choice softer, where it should be sharper."""
    return both_directions(_cosines(left, right) * temperature)


def no_temperature(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The temperature never enters: the cosines themselves are the scores."""
    return both_directions(_cosines(left, right))


def temperature_fixed(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The temperature that is passed is ignored, and 0.2 stands in its place: right for the default only."""
    return both_directions(_cosines(left, right) / 0.2)


def temperature_twice(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The scores are divided by the temperature once more on their way to the softmax."""
    return both_directions(_cosines(left, right) / temperature**2)


def temperature_spares_the_pair(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """Only wrong candidates are divided by the temperature: the pair itself keeps its plain cosine and cannot win."""
    cosines = _cosines(left, right)
    return both_directions(jnp.where(jnp.eye(len(cosines), dtype=bool), cosines, cosines / temperature))


def softmax_twice(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """A softmax goes into a cross-entropy that has its own: the scores lie in 0 to 1, and the loss hardly moves."""
    scores = _cosines(left, right) / temperature
    own = jnp.arange(len(scores))
    by_row, by_column = jax.nn.softmax(scores, axis=1), jax.nn.softmax(scores, axis=0)
    return (jnp.mean(costs(by_row, own)) + jnp.mean(costs(by_column.T, own))) / 2


def pair_not_a_candidate(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The pair is missing from the sum below the fraction: the loss can fall below 0, and never stops falling."""
    scores = _cosines(left, right) / temperature
    wrong_ones = jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)
    total = jax.nn.logsumexp(wrong_ones, axis=1) + jax.nn.logsumexp(wrong_ones, axis=0)
    return jnp.mean(total / 2 - jnp.diagonal(scores))


def diagonal_forgotten(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The costs of all cells are averaged, not those on the diagonal: every row is told to find everybody."""
    scores = _cosines(left, right) / temperature
    return -jnp.mean(jax.nn.log_softmax(scores, axis=1) + jax.nn.log_softmax(scores, axis=0)) / 2


def left_against_itself(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The left rows are compared with themselves: every pair is perfect, and the right side is never looked at."""
    return both_directions(_cosines(left, left) / temperature)


def right_detached(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The right value, but the right rows pass no gradient: one of two encoders does not learn."""
    return both_directions(_cosines(left, jax.lax.stop_gradient(jnp.asarray(right))) / temperature)


def left_detached(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The right value, but the left rows pass no gradient: one of two encoders does not learn."""
    return both_directions(_cosines(jax.lax.stop_gradient(jnp.asarray(left)), right) / temperature)


def lengths_frozen(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The right value, but lengths count as constants: the gradient keeps a part along each row."""
    frozen = [jax.lax.stop_gradient(jnp.linalg.norm(side, axis=1, keepdims=True)) for side in (left, right)]
    return both_directions((left / frozen[0]) @ (right / frozen[1]).T / temperature)


def exponentials_as_they_are(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """No largest score is subtracted before the exponential: at a small temperature it overflows."""
    return plain_exponentials(_cosines(left, right) / temperature)


def logarithm_of_a_softmax(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The logarithm comes after the softmax: a share too small for a float is 0, and log 0 is infinite."""
    return softmax_then_log(_cosines(left, right) / temperature)


def zero_over_zero(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """Rows are divided by their plain lengths: one row of zeros turns the whole loss into NaN."""
    return both_directions(divided_by_length(left) @ divided_by_length(right).T / temperature)


def slope_of_a_zero_length(left: Rows, right: Rows, temperature: Number = 0.2) -> Loss:
    """The floor comes after the square root: a row of zeros costs a finite amount, but its gradient is NaN."""
    return both_directions(divided_by_floored_length(left) @ divided_by_floored_length(right).T / temperature)


def _cosines(left: Rows, right: Rows) -> Scores:
    return l2_normalize(left, norm_floor=NORM_FLOOR) @ l2_normalize(right, norm_floor=NORM_FLOOR).T
