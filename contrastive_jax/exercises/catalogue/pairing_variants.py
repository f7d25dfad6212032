"""Wrong ways to write the exercises of the first notebook besides its loss, at the notebook's temperature."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax._validation import FloatArray
from contrastive_jax.exercises.catalogue.parts import IntegerArray, Loss, Number, Rows, costs
from contrastive_jax.exercises.oracles.steps import NOTEBOOK_TEMPERATURE
from contrastive_jax.losses import paired_contrastive
from contrastive_jax.similarity import cosine_similarity

Weights = Float[Array, "..."]
Index = tuple[int, ...]


def both_sides_or_none(left: Rows, right: Rows, order: IntegerArray) -> Loss:
    """Both sides were reordered, or none: every pair still matches, and the damage cannot be seen."""
    return _paired_loss(left[order], right[order])


def left_side_reordered(left: Rows, right: Rows, order: IntegerArray) -> Loss:
    """The left rows were reordered, or the right ones in the inverse order: to the loss both are the same."""
    return _paired_loss(left[order], right)


def columns_reordered(left: Rows, right: Rows, order: IntegerArray) -> Loss:
    """The columns of the right side were reordered: no row has moved, but every vector has changed."""
    return _paired_loss(left, right[:, order])


def one_side_doubled(left: Rows, right: Rows) -> Loss:
    """Only the left side was doubled: its second copies are questions without an answer of their own."""
    twice = jnp.concatenate([left, left])
    table = _scores(twice, right)
    own = jnp.arange(len(right))
    doubled = (jnp.mean(costs(table, jnp.concatenate([own, own]))) + jnp.mean(costs(table.T, own))) / 2
    return doubled - _paired_loss(left, right)


def copies_in_another_order(left: Rows, right: Rows) -> Loss:
    """One side as a, b, a, b and the other as a, a, b, b: most of the doubled pairs are strangers."""
    return _paired_loss(jnp.concatenate([left, left]), jnp.repeat(right, 2, axis=0)) - _paired_loss(left, right)


def columns_repeated(left: Rows, right: Rows) -> Loss:
    """The columns were repeated, not the rows: longer vectors, the same cosines, no penalty."""
    twice_left, twice_right = (jnp.concatenate([side, side], axis=1) for side in (left, right))
    return _paired_loss(twice_left, twice_right) - _paired_loss(left, right)


def ratio_of_losses(left: Rows, right: Rows) -> Loss:
    """The doubled loss was divided by the original one: a penalty of so many nats is a difference."""
    return _doubled(left, right) / _paired_loss(left, right)


def doubled_loss_itself(left: Rows, right: Rows) -> Loss:
    """The loss of the doubled batch was returned as it is: the original one is not subtracted."""
    return _doubled(left, right)


def original_minus_doubled(left: Rows, right: Rows) -> Loss:
    """The difference was taken the wrong way round: a penalty below 0 says that copies help."""
    return _paired_loss(left, right) - _doubled(left, right)


def step_up_only(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """A step to one side only: the error shrinks with the step, not with its square."""
    return (function(weights.at[index].add(step)) - function(weights)) / step


def step_down_only(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """A step down only: the error shrinks with the step, not with its square."""
    return (function(weights) - function(weights.at[index].add(-step))) / step


def divided_by_one_step(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """The two points lie two steps apart, but the rise was divided by one: twice the slope."""
    return _rise(function, weights, index, step) / step


def not_divided(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """The rise itself was returned: a slope is a rise divided by the distance."""
    return _rise(function, weights, index, step)


def half_times_step(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """`/ 2 * step` divides by 2 and then multiplies by the step: brackets are missing."""
    return _rise(function, weights, index, step) / 2 * step


def below_minus_above(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """The value below minus that above: the slope with the wrong sign."""
    return -_rise(function, weights, index, step) / (2 * step)


def all_weights_moved(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """Every weight took the step, not only the one at the index: that is the sum of all slopes."""
    return (function(weights + step) - function(weights - step)) / (2 * step)


def first_weight_moved(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """The very first weight took the steps, whatever the index says."""
    return _rise(function, weights, (0,) * weights.ndim, step) / (2 * step)


def autodiff_itself(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """This is autodiff itself; asked for is a second opinion, from two values of the function."""
    return jax.grad(function)(weights)[index]


def weight_replaced(function: Callable, weights: Weights, index: Index, step: Number) -> Loss:
    """The weight was set to the step, not moved by it: the slope is that around 0."""
    return (function(weights.at[index].set(step)) - function(weights.at[index].set(-step))) / (2 * step)


def _rise(function: Callable, weights: Weights, index: Index, step: Number) -> Float[Array, ""]:
    return function(weights.at[index].add(step)) - function(weights.at[index].add(-step))


def _scores(left: Float[FloatArray, "n dim"], right: Float[FloatArray, "m dim"]) -> Float[Array, "n m"]:
    return cosine_similarity(left, right) / NOTEBOOK_TEMPERATURE


def _paired_loss(left: Rows, right: Rows) -> Loss:
    return paired_contrastive(left, right, NOTEBOOK_TEMPERATURE)


def _doubled(left: Rows, right: Rows) -> Loss:
    return _paired_loss(jnp.concatenate([left, left]), jnp.concatenate([right, right]))
