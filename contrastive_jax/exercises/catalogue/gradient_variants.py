"""Wrong ways to write `row_gradient`: most forget one of its factors, or one of the two ways in which a row counts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.exercises.catalogue.parts import Number, Rows, partners, without_self


def only_asking(units: Rows, temperature: Number) -> Rows:
    """The transpose is missing: a row learns from its own question, but not from those it is an answer to."""
    return _pull(units, temperature) @ units


def only_asked(units: Rows, temperature: Number) -> Rows:
    """The transpose stands alone: a row learns from others' questions, but not from its own."""
    return _pull(units, temperature).T @ units


def asking_twice(units: Rows, temperature: Number) -> Rows:
    """Each row's own question counts twice; the second half should come from the transpose."""
    return 2 * _pull(units, temperature) @ units


def chain_without_temperature(units: Rows, temperature: Number) -> Rows:
    """The division by the temperature is missing: scores are dot products over the temperature."""
    return temperature * _both(units, temperature) @ units


def divided_by_pairs(units: Rows, temperature: Number) -> Rows:
    """Divided by B, the number of pairs; the mean is over all 2B rows."""
    return 2 * _both(units, temperature) @ units


def never_divided(units: Rows, temperature: Number) -> Rows:
    """The division by 2B is missing: that is the gradient of a sum of costs, not of their mean."""
    return len(units) * _both(units, temperature) @ units


def uphill(units: Rows, temperature: Number) -> Rows:
    """The sign is turned round: a step against this raises the loss."""
    return -_both(units, temperature) @ units


def self_in_the_softmax(units: Rows, temperature: Number) -> Rows:
    """The row's own cell is in the softmax: it takes the largest share of all, and leaves the rivals too little."""
    probability = jax.nn.softmax(units @ units.T / temperature, axis=1)
    partner = jnp.eye(len(units), dtype=probability.dtype)[partners(units)]
    return (probability + probability.T - 2 * partner) @ units / (len(units) * temperature)


def partner_subtracted_once(units: Rows, temperature: Number) -> Rows:
    """The partner is subtracted once; the asking and the being asked each subtract it."""
    partner = jnp.eye(len(units), dtype=units.dtype)[partners(units)]
    return (_both(units, temperature) + partner / (len(units) * temperature)) @ units


def _pull(units: Rows, temperature: Number) -> Float[Array, "n n"]:
    """Slope of the loss by each dot product."""
    probability = jax.nn.softmax(without_self(units @ units.T / temperature), axis=1)
    partner = jnp.eye(len(units), dtype=probability.dtype)[partners(units)]
    return (probability - partner) / (len(units) * temperature)


def _both(units: Rows, temperature: Number) -> Float[Array, "n n"]:
    pull = _pull(units, temperature)
    return pull + pull.T
